// The kernel of QuantizedConvChain. A task is a band of output rows. It goes down its band a few
// rows at a time: the first pointwise convolution adds the rows that are missing to a ring, which
// holds what the depthwise one needs for these output rows; the last one reads the depthwise one's
// rows.
#include <algorithm>
#include <string>
#include <utility>

#include "ops/quantized/quantized_conv_chain.h"
#include "ops/quantized/quantized_depthwise.h"
#include "ops/quantized/quantized_pointwise.h"

namespace tessera {
namespace {

bool IsPointwise(const QuantizedConvParams& params) {
  const ConvParams& p = params.conv;
  return p.groups == 1 && p.kernel_h * p.kernel_w * p.stride_h * p.stride_w == 1 &&
         p.pad_top == 0 && p.pad_left == 0 && p.out_height == p.in_height &&
         p.out_width == p.in_width;
}

ChannelsLastLayout OutputLayout(const ConvParams& p) {
  return ChannelsLastLayout({p.batch, p.out_channels, p.out_height, p.out_width});
}

class QuantizedChain final : public Kernel {
 public:
  QuantizedChain(std::span<const QuantizedConvParams> chain,
                 std::span<const QuantizedConvConstants> constants, PackCache& packs)
      : has_first_(!IsQuantizedDepthwise(chain[0])),
        has_last_(!IsQuantizedDepthwise(chain.back())),
        has_addend_(chain.back().has_addend),
        depthwise_(MakeQuantizedDepthwisePlan(chain[has_first_ ? 1 : 0],
                                              constants[has_first_ ? 1 : 0], packs)),
        in_({chain[0].conv.batch, chain[0].conv.in_channels, chain[0].conv.in_height,
             chain[0].conv.in_width}),
        out_(OutputLayout(chain.back().conv)) {
    if (has_first_) first_ = MakeQuantizedPointwisePlan(chain[0], constants[0], packs);
    if (has_last_) last_ = MakeQuantizedPointwisePlan(chain.back(), constants.back(), packs);
    name_ = "quantized_conv";
    for (const QuantizedConvParams& conv : chain) {
      flops_ += conv.conv.Flops();
      name_ +=
          StrCat(&conv == chain.data() ? "" : "_", conv.conv.kernel_h, 'x', conv.conv.kernel_w);
    }
    ChooseRows();
  }

  std::string_view name() const override { return name_; }
  double Flops() const override { return flops_; }
  std::size_t ScratchBytesPerThread() const override {
    return depthwise_.ScratchBytes() + static_cast<std::size_t>(RingBytes() + RowsBytes());
  }
  bool CanOverwriteInput(std::size_t i) const override {
    return i == kChainAddend && has_addend_ && !has_last_;
  }

  void Run(const RunContext& run) const override {
    // The rows around a band are computed for the next one again: as few bands as there is use for.
    constexpr std::int64_t kLeastRows = 4;
    const std::int64_t threads = run.parallel.num_threads();
    const std::int64_t wanted = threads == 1 ? 1 : 2 * threads;
    const std::int64_t rows = std::max(kLeastRows, (out_.height + wanted - 1) / wanted);
    const std::int64_t bands = (out_.height + rows - 1) / rows;
    run.parallel.For(out_.images * bands, [&](std::int64_t task, int thread) {
      const std::int64_t y = task % bands * rows;
      RunBand(run, task / bands, {y, std::min(out_.height, y + rows)},
              run.Scratch<std::byte>(thread));
    });
  }

 private:
  std::int64_t InputRows(std::int64_t rows) const {  // of the depthwise convolution
    const ConvParams& p = depthwise_.params;
    return (rows - 1) * p.stride_h + (p.kernel_h - 1) * p.dilation_h + 1;
  }
  std::int64_t RingBytes() const {
    if (!has_first_) return 0;
    return static_cast<std::int64_t>(
        RoundUp(static_cast<std::size_t>(ring_rows_ * depthwise_.input.row_stride), kAlignment));
  }
  std::int64_t RowsBytes() const {
    if (!has_last_) return 0;
    return step_rows_ * depthwise_.output.row_stride;
  }

  // So many rows that a step is worth its calls, and stays in a small part of the L2 cache.
  void ChooseRows() {
    constexpr std::int64_t kStepBytes = 96 * 1024;
    const ConvParams& p = depthwise_.params;
    const std::int64_t per_row = (has_first_ ? p.stride_h * depthwise_.input.row_stride : 0) +
                                 (has_last_ ? depthwise_.output.row_stride : 0);
    step_rows_ = std::clamp<std::int64_t>(kStepBytes / std::max<std::int64_t>(1, per_row), 1, 16);
    if (step_rows_ > 1) step_rows_ -= step_rows_ % 2;  // whole quads
    step_rows_ = std::max<std::int64_t>(1, std::min(step_rows_, p.out_height));
    ring_rows_ = InputRows(step_rows_);
  }

  void RunBand(const RunContext& run, std::int64_t image, Range rows, std::byte* scratch) const {
    const ConvParams& p = depthwise_.params;
    std::byte* const depthwise_scratch = scratch;
    auto* const ring = reinterpret_cast<std::uint8_t*>(scratch) + depthwise_.ScratchBytes();
    std::uint8_t* const between = ring + RingBytes();
    const std::uint8_t* x = run.inputs[0].data<const std::uint8_t>() + image * in_.image_stride;
    const std::int64_t image_at = image * out_.image_stride;
    const std::uint8_t* addend =
        has_addend_ ? run.inputs[kChainAddend].data<const std::uint8_t>() + image_at : nullptr;
    std::uint8_t* const out = run.outputs[0].data<std::uint8_t>() + image_at;

    std::int64_t next = 0;  // input row of the depthwise convolution that is not in the ring yet
    for (std::int64_t y = rows.begin; y < rows.end; y += step_rows_) {
      const std::int64_t n = std::min(step_rows_, rows.end - y);
      if (has_first_) {
        const std::int64_t first = y * p.stride_h - p.pad_top;
        const std::int64_t end = std::min(p.in_height, first + InputRows(n));
        for (next = std::max(next, first); next < end;) {
          const std::int64_t slot = next % ring_rows_;
          const std::int64_t count = std::min(end - next, ring_rows_ - slot);  // without a break
          RunQuantizedPointwise(
              *first_, x + next * in_.row_stride, in_.pixel_stride, count * in_.width, nullptr,
              ring + slot * depthwise_.input.row_stride, depthwise_.input.pixel_stride);
          next += count;
        }
      }
      const std::int64_t at = y * out_.row_stride;
      const std::uint8_t* const addend_rows = has_addend_ ? addend + at : nullptr;
      RunQuantizedDepthwiseBand(
          depthwise_, {.rows = {y, y + n},
                       .in = has_first_ ? ByteRows{ring, depthwise_.input.row_stride, ring_rows_}
                                        : ByteRows{x, in_.row_stride, in_.height},
                       .out = has_last_ ? between : out + at,
                       .addend = has_last_ ? nullptr : addend_rows,
                       .real_out = nullptr,
                       .scratch = depthwise_scratch});
      if (has_last_) {
        RunQuantizedPointwise(*last_, between, depthwise_.output.pixel_stride, n * out_.width,
                              addend_rows, out + at, out_.pixel_stride);
      }
    }
  }

  bool has_first_, has_last_, has_addend_;
  QuantizedDepthwisePlan depthwise_;
  std::shared_ptr<const QuantizedPointwisePlan> first_, last_;
  ChannelsLastLayout in_, out_;
  std::int64_t step_rows_ = 1, ring_rows_ = 1;
  double flops_ = 0;
  std::string name_;
};

}  // namespace

bool IsQuantizedChain(std::span<const QuantizedConvParams> convolutions) {
  if (convolutions.size() < 2 || convolutions.size() > kMaxChain) return false;
  std::string kinds;
  for (const QuantizedConvParams& conv : convolutions) {
    const bool is_last = &conv == &convolutions.back();
    if (conv.to_float || (conv.has_addend && !is_last)) return false;
    kinds += IsQuantizedDepthwise(conv) ? 'd' : IsPointwise(conv) ? 'p' : '?';
  }
  return kinds == "pd" || kinds == "dp" || kinds == "pdp";
}

bool StreamsWell(std::span<const QuantizedConvParams> convolutions) {
  return IsQuantizedChain(convolutions);
}

std::unique_ptr<Kernel> MakeQuantizedChain(std::span<const QuantizedConvParams> convolutions,
                                           std::span<const QuantizedConvConstants> constants,
                                           PackCache& packs) {
  return std::make_unique<QuantizedChain>(convolutions, constants, packs);
}

}  // namespace tessera
