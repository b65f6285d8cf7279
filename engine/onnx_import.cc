#include "engine/onnx_import.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

namespace tessera {
namespace {

constexpr std::int64_t kMinIr = 3, kMaxIr = 10;

// Weights in row-major order are little-endian in the file, as in memory.
static_assert(std::endian::native == std::endian::little);

std::ifstream OpenFile(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  Require(std::filesystem::exists(status), path.string(), ": no such file");
  Require(!std::filesystem::is_directory(status), path.string(), ": is a folder, not a model");
  // Opening a pipe that nobody writes to would wait for ever.
  Require(std::filesystem::is_regular_file(status), path.string(), ": is not a file");
  std::ifstream in(path, std::ios::binary);
  Require(in.good(), path.string(), ": cannot be opened: ", std::strerror(errno));
  return in;
}

// Throws Error for what protobuf cannot parse.
void CheckSize(std::uintmax_t bytes, const std::string& file) {
  Require(bytes <= std::numeric_limits<int>::max(), file,
          ": models over 2 GB have to keep their weights in external data");
  Require(bytes > 0, file, ": the file is empty");
}

DType ToDType(int type, const std::string& what) {
  using P = onnx::TensorProto;
  if (const auto dtype = DTypeFromOnnx(type)) return *dtype;
  throw Unsupported(StrCat(what, ": element type ",
                           P::DataType_IsValid(type)
                               ? P::DataType_Name(static_cast<P::DataType>(type))
                               : std::to_string(type),
                           " is not supported"));
}

bool IsDefaultDomain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

// "Conv", "ai.onnx.ml.Scaler".
std::string OperatorName(const onnx::NodeProto& node) {
  return IsDefaultDomain(node.domain()) ? node.op_type()
                                        : StrCat(node.domain(), ".", node.op_type());
}

std::string NodeName(const onnx::NodeProto& node, int index) {
  if (!node.name().empty()) return node.name();
  if (node.output_size() > 0 && !node.output(0).empty()) return node.output(0);
  return StrCat(node.op_type(), "#", index);
}

// Operators of a graph and of its sub-graphs, and the first node that uses each.
void AddOperators(const onnx::GraphProto& graph, std::map<std::string, std::string>& first_nodes) {
  for (int i = 0; i < graph.node_size(); ++i) {
    const onnx::NodeProto& node = graph.node(i);
    first_nodes.try_emplace(OperatorName(node), NodeName(node, i));
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) AddOperators(attribute.g(), first_nodes);
      for (const auto& g : attribute.graphs()) AddOperators(g, first_nodes);
    }
  }
}

// "a sequence".
const char* KindOf(const onnx::TypeProto& type) {
  if (type.has_sequence_type()) return "a sequence";
  if (type.has_optional_type()) return "an optional";
  if (type.has_map_type()) return "a map";
  if (type.has_sparse_tensor_type()) return "a sparse tensor";
  return "no tensor";
}

// The message in a file of Protocol Buffers; `what` it should be is for the message.
template <typename Message>
Message ReadMessage(const std::filesystem::path& path, const std::string& what) {
  std::ifstream in = OpenFile(path);
  CheckSize(std::filesystem::file_size(path), path.string());
  Message message;
  Require(message.ParseFromIstream(&in), path.string(), ": not ", what,
          ", cut short, or unreadable (protobuf cannot parse it)");
  return message;
}

// Copies a repeated field of a wider type, as TensorProto stores small types, into `tensor`.
template <typename T, typename Field>
void CopyTyped(const Field& field, Tensor& tensor, const std::string& what) {
  Require(field.size() == tensor.size(), what, ": ", field.size(), " values for shape ",
          tensor.shape());
  T* out = tensor.data<T>();
  for (const auto& v : field) *out++ = static_cast<T>(v);
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
  return tensor;
}

// The tensor; external data is looked for in `folder`, and refused if that is empty.
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

class Importer {
 public:
  Importer(std::string file, std::filesystem::path folder)
      : file_(std::move(file)), folder_(std::move(folder)) {}

  // Takes each tensor out of the parsed model as it goes on, so that the weights are in memory
  // about once.
  Graph Import(google::protobuf::io::ZeroCopyInputStream& bytes) {
    onnx::ModelProto model;
    google::protobuf::io::CodedInputStream stream(&bytes);
    Require(model.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage(), file_,
            ": not an ONNX model, cut short, or unreadable (protobuf cannot parse it)");
    Require(model.has_graph(), file_, ": not an ONNX model (it holds no graph)");
    RequireSupported(model.ir_version() >= kMinIr && model.ir_version() <= kMaxIr, file_,
                     ": IR version ", model.ir_version(), " is not supported (", kMinIr, " to ",
                     kMaxIr, " are)");
    graph_.file = file_;
    graph_.opset = Opset(model);
    onnx::GraphProto& g = *model.mutable_graph();
    CheckOperators(g);
    Require(graph_.opset != 0, file_, ": the model names no opset");
    ReadInitializers(g);
    ReadInputs(g);
    ReadNodes(g);
    ReadOutputs(g);
    SortNodes();
    return std::move(graph_);
  }

 private:
  // That of the default domain; 0 if the model names none.
  int Opset(const onnx::ModelProto& model) const {
    for (const auto& set : model.opset_import()) {
      if (!IsDefaultDomain(set.domain())) continue;
      RequireSupported(set.version() >= kMinOpset && set.version() <= kMaxOpset, file_, ": opset ",
                       set.version(), " is not supported (", kMinOpset, " to ", kMaxOpset, " are)");
      return static_cast<int>(set.version());
    }
    return 0;
  }

  void ReadInitializers(onnx::GraphProto& g) {
    RequireSupported(g.sparse_initializer_size() == 0, file_,
                     ": sparse initializers are not supported");
    for (onnx::TensorProto& parsed : *g.mutable_initializer()) {
      const onnx::TensorProto proto = std::move(parsed);
      const std::string what = StrCat(file_, ": initializer '", proto.name(), "'");
      Require(!by_name_.contains(proto.name()), what, " is there twice");
      by_name_[proto.name()] = graph_.AddConstant(proto.name(), ReadTensor(proto, folder_, what));
    }
  }

  static ValueDecl ReadDecl(const onnx::ValueInfoProto& proto, const std::string& what) {
    ValueDecl decl;
    decl.name = proto.name();
    RequireSupported(proto.type().has_tensor_type(), what, " is ", KindOf(proto.type()),
                     ", which is not supported");
    const auto& type = proto.type().tensor_type();
    decl.dtype = ToDType(type.elem_type(), what);
    decl.has_shape = type.has_shape();
    for (const auto& dim : type.shape().dim()) {
      decl.dims.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1);
    }
    return decl;
  }

  void ReadInputs(const onnx::GraphProto& g) {
    for (const auto& proto : g.input()) {
      // Before IR 4 every initializer is listed as an input too.
      const auto known = by_name_.find(proto.name());
      if (known != by_name_.end() && graph_.Constant(known->second) != nullptr) continue;
      const std::string what = StrCat(file_, ": input '", proto.name(), "'");
      Require(!proto.name().empty(), what, " has no name");
      Require(known == by_name_.end(), what, " is there twice");
      graph_.input_decls.push_back(ReadDecl(proto, what));
      const ValueId id = graph_.AddValue(proto.name());
      by_name_[proto.name()] = id;
      graph_.inputs.push_back(id);
    }
  }

  void ReadOutputs(const onnx::GraphProto& g) {
    Require(g.output_size() > 0, file_, ": the graph has no output");
    for (const auto& proto : g.output()) {
      const std::string what = StrCat(file_, ": output '", proto.name(), "'");
      const auto it = by_name_.find(proto.name());
      Require(it != by_name_.end(), what, " is made by no node");
      graph_.output_decls.push_back(ReadDecl(proto, what));
      graph_.outputs.push_back(it->second);
    }
  }

  Attributes ReadAttributes(const onnx::NodeProto& proto, const std::string& what) const {
    using A = onnx::AttributeProto;
    Attributes out;
    for (const A& a : proto.attribute()) {
      switch (a.type()) {
        case A::INT:
          out.Set(a.name(), a.i());
          break;
        case A::FLOAT:
          out.Set(a.name(), a.f());
          break;
        case A::STRING:
          out.Set(a.name(), a.s());
          break;
        case A::INTS:
          out.Set(a.name(), std::vector<std::int64_t>(a.ints().begin(), a.ints().end()));
          break;
        case A::FLOATS:
          out.Set(a.name(), std::vector<float>(a.floats().begin(), a.floats().end()));
          break;
        case A::STRINGS:
          out.Set(a.name(), std::vector<std::string>(a.strings().begin(), a.strings().end()));
          break;
        case A::TENSOR:
          out.Set(a.name(), std::make_shared<const Tensor>(ReadTensor(
                                a.t(), folder_, StrCat(what, ": attribute '", a.name(), "'"))));
          break;
        default:
          throw Unsupported(
              StrCat(what, ": attribute '", a.name(), "' has a type that is not supported"));
      }
    }
    return out;
  }

  // Refuses all operators that are unknown at once: a person wants to know all of them.
  void CheckOperators(const onnx::GraphProto& g) const {
    std::map<std::string, std::string> first_nodes;
    AddOperators(g, first_nodes);
    std::string unsupported;
    for (const auto& [type, node] : first_nodes) {
      const OpDef* def = FindOp(type);
      if (def != nullptr && !def->internal &&
          (graph_.opset == 0 ||
           (graph_.opset >= def->first_opset && graph_.opset <= def->last_opset))) {
        continue;
      }
      unsupported += StrCat(unsupported.empty() ? "" : ", ", type, " (node '", node, "')");
    }
    RequireSupported(unsupported.empty(), file_,
                     ": operators that are not supported: ", unsupported);
  }

  void ReadNodes(onnx::GraphProto& g) {
    // Outputs first, so that nodes may come in any order.
    for (int i = 0; i < g.node_size(); ++i) {
      for (const std::string& name : g.node(i).output()) {
        if (name.empty()) continue;
        Require(!by_name_.contains(name), file_, ": node '", NodeName(g.node(i), i),
                "': the name '", name, "' of its output is taken already");
        by_name_[name] = graph_.AddValue(name);
      }
    }
    std::set<std::string> names;
    for (int i = 0; i < g.node_size(); ++i) {
      const onnx::NodeProto proto = std::move(*g.mutable_node(i));
      Node node;
      node.op.name = NodeName(proto, i);
      while (!names.insert(node.op.name).second) node.op.name += StrCat("#", i);
      node.op.type = proto.op_type();
      node.op.opset = graph_.opset;
      node.def = FindOp(node.op.type);
      const std::string what = StrCat(file_, ": ", Describe(node));
      node.op.attributes = ReadAttributes(proto, what);
      for (const std::string& name : proto.input()) {
        if (name.empty()) {
          node.inputs.push_back(kNoValue);
          continue;
        }
        const auto it = by_name_.find(name);
        Require(it != by_name_.end(), what, ": its input '", name, "' does not exist");
        node.inputs.push_back(it->second);
      }
      const int inputs = proto.input_size();
      Require(inputs >= node.def->min_inputs &&
                  (node.def->max_inputs < 0 || inputs <= node.def->max_inputs),
              what, ": ", inputs, " inputs");
      // Only what comes after those that every node of the type has may be left out.
      for (int i = 0; i < node.def->min_inputs; ++i) {
        Require(!proto.input(i).empty(), what, ": input ", i, " is missing");
      }
      for (const std::string& name : proto.output()) {
        node.outputs.push_back(name.empty() ? kNoValue : by_name_.at(name));
      }
      Require(!node.outputs.empty() && node.outputs[0] != kNoValue, what, ": no output 0");
      graph_.nodes.push_back(std::move(node));
    }
  }

  // Kahn's algorithm that takes ready nodes in file order, so that sorted files stay as they are.
  void SortNodes() {
    const std::vector<int> producers = graph_.Producers();
    const std::vector<std::vector<int>> consumers = graph_.Consumers();
    std::vector<int> missing(graph_.nodes.size(), 0);
    std::set<int> ready;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (ValueId v : graph_.nodes[n].inputs) {
        if (v != kNoValue && producers[static_cast<std::size_t>(v)] >= 0) ++missing[n];
      }
      if (missing[n] == 0) ready.insert(static_cast<int>(n));
    }
    std::vector<Node> sorted;
    while (!ready.empty()) {
      const auto n = static_cast<std::size_t>(*ready.begin());
      ready.erase(ready.begin());
      for (ValueId v : graph_.nodes[n].outputs) {
        if (v == kNoValue) continue;
        for (int c : consumers[static_cast<std::size_t>(v)]) {
          if (--missing[static_cast<std::size_t>(c)] == 0) ready.insert(c);
        }
      }
      sorted.push_back(std::move(graph_.nodes[n]));
    }
    if (sorted.size() != graph_.nodes.size()) {
      const auto n = static_cast<std::size_t>(
          std::find_if(missing.begin(), missing.end(), [](int m) { return m > 0; }) -
          missing.begin());
      throw Error(StrCat(file_, ": ", Describe(graph_.nodes[n]), " is part of a cycle"));
    }
    graph_.nodes = std::move(sorted);
  }

  std::string file_;
  std::filesystem::path folder_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> by_name_;
};

}  // namespace

Graph ImportOnnx(const std::filesystem::path& path) {
  std::ifstream in = OpenFile(path);
  CheckSize(std::filesystem::file_size(path), path.string());
  google::protobuf::io::IstreamInputStream bytes(&in, /*block_size=*/1 << 16);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  return Importer(path.string(), folder).Import(bytes);
}

Graph ImportOnnx(std::span<const std::byte> model, const std::string& name,
                 const std::filesystem::path& folder) {
  CheckSize(model.size(), name);
  google::protobuf::io::ArrayInputStream bytes(model.data(), static_cast<int>(model.size()));
  return Importer(name, folder).Import(bytes);
}

Tensor ImportOnnxTensor(const std::filesystem::path& path) {
  return ReadTensor(ReadMessage<onnx::TensorProto>(path, "a tensor"), {}, path.string());
}

std::set<std::string> OperatorsOfOnnx(const std::filesystem::path& path) {
  std::map<std::string, std::string> first_nodes;
  AddOperators(ReadMessage<onnx::ModelProto>(path, "an ONNX model").graph(), first_nodes);
  std::set<std::string> names;
  for (const auto& [name, node] : first_nodes) names.insert(name);
  return names;
}

}  // namespace tessera
