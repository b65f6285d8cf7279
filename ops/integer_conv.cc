#include "ops/integer_conv.h"

#include <algorithm>
#include <string>

#include "ops/conv.h"
#include "ops/integer_product.h"
#include "ops/quantize.h"

namespace tessera {
namespace {

constexpr std::size_t kMaxAxes = Shape::kMaxRank - 2;
using Place = std::array<std::int64_t, kMaxAxes>;  // one index for each axis

bool IsPlain(const WindowAxis& axis) {
  return axis.kernel == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.pad_end == 0;
}

// Walks along the output pixels of a plane, by rows (of the last axis).
class PixelWalk {
 public:
  PixelWalk(const std::vector<WindowAxis>& axes, std::int64_t pixel) : axes_(axes) {
    for (std::size_t d = axes.size(); d-- > 0;) {
      at_[d] = pixel % axes[d].out;
      pixel /= axes[d].out;
    }
  }

  // Pixels up to the end of the row.
  std::int64_t RowRest() const { return axes_.back().out - at_[axes_.size() - 1]; }

  // n <= RowRest() pixels on.
  void Advance(std::int64_t n) {
    at_[axes_.size() - 1] += n;
    for (std::size_t d = axes_.size(); d-- > 1 && at_[d] == axes_[d].out;) {
      at_[d] = 0;
      ++at_[d - 1];
    }
  }

  // Where a tap that lies `offset` from the first one reads for the next n pixels of the row.
  struct Source {
    Range inside;         // the pixels for which that is inside of the picture
    std::int64_t offset;  // input pixel of the first of the n; they are a stride apart
  };
  Source Tap(const Place& offset, std::int64_t n) const {
    std::int64_t row = 0;
    const std::size_t last = axes_.size() - 1;
    for (std::size_t d = 0; d < last; ++d) {
      const std::int64_t place = axes_[d].First(at_[d]) + offset[d];
      if (place < 0 || place >= axes_[d].in) return {{0, 0}, 0};
      row = row * axes_[d].in + place;
    }
    const WindowAxis& axis = axes_[last];
    const std::int64_t first = axis.First(at_[last]) + offset[last];
    return {StepsInside(first, axis.stride, n, axis.in), row * axis.in + first};
  }

 private:
  const std::vector<WindowAxis>& axes_;
  Place at_{};
};

// Places of the taps relative to the first.
std::vector<Place> TapPlaces(const std::vector<WindowAxis>& axes, std::int64_t taps) {
  std::vector<Place> places(static_cast<std::size_t>(taps));
  for (std::int64_t t = 0; t < taps; ++t) {
    std::int64_t rest = t;
    for (std::size_t d = axes.size(); d-- > 0; rest /= axes[d].kernel) {
      places[static_cast<std::size_t>(t)][d] = rest % axes[d].kernel * axes[d].dilation;
    }
  }
  return places;
}

// What both kernels know.
struct ConvPlan {
  explicit ConvPlan(const IntegerConvParams& params)
      : p(params),
        in_group(p.in_channels / p.groups),
        out_group(p.out_channels / p.groups),
        in_pixels(p.in_pixels()),
        out_pixels(p.out_pixels()),
        depth(p.depth()),
        taps(TapPlaces(p.axes, p.taps())) {}

  IntegerConvParams p;
  std::int64_t in_group, out_group, in_pixels, out_pixels, depth;
  std::vector<Place> taps;
};

class ReferenceIntegerConv final : public IntegerConv {
 public:
  explicit ReferenceIntegerConv(const IntegerConvParams& params) : plan_(params) {}
  std::string_view name() const override { return "integer_conv_reference"; }
  std::size_t ScratchBytesPerThread() const override {
    return static_cast<std::size_t>(plan_.p.axes.back().out) * sizeof(std::int32_t);
  }
  void Run(const IntegerConvOperands& operands, const RunContext& context,
           TakeSums take) const override {
    if (plan_.out_pixels == 0) return;
    const std::int64_t width = plan_.p.axes.back().out;
    const std::int64_t rows = plan_.out_pixels / width;
    const std::int64_t planes = plan_.p.batch * plan_.p.out_channels;
    context.parallel.For(planes * rows, [&](std::int64_t task, int thread) {
      const std::int64_t plane = task / rows, pixel = task % rows * width;
      auto* sums = context.Scratch<std::uint32_t>(thread);
      Dispatch(operands.x.dtype, ByteTypes(), [&](auto x) {
        Dispatch(operands.w.dtype, ByteTypes(), [&](auto w) {
          SumRow<typename decltype(x)::type, typename decltype(w)::type>(operands, plane, pixel,
                                                                         sums);
        });
      });
      take(plane, plane % plan_.p.out_channels, pixel, context.Scratch<std::int32_t>(thread),
           width);
    });
  }

 private:
  template <typename X, typename W>
  void SumRow(const IntegerConvOperands& operands, std::int64_t plane, std::int64_t pixel,
              std::uint32_t* sums) const {
    const IntegerConvParams& p = plan_.p;
    const std::int64_t image = plane / p.out_channels, m = plane % p.out_channels;
    const std::int64_t width = p.axes.back().out, stride = p.axes.back().stride;
    const std::int64_t first_channel = image * p.in_channels + m / plan_.out_group * plan_.in_group;
    const X* x = operands.x.data<const X>() + first_channel * plan_.in_pixels;
    const W* w = operands.w.data<const W>() + m * plan_.depth;
    const std::int32_t x_zero = ZeroPointAt(operands.x_zero_point, 0);
    const std::int32_t w_zero = ZeroPointAt(operands.w_zero_point, m);
    const PixelWalk walk(p.axes, pixel);
    std::fill_n(sums, width, 0);
    for (std::int64_t c = 0; c < plan_.in_group; ++c, x += plan_.in_pixels) {
      for (const Place& tap : plan_.taps) {
        const auto [inside, offset] = walk.Tap(tap, width);
        const std::int32_t factor = *w++ - w_zero;
        for (std::int64_t i = inside.begin; i < inside.end; ++i) {
          sums[i] += static_cast<std::uint32_t>(factor * (x[offset + i * stride] - x_zero));
        }
      }
    }
  }

  ConvPlan plan_;
};

// [M][depth, padded to an even number]
AlignedBuffer PackWeights(const IntegerConvParams& p, const Tensor& w, const Tensor* zero_point) {
  const std::int64_t depth = p.depth(), padded = depth + depth % 2;
  AlignedBuffer packed(static_cast<std::size_t>(p.out_channels * padded) * sizeof(std::int16_t));
  const TensorView zeros = zero_point == nullptr ? TensorView{} : zero_point->view();
  for (std::int64_t m = 0; m < p.out_channels; ++m) {
    PackRow(w.data<const std::byte>() + m * depth, w.dtype(), ZeroPointAt(zeros, m), depth,
            packed.As<std::int16_t>() + m * padded);
  }
  return packed;
}

// The weights are packed once for all nodes that take the same zero points off them.
std::string PackName(const Tensor* zero_point) {
  std::string name = "integer_conv";
  for (std::int64_t i = 0; zero_point != nullptr && i < zero_point->size(); ++i) {
    name += StrCat(' ', ZeroPointAt(zero_point->view(), i));
  }
  return name;
}

class ColumnsIntegerConv final : public IntegerConv {
 public:
  ColumnsIntegerConv(const IntegerConvParams& params, std::shared_ptr<const AlignedBuffer> weights)
      : plan_(params),
        weights_(std::move(weights)),
        padded_depth_(plan_.depth + plan_.depth % 2),
        columns_(ChooseColumns(plan_)) {}

  std::string_view name() const override { return "integer_conv_columns"; }
  std::size_t ScratchBytesPerThread() const override {
    return static_cast<std::size_t>((padded_depth_ + 2) * columns_) * sizeof(std::int16_t) +
           static_cast<std::size_t>(kProductRows * columns_) * sizeof(std::int32_t);
  }
  void Run(const IntegerConvOperands& operands, const RunContext& context,
           TakeSums take) const override {
    const std::int64_t tiles = (plan_.out_pixels + columns_ - 1) / columns_;
    context.parallel.For(plan_.p.batch * plan_.p.groups * tiles,
                         [&](std::int64_t task, int thread) {
                           RunTile(operands, task / tiles, task % tiles * columns_,
                                   context.Scratch<std::int16_t>(thread), take);
                         });
  }

 private:
  // Narrower tiles than the cache could hold give several threads something to do.
  static std::int64_t ChooseColumns(const ConvPlan& plan) {
    constexpr std::int64_t kTasks = 16;
    const std::int64_t pixels = plan.p.batch * plan.p.groups * plan.out_pixels;
    const std::int64_t shared = (pixels + kTasks * 32 - 1) / (kTasks * 32) * 32;
    return std::min(ProductColumns(plan.depth), std::max<std::int64_t>(32, shared));
  }

  // The output channels of one group of one image, from `pixel` on.
  void RunTile(const IntegerConvOperands& operands, std::int64_t image_group, std::int64_t pixel,
               std::int16_t* scratch, TakeSums take) const {
    const IntegerConvParams& p = plan_.p;
    const std::int64_t n = std::min(columns_, plan_.out_pixels - pixel);
    const std::int64_t image = image_group / p.groups, group = image_group % p.groups;
    std::int16_t* columns = scratch;
    std::int16_t* rows = columns + padded_depth_ * columns_;
    auto* sums = reinterpret_cast<std::int32_t*>(rows + 2 * columns_);
    Dispatch(operands.x.dtype, ByteTypes(), [&](auto tag) {
      using X = typename decltype(tag)::type;
      const std::int64_t first_channel = image * p.in_channels + group * plan_.in_group;
      FillColumns(operands.x.data<const X>() + first_channel * plan_.in_pixels,
                  static_cast<std::int16_t>(ZeroPointAt(operands.x_zero_point, 0)), pixel, n, rows,
                  columns);
    });
    for (std::int64_t done = 0; done < plan_.out_group; done += kProductRows) {
      const std::int64_t m = group * plan_.out_group + done;
      const std::int64_t channels = std::min(kProductRows, plan_.out_group - done);
      MultiplyIntegers({weights_->As<const std::int16_t>() + m * padded_depth_, padded_depth_,
                        columns, 2 * columns_, sums, columns_, channels, n, padded_depth_});
      for (std::int64_t i = 0; i < channels; ++i) {
        take(image * p.out_channels + m + i, m + i, pixel, sums + i * columns_, n);
      }
    }
  }

  // [depth / 2][columns_][2], of which n columns are written; `rows` is space for two of them.
  template <typename X>
  void FillColumns(const X* x, std::int16_t zero, std::int64_t pixel, std::int64_t n,
                   std::int16_t* rows, std::int16_t* columns) const {
    bool odd = false;
    for (std::int64_t c = 0; c < plan_.in_group; ++c, x += plan_.in_pixels) {
      for (const Place& tap : plan_.taps) {
        FillRow(x, zero, tap, pixel, n, odd ? rows + columns_ : rows);
        if (odd) {
          InterleaveRows(rows, rows + columns_, n, columns);
          columns += 2 * columns_;
        }
        odd = !odd;
      }
    }
    if (odd) {
      std::fill_n(rows + columns_, n, std::int16_t{0});
      InterleaveRows(rows, rows + columns_, n, columns);
    }
  }

  // What one tap reads of one channel for n output pixels, less the zero point.
  template <typename X>
  void FillRow(const X* x, std::int16_t zero, const Place& tap, std::int64_t pixel, std::int64_t n,
               std::int16_t* out) const {
    const std::int64_t stride = plan_.p.axes.back().stride;
    PixelWalk walk(plan_.p.axes, pixel);
    while (n > 0) {
      const std::int64_t run = std::min(n, walk.RowRest());
      const auto [inside, offset] = walk.Tap(tap, run);
      std::fill(out, out + inside.begin, std::int16_t{0});
      if (stride == 1) {
        for (std::int64_t i = inside.begin; i < inside.end; ++i) {
          out[i] = static_cast<std::int16_t>(x[offset + i] - zero);
        }
      } else {
        for (std::int64_t i = inside.begin; i < inside.end; ++i) {
          out[i] = static_cast<std::int16_t>(x[offset + i * stride] - zero);
        }
      }
      std::fill(out + inside.end, out + run, std::int16_t{0});
      walk.Advance(run);
      out += run;
      n -= run;
    }
  }

  ConvPlan plan_;
  std::shared_ptr<const AlignedBuffer> weights_;
  std::int64_t padded_depth_, columns_;
};

template <typename Get>
std::int64_t Product(const std::vector<WindowAxis>& axes, const Get& get) {
  std::int64_t product = 1;
  for (const WindowAxis& axis : axes) product *= get(axis);
  return product;
}

}  // namespace

std::int64_t IntegerConvParams::in_pixels() const {
  return Product(axes, [](const WindowAxis& axis) { return axis.in; });
}
std::int64_t IntegerConvParams::out_pixels() const {
  return Product(axes, [](const WindowAxis& axis) { return axis.out; });
}
std::int64_t IntegerConvParams::taps() const {
  return Product(axes, [](const WindowAxis& axis) { return axis.kernel; });
}
double IntegerConvParams::Flops() const {
  return 2.0 * static_cast<double>(batch * out_channels * out_pixels()) *
         static_cast<double>(depth());
}

IntegerConvParams ReadIntegerConvParams(const OpNode& node, const Shape& x, const Shape& w) {
  const ConvNd conv = ReadConv(node, x, w);
  IntegerConvParams p{conv.batch, conv.in_channels, conv.out_channels, conv.groups, {}};
  for (const WindowAxis& axis : conv.axes) {
    if (!p.axes.empty() && IsPlain(axis) && IsPlain(p.axes.back())) {
      p.axes.back().in *= axis.in;
      p.axes.back().out *= axis.out;
    } else {
      p.axes.push_back(axis);
    }
  }
  return p;
}

std::unique_ptr<IntegerConv> MakeReferenceIntegerConv(const IntegerConvParams& params) {
  return std::make_unique<ReferenceIntegerConv>(params);
}

std::unique_ptr<IntegerConv> MakeIntegerConv(const IntegerConvParams& params,
                                             const std::shared_ptr<const Tensor>& w,
                                             const std::shared_ptr<const Tensor>& w_zero_point,
                                             PackCache& packs) {
  auto packed = packs.Get<AlignedBuffer>(
      w, PackName(w_zero_point.get()), [&] { return PackWeights(params, *w, w_zero_point.get()); });
  return std::make_unique<ColumnsIntegerConv>(params, std::move(packed));
}

}  // namespace tessera
