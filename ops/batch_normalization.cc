// BatchNormalization: y = (x - mean) / sqrt(variance + epsilon) * scale + bias, with the given
// statistics of each channel, or (in training) those of the batch.
// https://onnx.ai/onnx/operators/onnx__BatchNormalization.html
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "ops/element_loops.h"
#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/op.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

constexpr std::size_t kScale = 1, kBias = 2, kMean = 3, kVariance = 4;
constexpr std::size_t kRunningMean = 1, kRunningVariance = 2, kSavedMean = 3, kSavedVariance = 4;

// An attribute since opset 14; before, more outputs than Y ask for it.
bool IsTraining(const OpNode& node, std::size_t outputs) {
  return node.opset >= 14 ? node.attributes.Int("training_mode", 0) != 0 : outputs > 1;
}

// Up to opset 8 there are statistics of every element of an image, if the attribute says so.
bool IsSpatial(const OpNode& node) {
  return node.opset >= 9 || node.attributes.Int("spatial", 1) != 0;
}

// x as [images, channels, plane], with statistics of each channel.
struct Planes {
  Planes(const OpNode& node, const Shape& x) {
    if (x.rank() > 1) {
      images = x[0];
      const int end = IsSpatial(node) ? 2 : x.rank();
      for (int i = 1; i < end; ++i) statistics.PushBack(x[i]);
      plane = x.NumElements(end, x.rank());
    } else {
      statistics.PushBack(1);
      plane = x[0];
    }
    channels = statistics.NumElements();
  }

  std::int64_t images = 1, channels, plane;
  Shape statistics;
};

void InferBatchNormalization(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  const int opset = context.node.opset;
  RequireType(x.dtype, FloatTypes());
  Require(x.shape.rank() >= 1, "X has no dimensions");
  const Planes planes(context.node, x.shape);
  for (std::size_t i = kScale; i <= kVariance; ++i) {
    const TensorInfo& in = context.Input(i);
    Require(in.shape == planes.statistics, "input ", i, " has shape ", in.shape, " instead of ",
            planes.statistics);
    RequireType(in.dtype, FloatTypes());
    // Scale and bias have a type of their own since opset 15, mean and variance since opset 14.
    const DType pair = context.Input(i <= kBias ? kScale : kMean).dtype;
    Require(in.dtype == (opset >= (i <= kBias ? 15 : 14) ? pair : x.dtype), "input ", i,
            " has type ", in.dtype);
  }
  context.SetOutput(0, x.dtype, x.shape);
  const std::size_t outputs = context.outputs.size();
  const bool training = IsTraining(context.node, outputs);
  Require(outputs == 1 || (training && outputs <= (opset >= 14 ? 3u : 5u)), outputs,
          " outputs when the statistics are ", training ? "the batch's" : "given");
  for (std::size_t i = 1; i < outputs; ++i) {
    context.SetOutput(i, context.Input(kMean).dtype, planes.statistics);
  }
}

double ElementAt(const TensorView& t, std::int64_t i) {
  return Dispatch(t.dtype, FloatTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return static_cast<double>(static_cast<ComputeType<T>>(t.data<const T>()[i]));
  });
}

void StoreElement(const TensorView& t, std::int64_t i, double value) {
  Dispatch(t.dtype, FloatTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    t.data<T>()[i] = static_cast<T>(static_cast<ComputeType<T>>(value));
  });
}

struct Statistics {
  double mean, variance;
};

// y = x * factor + offset of one channel.
struct Affine {
  double factor, offset;
};

class AffineReader {
 public:
  explicit AffineReader(const OpNode& node)
      : epsilon_(static_cast<double>(node.attributes.Float("epsilon", 1e-5f))) {}
  Affine Read(std::span<const TensorView> inputs, std::int64_t channel) const {
    return Read(inputs, channel,
                {ElementAt(inputs[kMean], channel), ElementAt(inputs[kVariance], channel)});
  }
  Affine Read(std::span<const TensorView> inputs, std::int64_t channel,
              const Statistics& statistics) const {
    const double factor =
        ElementAt(inputs[kScale], channel) / std::sqrt(statistics.variance + epsilon_);
    return {factor, ElementAt(inputs[kBias], channel) - statistics.mean * factor};
  }

 private:
  double epsilon_;
};

// Row-major; operands need not be constant.
template <typename T>
class PlanarBatchNormalization final : public Kernel {
 public:
  explicit PlanarBatchNormalization(const PrepareContext& context)
      : reader_(context.node),
        planes_(context.node, context.inputs[0].shape),
        training_(IsTraining(context.node, context.outputs.size())),
        momentum_(static_cast<double>(context.node.attributes.Float("momentum", 0.9f))),
        vector_(!context.reference) {
    for (std::size_t i = 1; i < context.outputs.size(); ++i) {
      wanted_[i] = context.outputs[i].present;
    }
  }
  std::string_view name() const override {
    return training_ ? "batch_normalization_training" : "batch_normalization";
  }
  std::size_t ScratchBytesPerThread() const override {
    return static_cast<std::size_t>(planes_.channels) * sizeof(Affine);
  }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }
  void Run(const RunContext& context) const override {
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    const std::int64_t channels = planes_.channels, plane = planes_.plane;
    Affine* affine = context.Scratch<Affine>(0);  // read by all threads
    const auto read = [&](std::int64_t c, int) {
      affine[c] = training_ ? reader_.Read(context.inputs, c, Learn(context, in, c))
                            : reader_.Read(context.inputs, c);
    };
    if (training_) {
      context.parallel.For(channels, read);
    } else {
      for (std::int64_t c = 0; c < channels; ++c) read(c, 0);
    }
    if (plane == 1) {
      context.parallel.For(planes_.images, [&](std::int64_t image, int) {
        const std::int64_t at = image * channels;
        for (std::int64_t c = 0; c < channels; ++c) {
          out[at + c] = Apply(affine[c], in[at + c]);
        }
      });
      return;
    }
    context.parallel.For(planes_.images * channels, [&](std::int64_t index, int) {
      Row(affine[index % channels], in + index * plane, out + index * plane);
    });
  }

 private:
  static T Apply(const Affine& a, T x) {
    const auto value = static_cast<double>(static_cast<ComputeType<T>>(x));
    return static_cast<T>(static_cast<ComputeType<T>>(value * a.factor + a.offset));
  }

  void Row(const Affine& a, const T* x, T* y) const {
    if constexpr (std::is_same_v<T, float>) {
      if (vector_) {
        const auto factor = static_cast<float>(a.factor), offset = static_cast<float>(a.offset);
        return ApplyScaleShift(x, {&factor, RowOperand::kScalar}, {&offset, RowOperand::kScalar}, y,
                               planes_.plane);
      }
    }
    for (std::int64_t i = 0; i < planes_.plane; ++i) y[i] = Apply(a, x[i]);
  }

  // Sum of function(x) over the elements of a channel.
  template <typename Function>
  double Sum(const T* in, std::int64_t channel, const Function& function) const {
    double sum = 0;
    for (std::int64_t n = 0; n < planes_.images; ++n) {
      const T* x = in + (n * planes_.channels + channel) * planes_.plane;
      for (std::int64_t i = 0; i < planes_.plane; ++i) {
        sum += function(static_cast<double>(static_cast<ComputeType<T>>(x[i])));
      }
    }
    return sum;
  }

  // The batch's statistics of a channel; stores what the running ones become.
  Statistics Learn(const RunContext& context, const T* in, std::int64_t channel) const {
    const double count = static_cast<double>(planes_.images * planes_.plane);
    const double mean = Sum(in, channel, [](double x) { return x; }) / count;
    const double variance =
        Sum(in, channel, [=](double x) { return (x - mean) * (x - mean); }) / count;
    const auto blend = [&](std::size_t input, double now) {
      return ElementAt(context.inputs[input], channel) * momentum_ + now * (1 - momentum_);
    };
    const auto store = [&](std::size_t output, double value) {
      if (wanted_[output]) StoreElement(context.outputs[output], channel, value);
    };
    store(kRunningMean, blend(kMean, mean));
    store(kRunningVariance, blend(kVariance, variance));
    store(kSavedMean, mean);
    store(kSavedVariance, variance);
    return {mean, variance};
  }

  AffineReader reader_;
  Planes planes_;
  bool training_;
  double momentum_;
  bool vector_;
  std::array<bool, 5> wanted_{};  // the outputs of training that the node has
};

// Blocked, with constant operands.
class BlockedBatchNormalization final : public Kernel {
 public:
  explicit BlockedBatchNormalization(const PrepareContext& context)
      : loops_(ElementLoops::Blocked(context.inputs[0].shape,
                                     std::array{ElementLoops::BlockedOperand::kSame,
                                                ElementLoops::BlockedOperand::kChannels},
                                     std::array{context.inputs[0].shape, Shape()})) {
    const AffineReader reader(context.node);
    std::array<TensorView, 5> views;
    for (std::size_t i = kScale; i <= kVariance; ++i) views[i] = context.inputs[i].constant->view();
    for (std::int64_t c = 0; c < context.inputs[0].shape[1]; ++c) {
      const Affine a = reader.Read(views, c);
      factors_.push_back(static_cast<float>(a.factor));
      offsets_.push_back(static_cast<float>(a.offset));
    }
    const std::size_t padded = RoundUp(factors_.size(), static_cast<std::size_t>(FloatLanes()));
    factors_.resize(padded);
    offsets_.resize(padded);
  }
  std::string_view name() const override { return "batch_normalization_blocked"; }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }
  void Run(const RunContext& context) const override {
    const float* in = context.inputs[0].data<const float>();
    float* out = context.outputs[0].data<float>();
    const auto kind = loops_.IsConstant(2) ? RowOperand::kLanes : RowOperand::kStream;
    loops_.Run(context.parallel, [&](const ElementLoops::Offsets& at, std::int64_t n) {
      ApplyScaleShift(in + at[1], {factors_.data() + at[2], kind}, {offsets_.data() + at[2], kind},
                      out + at[0], n);
    });
  }

 private:
  ElementLoops loops_;
  std::vector<float> factors_, offsets_;  // padded to whole vectors
};

LayoutChoice BatchNormalizationLayouts(const LayoutContext& context) {
  if (IsTraining(context.node, context.outputs.size()) || !IsSpatial(context.node)) return {};
  for (std::size_t i = kScale; i <= kVariance; ++i) {
    if (context.inputs[i].constant == nullptr) return {};
  }
  return FollowInput0(context);
}

std::unique_ptr<Kernel> PrepareBatchNormalization(const PrepareContext& context) {
  if (context.inputs[0].layout == Layout::kBlocked) {
    return std::make_unique<BlockedBatchNormalization>(context);
  }
  return Dispatch(context.inputs[0].dtype, FloatTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<PlanarBatchNormalization<typename decltype(tag)::type>>(context);
  });
}

std::optional<SpatialField> BatchNormalizationField(const FieldContext& context, std::size_t i) {
  if (IsTraining(context.node, context.outputs.size()) || !IsSpatial(context.node)) {
    return std::nullopt;
  }
  return PointwiseField(context, i);
}

}  // namespace

extern const OpDef kBatchNormalizationOp;
const OpDef kBatchNormalizationOp = {
    .type = "BatchNormalization",
    .min_inputs = 5,
    .max_inputs = 5,
    .infer = InferBatchNormalization,
    .prepare = PrepareBatchNormalization,
    .layouts = BatchNormalizationLayouts,
    .field = BatchNormalizationField,
};

}  // namespace tessera
