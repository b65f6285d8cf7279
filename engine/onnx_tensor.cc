#include "engine/onnx_tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>

#include "engine/unsupported.h"

namespace tessera {
namespace {

// Weights in row-major order are little-endian in the file, as in memory.
static_assert(std::endian::native == std::endian::little);

// Copies a repeated field of a wider type, as TensorProto stores small types, into `tensor`.
template <typename T, typename Field>
void CopyTyped(const Field& field, Tensor& tensor, const std::string& what) {
  Require(field.size() == tensor.size(), what, ": ", field.size(), " values for shape ",
          tensor.shape());
  T* out = tensor.data<T>();
  for (const auto& v : field) *out++ = static_cast<T>(v);
}

// A byte of a file may be anything; a bool is 0 or 1.
void NormalizeBools(const Tensor& tensor) {
  if (tensor.dtype() != DType::kBool) return;
  for (std::uint8_t& byte : tensor.values<std::uint8_t>()) byte = byte != 0 ? 1 : 0;
}

// Whether a file that is there lies in `folder` or below, links followed.
bool LiesWithin(const std::filesystem::path& file, const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(file, error);
  if (error) return false;
  const std::filesystem::path root = std::filesystem::canonical(folder, error);
  return !error &&
         std::mismatch(root.begin(), root.end(), target.begin(), target.end()).first == root.end();
}

Tensor ReadExternal(const onnx::TensorProto& proto, DType dtype, const Shape& shape,
                    const std::filesystem::path& folder, const std::string& what) {
  std::string location;
  std::int64_t offset = 0, length = -1;
  for (const auto& entry : proto.external_data()) {
    try {
      if (entry.key() == "location") location = entry.value();
      if (entry.key() == "offset") offset = std::stoll(entry.value());
      if (entry.key() == "length") length = std::stoll(entry.value());
    } catch (const std::exception&) {
      throw Error(StrCat(what, ": external data: '", entry.value(), "' is not a number"));
    }
  }
  Require(!folder.empty(), what, ": external data is not supported for models in memory");
  const std::filesystem::path relative = std::filesystem::path(location).lexically_normal();
  Require(!location.empty() && relative.is_relative() && *relative.begin() != "..", what,
          ": external data '", location, "' lies outside the model's folder");
  const std::filesystem::path path = folder / relative;
  std::error_code error;
  Require(std::filesystem::is_regular_file(path, error), what, ": external data '", path.string(),
          "' cannot be opened: it is not a file");
  Require(LiesWithin(path, folder), what, ": external data '", location,
          "' is a link that leads out of the model's folder");
  const auto bytes =
      static_cast<std::int64_t>(shape.NumElements()) * static_cast<std::int64_t>(SizeOf(dtype));
  Require(length == -1 || length == bytes, what, ": external data of ", length, " bytes for ",
          dtype, " ", shape, ", which takes ", bytes);
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  Require(in.good(), what, ": external data '", path.string(), "' cannot be opened");
  const std::streamoff size = in.tellg();
  Require(offset >= 0 && offset <= size && bytes <= size - offset, what, ": external data '",
          path.string(), "' has ", size, " bytes; ", bytes, " at offset ", offset, " are wanted");
  Tensor tensor(dtype, shape);
  in.seekg(offset);
  in.read(tensor.data<char>(), bytes);
  Require(in.gcount() == bytes, what, ": external data '", path.string(), "' cannot be read");
  NormalizeBools(tensor);
  return tensor;
}

}  // namespace

DType ToDType(int type, const std::string& what) {
  using P = onnx::TensorProto;
  if (const auto dtype = DTypeFromOnnx(type)) return *dtype;
  throw Unsupported(StrCat(what, ": element type ",
                           P::DataType_IsValid(type)
                               ? P::DataType_Name(static_cast<P::DataType>(type))
                               : std::to_string(type),
                           " is not supported"));
}

Tensor ReadTensor(const onnx::TensorProto& proto, const std::filesystem::path& folder,
                  const std::string& what) {
  const DType dtype = ToDType(proto.data_type(), what);
  Shape shape;
  std::size_t bytes = 0;
  try {
    shape = Shape(std::vector<std::int64_t>(proto.dims().begin(), proto.dims().end()));
    bytes = static_cast<std::size_t>(shape.NumElements()) * SizeOf(dtype);
  } catch (const Error& e) {
    throw Error(StrCat(what, ": ", e.what()));
  }
  RequireSupported(!proto.has_segment(), what, ": segmented tensors are not supported");
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    return ReadExternal(proto, dtype, shape, folder, what);
  }
  if (proto.has_raw_data()) {
    // Compared before anything is allocated: the shape may claim what the file cannot hold.
    Require(proto.raw_data().size() == bytes, what, ": ", proto.raw_data().size(), " bytes for ",
            dtype, " ", shape, ", which takes ", bytes);
    Tensor tensor(dtype, shape);
    if (bytes > 0) std::memcpy(tensor.view().bytes, proto.raw_data().data(), bytes);
    NormalizeBools(tensor);
    return tensor;
  }
  const std::int64_t values =
      std::max({proto.float_data_size(), proto.int32_data_size(), proto.int64_data_size(),
                proto.double_data_size(), proto.uint64_data_size()});
  Require(values == shape.NumElements(), what, ": ", values, " values for shape ", shape);
  Tensor tensor(dtype, shape);
  switch (dtype) {
    case DType::kFloat32:
      CopyTyped<float>(proto.float_data(), tensor, what);
      break;
    case DType::kFloat64:
      CopyTyped<double>(proto.double_data(), tensor, what);
      break;
    case DType::kInt64:
      CopyTyped<std::int64_t>(proto.int64_data(), tensor, what);
      break;
    case DType::kUint64:
      CopyTyped<std::uint64_t>(proto.uint64_data(), tensor, what);
      break;
    case DType::kUint32:
      CopyTyped<std::uint32_t>(proto.uint64_data(), tensor, what);
      break;
    case DType::kInt32:
      CopyTyped<std::int32_t>(proto.int32_data(), tensor, what);
      break;
    case DType::kInt16:
      CopyTyped<std::int16_t>(proto.int32_data(), tensor, what);
      break;
    case DType::kInt8:
      CopyTyped<std::int8_t>(proto.int32_data(), tensor, what);
      break;
    case DType::kUint16:
      CopyTyped<std::uint16_t>(proto.int32_data(), tensor, what);
      break;
    case DType::kUint8:
      CopyTyped<std::uint8_t>(proto.int32_data(), tensor, what);
      break;
    case DType::kBool:
      CopyTyped<bool>(proto.int32_data(), tensor, what);
      break;
    case DType::kFloat16:
      CopyTyped<std::uint16_t>(proto.int32_data(), tensor, what);
      break;
  }
  return tensor;
}

}  // namespace tessera
