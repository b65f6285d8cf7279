#include "pipeline/session_model.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "ops/error.h"

namespace tessera {
namespace {

bool IsFloat(DType type) { return type == DType::kFloat32 || type == DType::kFloat16; }

std::string Describe(const ValueDecl& value) {
  std::string text = StrCat("'", value.name, "' ", Name(value.dtype));
  if (!value.has_shape) return text + " of unknown shape";
  text += " [";
  for (std::size_t i = 0; i < value.dims.size(); ++i)
    text += (i ? ", " : "") + (value.dims[i] < 0 ? "?" : std::to_string(value.dims[i]));
  return text + "]";
}

class SessionModel final : public TileModel {
 public:
  SessionModel(std::shared_ptr<Session> session, std::string name)
      : session_(std::move(session)), name_(std::move(name)) {
    FindTraits();
    EstimateMemory();
  }

  const std::string& name() const override { return name_; }
  const ModelTraits& traits() const override { return traits_; }

  void Run(const TensorView& input, std::vector<Tensor>& outputs, Parallel& parallel) override {
    if (crop_x_ == 0 && crop_y_ == 0) {
      RunNetwork(input, outputs, parallel);
    } else {
      Tensor padded = outputs.size() > kPadded ? std::exchange(outputs[kPadded], {}) : Tensor();
      RepeatEdges(input, padded);
      RunNetwork(padded.view(), outputs, parallel);
      outputs.resize(kPadded + 1);
      outputs[kPadded] = std::move(padded);
    }
    const ReceptiveField& field = traits_.field;
    const Shape expected{1, traits_.channels,
                         input.shape[2] * field.height.scale_num / field.height.scale_den,
                         input.shape[3] * field.width.scale_num / field.width.scale_den};
    Require(outputs[0].shape() == expected, name_, ": makes ", outputs[0].shape(), " of ",
            input.shape, ", not the ", expected, " that its scale promises");
  }

  std::size_t RunBytes(std::int64_t width, std::int64_t height) const override {
    const auto pixels = static_cast<double>((width + 2 * crop_x_) * (height + 2 * crop_y_));
    return static_cast<std::size_t>(bytes_ + bytes_per_pixel_ * pixels);
  }

 private:
  // What `outputs` of Run holds beside the result, so that the next run finds it there.
  static constexpr std::size_t kHalf = 1, kPadded = 2;

  // The picture with the border that the network crops, made of its outermost pixels. Between tiles
  // these lie in the halo: only at the border of the whole picture does it matter what they are.
  void RepeatEdges(const TensorView& input, Tensor& padded) const {
    const std::int64_t channels = input.shape[1], h = input.shape[2], w = input.shape[3];
    const Shape shape{1, channels, h + 2 * crop_y_, w + 2 * crop_x_};
    if (!padded.view().present() || padded.shape() != shape) {
      padded = Tensor(DType::kFloat32, shape);
    }
    float* to = padded.data<float>();
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t y = -crop_y_; y < h + crop_y_; ++y) {
        const float* row =
            input.data<const float>() + (c * h + std::clamp<std::int64_t>(y, 0, h - 1)) * w;
        to = std::fill_n(to, crop_x_, row[0]);
        to = std::copy_n(row, w, to);
        to = std::fill_n(to, crop_x_, row[w - 1]);
      }
    }
  }

  void RunNetwork(const TensorView& input, std::vector<Tensor>& outputs, Parallel& parallel) {
    const NamedView named{session_->inputs()[0].name, input};
    if (half_output_) {
      RunToHalf(named, outputs, parallel);
    } else {
      session_->Run({&named, 1}, outputs, &parallel);
    }
  }

  // A float16 output waits in outputs[kHalf] and is widened into outputs[0].
  void RunToHalf(const NamedView& input, std::vector<Tensor>& outputs, Parallel& parallel) const {
    outputs.resize(2);
    std::vector<Tensor> halves;
    halves.push_back(std::exchange(outputs[kHalf], {}));
    session_->Run({&input, 1}, halves, &parallel);
    if (outputs[0].shape() != halves[0].shape() || !outputs[0].view().present())
      outputs[0] = Tensor(DType::kFloat32, halves[0].shape());
    const auto* from = halves[0].data<std::uint16_t>();
    auto* to = outputs[0].data<float>();
    for (std::int64_t i = 0; i < halves[0].size(); ++i) to[i] = HalfToFloat(from[i]);
    outputs[kHalf] = std::move(halves[0]);
  }

  void FindTraits() {
    Require(session_->inputs().size() == 1, name_, ": upscaling models have one input, this has ",
            session_->inputs().size());
    const ValueDecl& input = session_->inputs()[0];
    const bool picture = IsFloat(input.dtype) && (!input.has_shape || input.dims.size() == 4);
    const std::int64_t channels = picture && input.has_shape ? input.dims[1] : -1;
    Require(picture && (channels == 3 || channels == 1 || channels == -1), name_, ": input ",
            Describe(input), " is no picture: float [1, 3 or 1, height, width] is needed");
    const std::int64_t declared_height = input.has_shape ? input.dims[2] : -1;
    const std::int64_t declared_width = input.has_shape ? input.dims[3] : -1;
    const bool is_static = declared_height > 0 && declared_width > 0;

    // The first size that the network accepts decides. A declared size is tried after others: most
    // networks run at any size, whatever the file says.
    std::vector<Shape> probes;
    if (!is_static) {
      if (channels != 1) probes.push_back(FindAcceptedShape(3));
      if (channels != 3) probes.push_back(FindAcceptedShape(1));
    } else {
      const std::int64_t c = channels == -1 ? 3 : channels;
      // Another size than the declared one, but one that has the same small factors.
      probes = {{1, c, 2 * declared_height, 2 * declared_width},
                {1, c, declared_height, declared_width}};
    }
    std::string refusal;
    for (std::size_t i = 0; i < probes.size(); ++i) {
      try {
        Examine(probes[i]);
      } catch (const Error& error) {
        // Of several, the one about the shape that the model most likely means.
        if (refusal.empty() || is_static) refusal = error.what();
        continue;
      }
      const std::int64_t h = probes[i][2], w = probes[i][3];
      if ((is_static && i == 1) || !InferOutput({1, probes[i][1], 2 * h, 2 * w}))
        traits_.fixed_input = {w - 2 * crop_x_, h - 2 * crop_y_};
      return;
    }
    throw Error(refusal);
  }

  // The output's shape, unless the network refuses the input's.
  std::optional<Shape> InferOutput(const Shape& shape) {
    try {
      return session_->InferOutputs({&shape, 1})[0].shape;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  // A square that the network accepts; any if it accepts none of those that are tried. Of
  // kMaxMultiple sizes in a row one is a multiple of whatever number the network needs one of.
  Shape FindAcceptedShape(std::int64_t channels) {
    constexpr std::int64_t kFirst = 192, kMaxMultiple = 256;
    for (std::int64_t size = kFirst; size < kFirst + kMaxMultiple; ++size)
      if (const Shape shape{1, channels, size, size}; InferOutput(shape)) return shape;
    return {1, channels, kFirst, kFirst};
  }

  // Fills traits_ from how the network treats an input of this shape. Throws Error if it refuses.
  void Examine(const Shape& shape) {
    const TensorView output = session_->InferOutputs({&shape, 1})[0];
    Require(IsFloat(output.dtype) && output.shape.rank() == 4 && output.shape[0] == 1 &&
                output.shape[1] == shape[1] && output.shape[2] > 0 && output.shape[3] > 0,
            name_, ": is no upscaling model: makes ", Name(output.dtype), " ", output.shape, " of ",
            shape);
    half_output_ = output.dtype == DType::kFloat16;
    traits_.channels = static_cast<int>(shape[1]);
    sample_ = shape;
    const std::optional<ReceptiveField> field = session_->FindReceptiveField({&shape, 1});
    traits_.local = field.has_value();
    traits_.field = field ? *field : FieldOfSizes(shape, output.shape);
    crop_x_ = TakeCrop(traits_.field.width, shape[3], output.shape[3]);
    crop_y_ = TakeCrop(traits_.field.height, shape[2], output.shape[2]);
    Require(crop_x_ >= 0 && crop_y_ >= 0 && 2 * crop_x_ < shape[3] && 2 * crop_y_ < shape[2], name_,
            ": makes ", output.shape, " of ", shape,
            ": not its size times a scale, nor as much less on both sides");
  }

  // Scale and alignment from sizes alone: by how much the output grows with the input, and in what
  // steps.
  ReceptiveField FieldOfSizes(const Shape& in, const Shape& out) {
    const std::optional<Shape> grown = InferOutput({1, in[1], 2 * in[2], 2 * in[3]});
    const auto axis = [&](int a) {
      // As much as itself, if it takes this size only.
      const std::int64_t more = grown && (*grown)[a] > out[a] ? (*grown)[a] - out[a] : out[a];
      const std::int64_t gcd = std::gcd(more, in[a]);
      ReceptiveField::Axis field{.scale_num = more / gcd, .scale_den = in[a] / gcd};
      if (grown) field.alignment = FindAlignment(in, out, a, field);
      return field;
    };
    return {axis(2), axis(3)};
  }

  // The least step in which dimension `a` of the input may grow.
  int FindAlignment(const Shape& in, const Shape& out, int a, const ReceptiveField::Axis& field) {
    for (std::int64_t step = 1; step < in[a]; ++step) {
      Shape longer = in;
      longer[a] += step;
      const std::optional<Shape> size = InferOutput(longer);
      if (size && ((*size)[a] - out[a]) * field.scale_den == step * field.scale_num)
        return static_cast<int>(step);
    }
    return static_cast<int>(in[a]);
  }

  // How many pixels of the input are missing from the output on either side, as with convolutions
  // that do not pad; the field becomes that for inputs that are padded so. -1 if this does not
  // explain the size.
  static std::int64_t TakeCrop(ReceptiveField::Axis& axis, std::int64_t in, std::int64_t out) {
    const std::int64_t missing = in * axis.scale_num - out * axis.scale_den;
    if (missing < 0 || missing % (2 * axis.scale_num) != 0) return -1;
    const std::int64_t crop = missing / (2 * axis.scale_num);
    axis.before += static_cast<int>(crop);
    axis.after = std::max(0, axis.after - static_cast<int>(crop));
    axis.exact_before += static_cast<int>(crop);
    axis.exact_after = std::max(0, axis.exact_after - static_cast<int>(crop));
    return crop;
  }

  // Buffers grow with the area; two sizes give the line.
  void EstimateMemory() {
    const double area = static_cast<double>(sample_[2] * sample_[3]);
    const double scale = static_cast<double>(traits_.field.height.scale_num) /
                         static_cast<double>(traits_.field.height.scale_den) *
                         static_cast<double>(traits_.field.width.scale_num) /
                         static_cast<double>(traits_.field.width.scale_den);
    const double arena = static_cast<double>(session_->ArenaBytes({&sample_, 1}));
    bytes_per_pixel_ = arena / area;
    if (!traits_.fixed_input) {
      const Shape larger{1, traits_.channels, 2 * sample_[2], 2 * sample_[3]};
      const double larger_arena = static_cast<double>(session_->ArenaBytes({&larger, 1}));
      bytes_per_pixel_ = (larger_arena - arena) / (3 * area);
      bytes_ = std::max(0.0, arena - bytes_per_pixel_ * area);
    }
    bytes_per_pixel_ += 4.0 * traits_.channels * (1 + scale);
  }

  std::shared_ptr<Session> session_;
  std::string name_;
  ModelTraits traits_;
  bool half_output_ = false;
  std::int64_t crop_x_ = 0, crop_y_ = 0;  // input pixels on either side that the network crops
  Shape sample_;                          // a shape that the network accepts
  double bytes_ = 0, bytes_per_pixel_ = 0;
};

}  // namespace

std::unique_ptr<TileModel> MakeSessionModel(std::shared_ptr<Session> session, std::string name) {
  return std::make_unique<SessionModel>(std::move(session), std::move(name));
}

}  // namespace tessera
