// QuantizedConv of one group as products of pixels (quantized_gemm.h): how the work is cut, and
// where tasks read the input: in its place, or padded, quantised or stacked (quantized_input.h).
#include <algorithm>
#include <variant>
#include <vector>

#include "ops/quantized/quantized_conv.h"
#include "ops/quantized/quantized_dots.h"
#include "ops/quantized/quantized_gemm.h"
#include "ops/quantized/quantized_input.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

constexpr std::int64_t DivideUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Segments are kernel rows, or single taps.
QuantizedSegments SegmentRows(const ConvParams& p) {
  const std::int64_t stride = ChannelsLastLayout::PixelStride(p.in_channels);
  const std::int64_t quads = (p.kernel_w - 1) * stride / 4 + DivideUp(p.in_channels, 4);
  return {p.kernel_h, quads, p.kernel_w, stride};
}

bool CanSegmentRows(const ConvParams& p) { return p.kernel_w == 1 || p.dilation_w == 1; }

// Rows only if the taps' channels leave no gaps between them.
QuantizedSegments ChooseSegments(const ConvParams& p) {
  const std::int64_t quads = DivideUp(p.in_channels, 4);
  const bool has_gaps = quads * 4 < ChannelsLastLayout::PixelStride(p.in_channels);
  if (CanSegmentRows(p) && (p.kernel_w == 1 || !has_gaps)) return SegmentRows(p);
  return {p.kernel_h * p.kernel_w, quads, 1, quads * 4};
}

// Three rows of pixels of few channels are worth stacking where AMX would otherwise have too little
// to sum at once.
bool StacksRows(const ConvParams& p) {
  return HasAmx() && p.kernel_h == StackedRows::kRows && p.dilation_w == 1 &&
         ChannelsLastLayout::PixelStride(p.in_channels) == StackedRows::kPixelBytes;
}

QuantizedSegments SegmentStackedRows(const ConvParams& p) {
  const std::int64_t taps = p.kernel_h * p.kernel_w;
  return {1, taps, taps, StackedRows::kPixelBytes, StackedRows::kRows};
}

// Without pads, rows of bytes are read where they are; those of a pointwise convolution are one
// long row.
bool Copies(const QuantizedConvParams& params) {
  const ConvParams& p = params.conv;
  return (p.pad_top | p.pad_left | p.pad_bottom | p.pad_right) != 0 || params.from_float;
}

QuantizedConvParams JoinRows(QuantizedConvParams params) {
  ConvParams& p = params.conv;
  const bool joins = p.kernel_h * p.kernel_w * p.stride_h * p.stride_w == 1 && !Copies(params);
  if (!joins || params.to_float) return params;
  p.in_width = p.out_width = p.batch * p.out_height * p.out_width;
  p.batch = p.in_height = p.out_height = 1;
  return params;
}

// A task is `rows` by `cols` output pixels, those at the ends fewer.
struct Tasks {
  std::int64_t rows, cols, row_tasks, col_tasks;
  std::int64_t in_rows, pitch;  // of the copy: rows, bytes from one to the next
};

// Depends on the layer alone, so that several threads get the same tasks as one.
Tasks ChooseTasks(const ConvParams& p, bool copies) {
  constexpr std::int64_t kTaskCost = 4 << 20, kMaxCols = 320, kMaxCopyBytes = 384 << 10;
  const std::int64_t pixel_stride = ChannelsLastLayout::PixelStride(p.in_channels);
  // In multiply-adds; the epilogue takes as long as some 64 a channel.
  const std::int64_t pixel_cost = p.out_channels * (p.in_channels * p.kernel_h * p.kernel_w + 64);
  const std::int64_t pixels = std::max<std::int64_t>(kTaskCost / pixel_cost, 1);
  Tasks t{};
  const std::int64_t width = std::max<std::int64_t>(p.out_width, 1);  // 0 without images
  if (p.out_height * p.batch == 1) {
    t.cols = static_cast<std::int64_t>(RoundUp(static_cast<std::size_t>(pixels), 48));
    t.cols = std::min(t.cols, width);
    t.rows = 1;
  } else {
    t.cols = DivideUp(width, DivideUp(width, kMaxCols));
    // Neighbouring tasks copy the same rows: few rows would be copied often.
    t.rows = std::max(pixels / t.cols, std::min<std::int64_t>(p.out_height / 16, 8));
    t.rows = std::clamp<std::int64_t>(t.rows, 1, p.out_height);
  }
  const auto measure = [&] {
    t.in_rows = InputExtent(t.rows, p.stride_h, p.kernel_h, p.dilation_h);
    const std::int64_t row =
        InputExtent(t.cols, p.stride_w, p.kernel_w, p.dilation_w) * pixel_stride;
    // An odd number of cache lines: rows do not compete for the same sets.
    t.pitch = (DivideUp(row, 64) | 1) * 64;
    return t.in_rows * t.pitch;
  };
  while (measure() > kMaxCopyBytes && copies && t.rows * t.cols > 1) {
    (t.rows > 1 ? t.rows : t.cols) = DivideUp(t.rows > 1 ? t.rows : t.cols, 2);
  }
  t.row_tasks = DivideUp(p.out_height, t.rows);
  t.col_tasks = DivideUp(p.out_width, t.cols);
  return t;
}

QuantizedStore ChooseStore(const QuantizedConvParams& p, Layout output_layout) {
  if (p.to_float) {
    return output_layout == Layout::kBlocked ? QuantizedStore::kFloats : QuantizedStore::kPlanes;
  }
  return p.conv.out_channels <= 4 ? QuantizedStore::kFewBytes : QuantizedStore::kBytes;
}

using Product = std::variant<QuantizedGemm, QuantizedDots>;

class QuantizedGemmConv final : public Kernel {
 public:
  QuantizedGemmConv(const QuantizedConvParams& params, const QuantizedConvConstants& constants,
                    Layout output_layout, PackCache& packs)
      : QuantizedGemmConv(params, JoinRows(params), constants, output_layout, packs) {}

  QuantizedGemmConv(const QuantizedConvParams& params, const QuantizedConvParams& joined,
                    const QuantizedConvConstants& constants, Layout output_layout, PackCache& packs)
      : p_(joined.conv),
        flops_(params.conv.Flops()),
        has_addend_(params.has_addend),
        in_({p_.batch, p_.in_channels, p_.in_height, p_.in_width}),
        out_shape_{p_.batch, p_.out_channels, p_.out_height, p_.out_width},
        out_(out_shape_),
        store_(ChooseStore(params, output_layout)),
        copies_(Copies(params)),
        tasks_(ChooseTasks(p_, copies_)),
        pitch_(copies_ ? tasks_.pitch : in_.row_stride),
        input_(joined, tasks_.cols),
        product_(MakeProduct(params, constants, packs)) {
    const auto* gemm = std::get_if<QuantizedGemm>(&product_);
    name_ = StrCat("quantized_conv", p_.kernel_h, "x", p_.kernel_w,
                   gemm == nullptr ? "_dot"
                   : gemm->amx     ? "_amx"
                                   : "_gemm");
  }

  std::string_view name() const override { return name_; }
  double Flops() const override { return flops_; }
  std::size_t ScratchBytesPerThread() const override {
    if (stacks_) {
      return static_cast<std::size_t>(kStackedAtOnce * input_.StackedBytes() + input_.RingBytes());
    }
    return copies_ ? static_cast<std::size_t>(tasks_.in_rows * tasks_.pitch) : 0;
  }

  void Run(const RunContext& run) const override {
    run.parallel.For(p_.batch * tasks_.row_tasks * tasks_.col_tasks,
                     [&](std::int64_t task, int thread) {
                       const std::int64_t band = task / tasks_.col_tasks;
                       RunTask(run, band / tasks_.row_tasks, band % tasks_.row_tasks * tasks_.rows,
                               task % tasks_.col_tasks * tasks_.cols, thread);
                     });
  }

 private:
  Product MakeProduct(const QuantizedConvParams& params, const QuantizedConvConstants& constants,
                      PackCache& packs) {
    if (CanSegmentRows(p_)) {
      const QuantizedSegments rows = SegmentRows(p_);
      if (QuantizedDots::Applies(params, store_, rows)) {
        QuantizedDots dots(params, constants, store_, rows, packs);
        SetPlaces(rows, dots.places);
        return dots;
      }
    }
    stacks_ = StacksRows(p_);
    const QuantizedSegments segments = stacks_ ? SegmentStackedRows(p_) : ChooseSegments(p_);
    if (stacks_) {
      places_ = {0};
    } else {
      SetPlaces(segments, {0});
    }
    return QuantizedGemm(params, constants, store_, segments, packs);
  }

  // Of what a pixel's sums read: `in_segment` in each segment.
  void SetPlaces(const QuantizedSegments& segments, const std::vector<std::int64_t>& in_segment) {
    const std::int64_t in_row = segments.count / p_.kernel_h;
    for (std::int64_t s = 0; s < segments.count; ++s) {
      const std::int64_t at =
          s / in_row * p_.dilation_h * pitch_ + s % in_row * p_.dilation_w * in_.pixel_stride;
      for (const std::int64_t place : in_segment) places_.push_back(at + place);
    }
  }

  void RunTask(const RunContext& run, std::int64_t image, std::int64_t y0, std::int64_t x0,
               int thread) const {
    const std::int64_t rows = std::min(tasks_.rows, p_.out_height - y0);
    const std::int64_t cols = std::min(tasks_.cols, p_.out_width - x0);
    const QuantizedInput::Task task = {run.inputs[0].bytes, image, y0, x0, cols};
    auto* const scratch = run.Scratch<std::uint8_t>(thread);
    QuantizedInput::Stacker stacker(input_, task, scratch);
    const std::uint8_t* in = scratch;
    if (stacks_) {
      in += input_.RingBytes();
    } else if (copies_) {
      input_.Copy(task, rows, pitch_, scratch);
    } else {
      in = run.inputs[0].data<const std::uint8_t>() + image * in_.image_stride +
           y0 * p_.stride_h * pitch_ + x0 * p_.stride_w * in_.pixel_stride;
    }
    const std::int64_t step = stacks_ ? kStackedAtOnce : rows;
    for (std::int64_t y = 0; y < rows; y += step) {
      const std::int64_t at = image * out_.image_stride + (y0 + y) * out_.row_stride +
                              x0 * out_.pixel_stride;  // bytes, of the addend too
      QuantizedPixels pixels{
          .in = in,
          .in_stride = p_.stride_w * (stacks_ ? StackedRows::kBytes : in_.pixel_stride),
          .segments = places_.data(),
          .count = cols,
          .addend = nullptr,
          .addend_stride = out_.pixel_stride,
          .out = nullptr,
          .out_stride = 0,
          .plane_stride = 0,
          .rows = std::min(step, rows - y),
          .in_row = stacks_ ? input_.StackedBytes() : p_.stride_h * pitch_,
          .addend_row = out_.row_stride,
      };
      if (has_addend_) {
        pixels.addend = run.inputs[kQuantizedAddend].data<const std::uint8_t>() + at;
      }
      SetOutput(run.outputs[0], at, image, y0 + y, x0, pixels);
      if (stacks_) stacker.Stack(y, pixels.rows, scratch + input_.RingBytes());
      std::visit([&](const auto& product) { RunQuantizedPixels(product, pixels); }, product_);
    }
  }

  void SetOutput(const TensorView& out, std::int64_t byte, std::int64_t image, std::int64_t y,
                 std::int64_t x, QuantizedPixels& pixels) const {
    constexpr std::int64_t kFloatBytes = sizeof(float);
    switch (store_) {
      case QuantizedStore::kBytes:
      case QuantizedStore::kFewBytes:
        pixels.out = out.data<std::uint8_t>() + byte;
        pixels.out_stride = out_.pixel_stride;
        pixels.out_row = out_.row_stride;
        break;
      case QuantizedStore::kFloats: {
        const BlockedLayout b(out_shape_);
        pixels.out = out.data<float>() + image * b.image_stride + y * b.row_stride + x * b.lanes;
        pixels.out_stride = b.lanes;
        pixels.plane_stride = b.plane_stride;
        pixels.out_row = b.row_stride * kFloatBytes;
        break;
      }
      case QuantizedStore::kPlanes:
        pixels.out_stride = 1;
        pixels.plane_stride = p_.out_height * p_.out_width;
        pixels.out_row = p_.out_width * kFloatBytes;
        pixels.out = out.data<float>() + image * p_.out_channels * pixels.plane_stride +
                     y * p_.out_width + x;
        break;
    }
  }

  // Rows: with those that they are made of, and the sums, they have to fit into the inner cache.
  static constexpr std::int64_t kStackedAtOnce = 2;

  ConvParams p_;
  double flops_;
  bool has_addend_;
  ChannelsLastLayout in_;
  Shape out_shape_;
  ChannelsLastLayout out_;
  QuantizedStore store_;
  bool copies_;
  Tasks tasks_;
  std::int64_t pitch_;  // of what tasks read
  QuantizedInput input_;
  bool stacks_ = false;  // rows of it
  std::vector<std::ptrdiff_t> places_;
  Product product_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Kernel> MakeQuantizedGemmConv(const QuantizedConvParams& params,
                                              const QuantizedConvConstants& constants,
                                              Layout output_layout, PackCache& packs) {
  Require(params.conv.groups == 1, "a convolution in ", params.conv.groups, " groups");
  return std::make_unique<QuantizedGemmConv>(params, constants, output_layout, packs);
}

}  // namespace tessera
