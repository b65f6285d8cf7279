// The kernel of QuantizedConvChain. A task is a band of output rows. It goes down its band a few
// rows at a time, so that what the last pointwise convolution reads is still in the caches.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "ops/quantized/quantized_conv_chain.h"
#include "ops/quantized/quantized_depthwise.h"
#include "ops/quantized/quantized_expand.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

bool IsPointwise(const QuantizedConvParams& params) {
  const ConvParams& p = params.conv;
  return p.groups == 1 && p.kernel_h * p.kernel_w * p.stride_h * p.stride_w == 1 &&
         p.pad_top == 0 && p.pad_left == 0 && p.out_height == p.in_height &&
         p.out_width == p.in_width;
}

ChannelsLastLayout InputLayout(const ConvParams& p) {
  return ChannelsLastLayout({p.batch, p.in_channels, p.in_height, p.in_width});
}

ChannelsLastLayout OutputLayout(const ConvParams& p) {
  return ChannelsLastLayout({p.batch, p.out_channels, p.out_height, p.out_width});
}

// On `rows` rows.
std::unique_ptr<Kernel> MakePointwise(QuantizedConvParams params,
                                      const QuantizedConvConstants& constants, std::int64_t rows,
                                      PackCache& packs) {
  params.conv.batch = 1;
  params.conv.in_height = params.conv.out_height = rows;
  return MakeQuantizedGemmConv(params, constants, Layout::kChannelsLast, packs);
}

class QuantizedChain final : public Kernel {
 public:
  QuantizedChain(std::span<const QuantizedConvParams> chain,
                 std::span<const QuantizedConvConstants> constants, PackCache& packs)
      : has_addend_(chain.back().has_addend),
        in_(InputLayout(chain.front().conv)),
        out_(OutputLayout(chain.back().conv)),
        between_(out_) {
    std::size_t depthwise = 0;
    if (IsQuantizedDepthwise(chain[0])) {
      depthwise_ = MakeQuantizedDepthwisePlan(chain[0], constants[0], packs);
      part_scratch_ = depthwise_->ScratchBytes();
    } else {
      expand_ = MakeQuantizedExpandPlan(chain[0], constants[0], chain[1], constants[1], packs);
      part_scratch_ = expand_->ScratchBytes();
      depthwise = 1;
    }
    part_scratch_ = RoundUp(part_scratch_, kAlignment);
    if (depthwise + 1 < chain.size()) {
      has_last_ = true;
      between_ = OutputLayout(chain[depthwise].conv);
    }
    // So many that a step is worth its calls. An even number, as quads have two rows.
    constexpr std::int64_t kStepBytes = 96 * 1024, kMostRows = 16;
    step_rows_ = std::clamp<std::int64_t>(
        kStepBytes / std::max<std::int64_t>(1, between_.row_stride) / 2 * 2, 2, kMostRows);

    if (has_last_) {
      last_step_ = MakePointwise(chain.back(), constants.back(), step_rows_, packs);
      last_row_ = MakePointwise(chain.back(), constants.back(), 1, packs);
    }
    name_ = "quantized_conv";
    for (const QuantizedConvParams& conv : chain) {
      flops_ += conv.conv.Flops();
      name_ +=
          StrCat(&conv == chain.data() ? "" : "_", conv.conv.kernel_h, 'x', conv.conv.kernel_w);
    }
  }

  std::string_view name() const override { return name_; }
  double Flops() const override { return flops_; }
  std::size_t ScratchBytesPerThread() const override {
    if (!has_last_) return part_scratch_;
    const std::size_t last =
        std::max(last_step_->ScratchBytesPerThread(), last_row_->ScratchBytesPerThread());
    return part_scratch_ + BetweenBytes() + last;
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
  void RunBand(const RunContext& run, std::int64_t image, Range rows, std::byte* scratch) const {
    const std::uint8_t* x = run.inputs[0].data<const std::uint8_t>() + image * in_.image_stride;
    auto* const between = reinterpret_cast<std::uint8_t*>(scratch + part_scratch_);
    for (std::int64_t y = rows.begin; y < rows.end; y += step_rows_) {
      const Range step{y, std::min(y + step_rows_, rows.end)};
      const std::int64_t at = image * out_.image_stride + y * out_.row_stride;
      std::uint8_t* const out = run.outputs[0].data<std::uint8_t>() + at;
      const std::uint8_t* const addend =
          has_addend_ ? run.inputs[kChainAddend].data<const std::uint8_t>() + at : nullptr;
      std::uint8_t* const to = has_last_ ? between : out;
      const std::uint8_t* const to_addend = has_last_ ? nullptr : addend;
      if (expand_) {
        RunQuantizedExpandStep(*expand_, {.rows = step,
                                          .first = y == rows.begin,
                                          .in = x,
                                          .out = to,
                                          .addend = to_addend,
                                          .scratch = scratch});
      } else {
        RunQuantizedDepthwiseBand(*depthwise_, {.rows = step,
                                                .in = x,
                                                .out = to,
                                                .addend = to_addend,
                                                .real_out = nullptr,
                                                .scratch = scratch});
      }
      if (has_last_) RunLast(step.size(), between, addend, out);
    }
  }

  // `rows` rows of the last convolution.
  void RunLast(std::int64_t rows, std::uint8_t* in, const std::uint8_t* addend,
               std::uint8_t* out) const {
    const Kernel& kernel = rows == step_rows_ ? *last_step_ : *last_row_;
    const std::int64_t count = rows == step_rows_ ? 1 : rows, height = rows / count;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto view = [&](const ChannelsLastLayout& layout, const std::uint8_t* data) {
        const std::int64_t at = i * layout.row_stride;
        return TensorView{DType::kUint8,
                          Layout::kChannelsLast,
                          {1, layout.channels, height, layout.width},
                          const_cast<std::uint8_t*>(data + at)};
      };
      TensorView inputs[kQuantizedAddend + 1];
      inputs[0] = view(between_, in);
      if (addend != nullptr) inputs[kQuantizedAddend] = view(out_, addend);
      const TensorView outputs[] = {view(out_, out)};
      SerialParallel serial;
      kernel.Run({inputs, outputs, serial, reinterpret_cast<std::byte*>(in) + BetweenBytes(), 0});
    }
  }

  std::size_t BetweenBytes() const {
    return RoundUp(static_cast<std::size_t>(step_rows_ * between_.row_stride), kAlignment);
  }

  bool has_addend_, has_last_ = false;
  ChannelsLastLayout in_, out_, between_;  // `between_`: before the last pointwise one
  // One of these, ...
  std::optional<QuantizedExpandPlan> expand_;
  std::optional<QuantizedDepthwisePlan> depthwise_;
  // ... and then perhaps a pointwise one, on the rows of a step or on one row.
  std::unique_ptr<Kernel> last_step_, last_row_;
  std::size_t part_scratch_ = 0;
  std::int64_t step_rows_ = 0;
  double flops_ = 0;
  std::string name_;
};

}  // namespace

bool IsQuantizedChain(std::span<const QuantizedConvParams> chain) {
  if (chain.size() < 2 || chain.size() > kMaxChain || FloatLanes() == 1) return false;
  for (const QuantizedConvParams& conv : chain) {
    const bool is_last = &conv == &chain.back();
    if (conv.to_float || (conv.has_addend && !is_last)) return false;
  }
  if (IsQuantizedDepthwise(chain[0])) return chain.size() == 2 && IsPointwise(chain[1]);
  return IsQuantizedExpand(chain[0], chain[1]) && (chain.size() == 2 || IsPointwise(chain[2]));
}

bool StreamsWell(std::span<const QuantizedConvParams> chain) {
  if (!IsQuantizedChain(chain)) return false;
  const ConvParams& first = chain[0].conv;
  // After a depthwise convolution there is nothing to gain but the way to memory and back.
  constexpr std::int64_t kLarge = 512 * 1024;
  if (chain.size() == 2 && IsQuantizedDepthwise(chain[0])) {
    return OutputLayout(first).image_stride >= kLarge;
  }
  // Of small maps with many channels the weights cost more than the pixels. A third convolution is
  // as fast by itself; it is taken in where what it reads is as large as what the second one reads.
  constexpr std::int64_t kLeastWidth = 32, kMostChannels = 48, kWide = 64, kMostOfNarrow = 192;
  if (first.in_width < kLeastWidth || first.in_channels > kMostChannels) return false;
  // HardSwish takes so long that tiles computed beside it are no gain.
  const bool is_slow = first.epilogue.activation == Activation::kHardSwish;
  if (first.in_width < kWide && (is_slow || first.out_channels > kMostOfNarrow)) return false;
  return chain.size() == 2 || chain[1].conv.stride_h * chain[1].conv.stride_w == 1;
}

std::unique_ptr<Kernel> MakeQuantizedChain(std::span<const QuantizedConvParams> chain,
                                           std::span<const QuantizedConvConstants> constants,
                                           PackCache& packs) {
  return std::make_unique<QuantizedChain>(chain, constants, packs);
}

}  // namespace tessera
