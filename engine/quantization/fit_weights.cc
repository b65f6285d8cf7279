#include "engine/quantization/fit_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "engine/node_runner.h"
#include "ops/conv.h"

namespace tessera {
namespace {

// The covariance of more inputs takes longer, with their number cubed, than it is worth: weights of
// such convolutions stay as they were rounded.
constexpr std::int64_t kMostTaps = 2304;

// Added to the variances of the inputs, as a share of their mean: what the samples do not tell
// stays as it was. With less, weights follow what is by chance in the pixels that are looked at;
// in a deep network each layer then makes the next one's inputs worse on others.
constexpr double kDamping = 0.15;

// Pixels whose products are summed up in float, and stay in a cache meanwhile.
constexpr std::size_t kChunk = 512;

// a^T * b, float32 matrices.
Tensor Product(const Tensor& a, const Tensor& b, Parallel& parallel) {
  Graph graph;
  Node gemm;
  gemm.op.name = gemm.op.type = "Gemm";
  gemm.op.opset = 13;
  gemm.op.attributes.Set("transA", std::int64_t{1});
  gemm.def = FindOp("Gemm");
  gemm.outputs = {0};
  const auto info = [](const Tensor& t) {
    return TensorInfo{true, t.dtype(), t.shape(), Layout::kRowMajor,
                      std::shared_ptr<const Tensor>(std::shared_ptr<void>(), &t)};
  };
  const std::vector<TensorInfo> inputs{info(a), info(b)};
  return std::move(NodeRunner(graph, gemm, {}).Run(inputs, parallel)[0]);
}

// A part of a matrix.
Tensor Part(const Tensor& t, std::size_t row, std::size_t rows, std::int64_t column,
            std::int64_t columns) {
  Tensor out(DType::kFloat32, {static_cast<std::int64_t>(rows), columns});
  for (std::size_t r = 0; r < rows; ++r) {
    const float* from =
        t.data<float>() + static_cast<std::int64_t>(row + r) * t.shape()[1] + column;
    std::copy_n(from, columns, out.data<float>() + static_cast<std::int64_t>(r) * columns);
  }
  return out;
}

// The covariance of the columns of a with those of b, from chunks of their rows.
class Covariance {
 public:
  Covariance(std::int64_t a_columns, std::int64_t b_columns)
      : sums_(static_cast<std::size_t>(a_columns * b_columns), 0),
        a_(static_cast<std::size_t>(a_columns)),
        b_(static_cast<std::size_t>(b_columns)) {}

  // Changes a and b; either all of b are like that, or b is a itself in all calls.
  void Add(const Tensor& a, const Tensor& b, Parallel& parallel) {
    const bool same = a.view().bytes == b.view().bytes;
    const auto rows = static_cast<std::size_t>(a.shape()[0]);
    a_.Shift(a, rows_ == 0);
    if (!same) b_.Shift(b, rows_ == 0);
    rows_ += static_cast<double>(rows);
    if (!same) return AddProduct(Product(a, b, parallel), 0, 0);
    // Of a symmetric matrix about the half, in panels of columns, the longest ones first.
    constexpr std::int64_t kPanel = 96;
    const std::int64_t columns = a.shape()[1];
    parallel.For((columns + kPanel - 1) / kPanel, [&](std::int64_t i, int) {
      const std::int64_t first = i * kPanel;
      SerialParallel serial;
      const Tensor panel = Part(a, 0, rows, first, std::min(kPanel, columns - first));
      const Tensor below = Part(a, 0, rows, first, columns - first);
      AddProduct(Product(below, panel, serial), first, first);
    });
  }

  std::vector<double> Finish(bool same) const {
    const std::vector<double>&a = a_.sums, &b = same ? a_.sums : b_.sums;
    std::vector<double> out = sums_;
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t k = 0; k < b.size(); ++k) {
        const std::size_t at = same && k > i ? k * b.size() + i : i * b.size() + k;
        out[i * b.size() + k] = (sums_[at] - a[i] * b[k] / rows_) / rows_;
      }
    }
    return out;
  }

 private:
  // Adds to the sums from this row and column on.
  void AddProduct(const Tensor& product, std::int64_t row, std::int64_t column) {
    const std::int64_t columns = product.shape()[1],
                       pitch = std::ssize(sums_) / std::ssize(a_.sums);
    for (std::int64_t i = 0; i < product.shape()[0]; ++i) {
      double* to = sums_.data() + (row + i) * pitch + column;
      const float* from = product.data<float>() + i * columns;
      for (std::int64_t k = 0; k < columns; ++k) to[k] += from[k];
    }
  }

  // Sums of columns from which the first chunk's means were subtracted: then little cancels out.
  struct Columns {
    explicit Columns(std::size_t n) : first_means(n, 0), sums(n, 0) {}

    void Shift(const Tensor& t, bool first) {
      const auto rows = static_cast<std::size_t>(t.shape()[0]), n = sums.size();
      float* values = t.data<float>();
      if (first) {
        for (std::size_t r = 0; r < rows; ++r) {
          for (std::size_t c = 0; c < n; ++c) first_means[c] += values[r * n + c];
        }
        for (double& m : first_means) m /= static_cast<double>(rows);
      }
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < n; ++c) {
          float& v = values[r * n + c];
          v = static_cast<float>(v - first_means[c]);
          sums[c] += v;
        }
      }
    }

    std::vector<double> first_means, sums;
  };

  double rows_ = 0;
  std::vector<double> sums_;
  Columns a_, b_;
};

// What one group of the convolution multiplies its weights with, [pixels, taps].
Tensor Patches(const Node& conv, const Shape& w, std::span<const Tensor* const> inputs,
               std::span<const OutputPixel> pixels, std::int64_t group, Parallel& parallel) {
  const std::int64_t taps = w.NumElements(1, 4);
  Tensor patches(DType::kFloat32, {static_cast<std::int64_t>(pixels.size()), taps});
  std::vector<ConvParams> params;
  for (const Tensor* x : inputs) params.push_back(ReadConvParams(conv.op, x->shape(), w));
  const auto copy = [&](std::int64_t n, int) {
    const OutputPixel& pixel = pixels[static_cast<std::size_t>(n)];
    float* to = patches.data<float>() + n * taps;
    const ConvParams& p = params[pixel.sample];
    const float* image = inputs[pixel.sample]->data<float>() +
                         (pixel.image * p.in_channels + group * w[1]) * p.in_height * p.in_width;
    for (std::int64_t c = 0; c < w[1]; ++c) {
      for (std::int64_t i = 0; i < w[2]; ++i) {
        for (std::int64_t j = 0; j < w[3]; ++j) {
          const std::int64_t y = pixel.y * p.stride_h - p.pad_top + i * p.dilation_h;
          const std::int64_t x = pixel.x * p.stride_w - p.pad_left + j * p.dilation_w;
          const bool inside = y >= 0 && y < p.in_height && x >= 0 && x < p.in_width;
          *to++ = inside ? image[(c * p.in_height + y) * p.in_width + x] : 0.0f;
        }
      }
    }
  };
  parallel.For(std::ssize(pixels), copy);
  return patches;
}

// A square matrix, row-major.
struct Matrix {
  explicit Matrix(std::size_t size) : n(size), values(size * size, 0) {}
  double* row(std::size_t i) { return values.data() + i * n; }
  const double* row(std::size_t i) const { return values.data() + i * n; }

  std::size_t n;
  std::vector<double> values;
};

// Eight sums side by side, so that they need not wait for each other.
double Inner(const double* a, const double* b, std::size_t n) {
  std::array<double, 8> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= n; i += sums.size()) {
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += a[i + k] * b[i + k];
  }
  double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// The upper triangular U with U^T U = h^-1, for a symmetric h whose eigenvalues are `least` or
// more.
Matrix FactorOfInverse(const Matrix& h, double least, Parallel& parallel) {
  const std::size_t n = h.n;
  // h = V V^T with V upper triangular: the Cholesky decomposition from the last row upwards. Rows
  // of V are kept, so that its inner products are of neighbours.
  Matrix v(n);
  constexpr std::size_t kRows = 64;  // that a thread takes at once
  for (std::size_t j = n; j-- > 0;) {
    const double* vj = v.row(j);
    const double rest = h.row(j)[j] - Inner(vj + j + 1, vj + j + 1, n - j - 1);
    Require(std::isfinite(rest), "inputs of a convolution are not finite");
    const double square = std::max(rest, least);  // less is a rounding error
    const double diagonal = std::sqrt(square);
    v.row(j)[j] = diagonal;
    const auto rows = [&](std::int64_t part, int) {
      const std::size_t begin = static_cast<std::size_t>(part) * kRows;
      for (std::size_t i = begin; i < std::min(begin + kRows, j); ++i) {
        v.row(i)[j] = (h.row(i)[j] - Inner(v.row(i) + j + 1, vj + j + 1, n - j - 1)) / diagonal;
      }
    };
    if (j > 0) parallel.For(static_cast<std::int64_t>((j + kRows - 1) / kRows), rows);
  }
  // U = V^-1, row by row from below: V U = I.
  Matrix u(n);
  for (std::size_t i = n; i-- > 0;) {
    double* ui = u.row(i);
    const double* vi = v.row(i);
    ui[i] = 1;
    for (std::size_t k = i + 1; k < n; ++k) {
      const double* uk = u.row(k);
      for (std::size_t j = k; j < n; ++j) ui[j] -= vi[k] * uk[j];
    }
    for (std::size_t j = i; j < n; ++j) ui[j] /= vi[i];
  }
  return u;
}

double Damping(const std::vector<double>& h, std::size_t n) {
  double trace = 0;
  for (std::size_t i = 0; i < n; ++i) trace += h[i * n + i];
  // Where inputs are constant, rounding errors are all there is: nothing is to be learnt of them.
  return std::max(kDamping * trace / static_cast<double>(n), 1e-10);
}

// `h` with its rows and columns in this order, damped.
Matrix Ordered(const std::vector<double>& h, const std::vector<std::size_t>& order,
               double damping) {
  Matrix out(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = 0; j < order.size(); ++j) {
      out.row(i)[j] = h[order[i] * order.size() + order[j]];
    }
    out.row(i)[i] += damping;
  }
  return out;
}

// row += step * U^T U.
void AddProduct(const std::vector<double>& step, const Matrix& u, std::vector<double>& row) {
  const std::size_t n = u.n;
  for (std::size_t i = 0; i < n; ++i) {
    const double* ui = u.row(i);
    const double inner = Inner(step.data() + i, ui + i, n - i);
    for (std::size_t j = i; j < n; ++j) row[j] += inner * ui[j];
  }
}

// The weights of one group of outputs.
void FitGroup(const Node& conv, const Tensor& weights, std::span<const Tensor* const> inputs,
              std::span<const OutputPixel> pixels, const Tensor& targets, float x_scale, bool clip,
              std::int64_t group, std::int64_t outputs, Parallel& parallel, LayerWeights& out) {
  const Shape& w = weights.shape();
  const auto taps = static_cast<std::size_t>(w.NumElements(1, 4));
  Covariance xx(w.NumElements(1, 4), w.NumElements(1, 4)), yx(outputs, w.NumElements(1, 4));
  for (std::size_t first = 0; first < pixels.size(); first += kChunk) {
    const std::size_t count = std::min(kChunk, pixels.size() - first);
    const Tensor x = Patches(conv, w, inputs, pixels.subspan(first, count), group, parallel);
    const Tensor y = Part(targets, first, count, group * outputs, outputs);
    const Tensor copy = x.Clone();
    yx.Add(y, copy, parallel);
    xx.Add(x, x, parallel);
  }
  const std::vector<double> h = xx.Finish(true), correlation = yx.Finish(false);
  // Those that matter most are rounded first, while there is most left to make up for it.
  std::vector<std::size_t> order(taps);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return h[a * taps + a] > h[b * taps + b]; });
  const double damping = Damping(h, taps);
  const Matrix u = FactorOfInverse(Ordered(h, order, damping), damping, parallel);
  const auto fit_row = [&](std::int64_t o, int) {
    const std::int64_t channel = group * outputs + o;
    const float* original = weights.data<float>() + channel * static_cast<std::int64_t>(taps);
    // The least squares solution: w += (cov(y, x) - w cov(x, x)) (cov(x, x) + damping)^-1.
    std::vector<double> row(taps), step(taps);
    const std::vector<double> doubles(original, original + taps);
    for (std::size_t i = 0; i < taps; ++i) {
      row[i] = original[order[i]];
      step[i] = correlation[static_cast<std::size_t>(o) * taps + order[i]];
      step[i] -= Inner(h.data() + order[i] * taps, doubles.data(), taps);
    }
    AddProduct(step, u, row);
    const std::vector<float> moved(row.begin(), row.end());
    const double b = out.bias.empty() ? 0 : out.bias[static_cast<std::size_t>(channel)];
    const float scale = ChooseWeightScale(moved, clip, LeastWeightScale(b, x_scale));
    out.scales.data<float>()[channel] = scale;
    std::int8_t* q = out.values.data<std::int8_t>() + channel * static_cast<std::int64_t>(taps);
    for (std::size_t i = 0; i < taps; ++i) {
      const double rounded = QuantizeWeight(row[i], scale);
      q[order[i]] = static_cast<std::int8_t>(rounded);
      const double error = (row[i] - rounded * scale) / u.row(i)[i];
      for (std::size_t k = i + 1; k < taps; ++k) row[k] -= error * u.row(i)[k];
    }
  };
  parallel.For(outputs, fit_row);
}

}  // namespace

std::vector<OutputPixel> ChoosePixels(std::span<const Shape> shapes, std::size_t count) {
  std::int64_t total = 0;
  for (const Shape& s : shapes) total += s[0] * s[2] * s[3];
  const std::int64_t wanted = std::min(total, static_cast<std::int64_t>(count));
  std::vector<OutputPixel> pixels;
  std::size_t sample = 0;
  std::int64_t before = 0;  // pixels of earlier samples
  std::uint64_t state = 1;
  for (std::int64_t i = 0; i < wanted; ++i) {
    // One in each of `wanted` equal parts, at random.
    const std::int64_t first = total * i / wanted, last = total * (i + 1) / wanted;
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::int64_t at =
        first + static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(last - first));
    while (at - before >= shapes[sample][0] * shapes[sample][2] * shapes[sample][3]) {
      before += shapes[sample][0] * shapes[sample][2] * shapes[sample][3];
      ++sample;
    }
    at -= before;
    const std::int64_t height = shapes[sample][2], width = shapes[sample][3];
    pixels.push_back({sample, at / (height * width), at / width % height, at % width});
  }
  return pixels;
}

Tensor ReadPixels(std::span<const Outputs> outputs, std::span<const OutputPixel> pixels) {
  const std::int64_t channels = outputs[0][0].shape()[1];
  Tensor out(DType::kFloat32, {static_cast<std::int64_t>(pixels.size()), channels});
  float* to = out.data<float>();
  for (const OutputPixel& p : pixels) {
    const Tensor& t = outputs[p.sample][0];
    const std::int64_t plane = t.shape()[2] * t.shape()[3];
    const float* from = t.data<float>() + p.image * channels * plane + p.y * t.shape()[3] + p.x;
    for (std::int64_t c = 0; c < channels; ++c) *to++ = from[c * plane];
  }
  return out;
}

void FitWeights(const Node& conv, const Tensor& weights, std::span<const Tensor* const> inputs,
                std::span<const OutputPixel> pixels, const Tensor& targets, float x_scale,
                bool clip, Parallel& parallel, LayerWeights& out) {
  if (weights.shape().NumElements(1, weights.shape().rank()) > kMostTaps) return;
  const std::int64_t groups = conv.op.attributes.Int("group", 1);
  const std::int64_t outputs = weights.shape()[0] / groups;
  const auto fit = [&](std::int64_t group, Parallel& threads) {
    FitGroup(conv, weights, inputs, pixels, targets, x_scale, clip, group, outputs, threads, out);
  };
  if (groups == 1) return fit(0, parallel);
  parallel.For(groups, [&](std::int64_t group, int) {
    SerialParallel serial;
    fit(group, serial);
  });
}

}  // namespace tessera
