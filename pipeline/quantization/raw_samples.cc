#include "pipeline/quantization/raw_samples.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/input_stream.h"
#include "pipeline/read_number.h"

namespace tessera {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 34;

struct RawSpec {
  std::string name;  // of the input; empty: the only one
  std::optional<Shape> shape;
  std::string file;
};

std::optional<Shape> ParseShape(std::string_view text) {
  Shape shape;
  while (true) {
    const std::size_t end = std::min(text.find('x'), text.size());
    const auto dim = ReadNumber<std::int64_t>(text.substr(0, end), 1, std::int64_t{1} << 30);
    if (!dim || shape.rank() == Shape::kMaxRank) return std::nullopt;
    shape.PushBack(*dim);
    if (end == text.size()) return shape;
    text.remove_prefix(end + 1);
  }
}

// Names of inputs and files may hold colons: the first part between two that is a shape counts.
RawSpec ParseSpec(const std::string& text) {
  for (std::size_t colon = text.find(':'); colon != std::string::npos;) {
    const std::size_t end = text.find(':', colon + 1);
    if (end == std::string::npos) break;
    if (const auto shape = ParseShape(std::string_view(text).substr(colon + 1, end - colon - 1)))
      return {text.substr(0, colon), shape, text.substr(end + 1)};
    colon = end;
  }
  return {"", std::nullopt, text};
}

std::size_t IndexOf(const Session& network, const RawSpec& spec) {
  const std::vector<ValueDecl>& inputs = network.inputs();
  std::string names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name == spec.name) return i;
    names += (i == 0 ? "" : ", ") + inputs[i].name;
  }
  Require(spec.name.empty(), network.name(), ": has no input '", spec.name, "' (inputs: ", names,
          ")");
  Require(inputs.size() == 1, DisplayName(spec.file), ": for which of the inputs ", names,
          " is it? NAME:1x3x64x64:FILE.f32 says it");
  return 0;
}

Shape ShapeOf(const ValueDecl& input, const RawSpec& spec) {
  if (spec.shape) return *spec.shape;
  Require(input.has_shape && std::ranges::none_of(input.dims, [](auto d) { return d < 0; }),
          DisplayName(spec.file), ": the shape of input '", input.name, "' is not fixed; ",
          input.name, ":1x3x64x64:FILE.f32 says what it is here");
  return Shape(input.dims);
}

std::vector<Tensor> ReadTensors(const RawSpec& spec, const Shape& shape) {
  return NamingFile(spec.file, [&] {
    const FilePtr file = OpenInput(spec.file);
    const std::string bytes = ReadToEnd(file.get(), kMaxBytes);
    const std::size_t size = static_cast<std::size_t>(shape.NumElements()) * sizeof(float);
    Require(!bytes.empty() && bytes.size() % size == 0, "has ", bytes.size(),
            " bytes, which is no multiple of the ", size, " of ", shape);
    std::vector<Tensor> tensors;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      std::memcpy(tensors.emplace_back(DType::kFloat32, shape).data<float>(), bytes.data() + at,
                  size);
    }
    return tensors;
  });
}

}  // namespace

bool IsRawSpec(const std::string& text) { return text.ends_with(".f32"); }

std::vector<Sample> ReadRawSamples(const Session& network, std::span<const std::string> texts) {
  const std::vector<ValueDecl>& inputs = network.inputs();
  std::vector<std::vector<Tensor>> by_input(inputs.size());
  for (const std::string& text : texts) {
    const RawSpec spec = ParseSpec(text);
    const std::size_t i = IndexOf(network, spec);
    for (Tensor& tensor : ReadTensors(spec, ShapeOf(inputs[i], spec)))
      by_input[i].push_back(std::move(tensor));
  }
  std::vector<Sample> samples(by_input.empty() ? 0 : by_input[0].size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Require(by_input[i].size() == samples.size(), network.name(), ": ", samples.size(),
            " samples for input '", inputs[0].name, "', ", by_input[i].size(), " for '",
            inputs[i].name, "'");
    for (std::size_t k = 0; k < samples.size(); ++k)
      samples[k].push_back(std::move(by_input[i][k]));
  }
  return samples;
}

}  // namespace tessera
