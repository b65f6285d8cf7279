// Convolution over any number of axes as a product of matrices: the weights, times the input pixels
// that each output pixel depends on.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "ops/conv.h"
#include "ops/matmul_tile.h"
#include "simd/aligned_buffer.h"

namespace tessera {
namespace {

// Neighbours in a row of the output.
struct PixelRun {
  std::array<std::int64_t, Shape::kMaxRank> first;  // input element of tap 0, for each axis
  std::int64_t count;
  std::int64_t column;  // of the matrix
};

class GemmConv final : public Kernel {
 public:
  GemmConv(ConvNd conv, std::int64_t columns) : conv_(std::move(conv)), columns_(columns) {
    for (std::size_t a = conv_.axes.size(); a-- > 0;) {
      in_strides_[a] = in_plane_;
      in_plane_ *= conv_.axes[a].in;
      taps_ *= conv_.axes[a].kernel;
      out_plane_ *= conv_.axes[a].out;
    }
  }

  std::string_view name() const override { return "conv_gemm"; }
  double Flops() const override { return conv_.Flops(); }
  std::size_t ScratchBytesPerThread() const override {
    return RoundUp(static_cast<std::size_t>(GroupIn() * taps_ * columns_) * sizeof(float),
                   kAlignment) +
           static_cast<std::size_t>(columns_) * sizeof(PixelRun);
  }

  void Run(const RunContext& context) const override {
    const std::int64_t tiles = (out_plane_ + columns_ - 1) / columns_;
    context.parallel.For(conv_.batch * conv_.groups * tiles, [&](std::int64_t task, int thread) {
      RunTile(context, task / tiles / conv_.groups, task / tiles % conv_.groups,
              task % tiles * columns_, thread);
    });
  }

 private:
  std::int64_t GroupIn() const { return conv_.in_channels / conv_.groups; }

  void RunTile(const RunContext& context, std::int64_t n, std::int64_t group, std::int64_t begin,
               int thread) const {
    const std::int64_t rows = conv_.out_channels / conv_.groups, depth = GroupIn() * taps_;
    const std::int64_t columns = std::min(columns_, out_plane_ - begin);
    float* matrix = context.Scratch<float>(thread);
    auto* runs = reinterpret_cast<PixelRun*>(
        context.Scratch<std::byte>(thread) +
        RoundUp(static_cast<std::size_t>(depth * columns_) * sizeof(float), kAlignment));
    const std::span<const PixelRun> tile(runs, CutIntoRuns(begin, columns, runs));
    const float* x = context.inputs[0].data<const float>() +
                     (n * conv_.in_channels + group * GroupIn()) * in_plane_;
    float* row = matrix;
    for (std::int64_t c = 0; c < GroupIn(); ++c, row += taps_ * columns) {
      CopyTaps(x + c * in_plane_, tile, columns, row);
    }

    const std::int64_t m = group * rows;
    float* out =
        context.outputs[0].data<float>() + (n * conv_.out_channels + m) * out_plane_ + begin;
    Multiply({.a = context.inputs[1].data<const float>() + m * depth,
              .a_row_stride = depth,
              .a_column_stride = 1,
              .b = matrix,
              .b_row_stride = columns,
              .c = out,
              .c_row_stride = out_plane_,
              .m = rows,
              .n = columns,
              .k = depth,
              .alpha = 1});
    for (std::int64_t r = 0; r < rows; ++r) {
      Finish(context.inputs, m + r, out + r * out_plane_, columns,
             (n * conv_.out_channels + m + r) * out_plane_ + begin);
    }
  }

  std::size_t CutIntoRuns(std::int64_t begin, std::int64_t columns, PixelRun* runs) const {
    const std::size_t last = conv_.axes.size() - 1;
    const std::int64_t width = conv_.axes[last].out;
    std::size_t count = 0;
    for (std::int64_t column = 0; column < columns; column += runs[count++].count) {
      PixelRun& run = runs[count];
      std::int64_t rest = begin + column;
      run.column = column;
      run.count = std::min(columns - column, width - rest % width);
      for (std::size_t a = last + 1; a-- > 0;) {
        run.first[a] = conv_.axes[a].First(rest % conv_.axes[a].out);
        rest /= conv_.axes[a].out;
      }
    }
    return count;
  }

  // One row of the matrix for each tap of a channel.
  void CopyTaps(const float* x, std::span<const PixelRun> runs, std::int64_t columns,
                float* rows) const {
    std::array<std::int64_t, Shape::kMaxRank> tap{};
    for (std::int64_t t = 0; t < taps_; ++t, rows += columns) {
      for (const PixelRun& run : runs) CopyRun(x, run, tap, rows + run.column);
      for (std::size_t a = conv_.axes.size(); a-- > 0;) {
        if (++tap[a] < conv_.axes[a].kernel) break;
        tap[a] = 0;
      }
    }
  }

  void CopyRun(const float* x, const PixelRun& run,
               const std::array<std::int64_t, Shape::kMaxRank>& tap, float* to) const {
    const std::size_t last = conv_.axes.size() - 1;
    bool inside = true;
    for (std::size_t a = 0; a < last && inside; ++a) {
      const std::int64_t at = run.first[a] + tap[a] * conv_.axes[a].dilation;
      inside = at >= 0 && at < conv_.axes[a].in;
      if (inside) x += at * in_strides_[a];
    }
    const WindowAxis& axis = conv_.axes[last];
    const std::int64_t first = run.first[last] + tap[last] * axis.dilation;
    const auto count_before = [&](std::int64_t end) {
      const std::int64_t distance = std::max<std::int64_t>(0, end - first);
      return std::min(run.count, (distance + axis.stride - 1) / axis.stride);
    };
    const std::int64_t end = inside ? count_before(axis.in) : 0;
    const std::int64_t begin = std::min(end, count_before(0));
    std::fill_n(to, begin, 0.0f);
    std::fill_n(to + end, run.count - end, 0.0f);
    if (axis.stride == 1) {
      if (begin < end) std::copy_n(x + first + begin, end - begin, to + begin);
    } else {
      for (std::int64_t i = begin; i < end; ++i) to[i] = x[first + i * axis.stride];
    }
  }

  // Bias and epilogue of part of a row; `at` is its place in the output.
  void Finish(std::span<const TensorView> inputs, std::int64_t m, float* out, std::int64_t n,
              std::int64_t at) const {
    const auto values = [&](std::size_t i) {
      return i < inputs.size() && inputs[i].present() ? inputs[i].data<const float>() : nullptr;
    };
    const float *biases = values(kConvBias), *slopes = values(kConvSlope);
    const float bias = biases == nullptr ? 0 : biases[m];
    const Epilogue& epilogue = conv_.epilogue;
    if (epilogue.activation == Activation::kNone && epilogue.combine == Combine::kNone) {
      if (biases == nullptr) return;
      for (std::int64_t i = 0; i < n; ++i) out[i] += bias;
      return;
    }
    const float slope = slopes == nullptr ? 1 : slopes[inputs[kConvSlope].size() == 1 ? 0 : m];
    const float* addends = values(kConvAddend);
    for (std::int64_t i = 0; i < n; ++i) {
      const double addend = addends == nullptr ? 0 : static_cast<double>(addends[at + i]);
      out[i] = static_cast<float>(ApplyEpilogue(epilogue, static_cast<double>(out[i] + bias),
                                                static_cast<double>(slope), addend));
    }
  }

  ConvNd conv_;
  std::int64_t columns_;
  std::int64_t in_plane_ = 1, out_plane_ = 1, taps_ = 1;
  std::array<std::int64_t, Shape::kMaxRank> in_strides_{};
};

}  // namespace

std::unique_ptr<Kernel> MakeGemmConv(const ConvNd& conv) {
  // Of the matrix of input pixels: what stays in the L2 cache beside the weights, and what is never
  // worth its memory.
  constexpr std::int64_t kFloats = 1 << 16, kMaxFloats = 1 << 24, kMinColumns = 16;
  std::int64_t depth = conv.in_channels / conv.groups;
  for (const WindowAxis& axis : conv.axes) {
    if (depth > kMaxFloats / axis.kernel) return nullptr;
    depth *= axis.kernel;
  }
  const std::int64_t columns = std::clamp(kFloats / depth, kMinColumns, kMatMulTileColumns);
  if (depth * columns > kMaxFloats) return nullptr;
  return std::make_unique<GemmConv>(conv, columns);
}

}  // namespace tessera
