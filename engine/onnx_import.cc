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
  throw Error(StrCat(what, ": element type ",
                     P::DataType_IsValid(type) ? P::DataType_Name(static_cast<P::DataType>(type))
                                               : std::to_string(type),
                     " is not supported"));
}

// Copies a repeated field of a wider type, as TensorProto stores small types, into `tensor`.
template <typename T, typename Field>
void CopyTyped(const Field& field, Tensor& tensor, const std::string& what) {
  Require(field.size() == tensor.size(), what, ": ", field.size(), " values for shape ",
          tensor.shape());
  T* out = tensor.data<T>();
  for (const auto& v : field) *out++ = static_cast<T>(v);
}

// Attributes of an operator that hold its bodies, in the order of Node::bodies.
std::vector<std::string> BodyNames(const std::string& type) {
  if (type == "If") return {"then_branch", "else_branch"};
  return {"body"};
}

// Reads one graph: the model's, or with the help of another Importer a body in it.
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
    Require(model.ir_version() >= kMinIr && model.ir_version() <= kMaxIr, file_, ": IR version ",
            model.ir_version(), " is not supported (", kMinIr, " to ", kMaxIr, " are)");
    graph_.file = file_;
    graph_.opset = Opset(model);
    // First which operators are unknown, all of them: a person wants to know at once.
    std::map<std::string, std::string> unsupported;  // operator -> first node that uses it
    ListUnsupported(model.graph(), unsupported);
    if (!unsupported.empty()) {
      std::string list;
      for (const auto& [type, node] : unsupported) {
        list += StrCat(list.empty() ? "" : ", ", type, " (node '", node, "')");
      }
      throw Error(StrCat(file_, ": operators that are not supported: ", list));
    }
    ReadGraph(*model.mutable_graph());
    return std::move(graph_);
  }

 private:
  explicit Importer(Importer& around) : Importer(around.file_, around.folder_) {
    around_ = &around;
    graph_.file = file_;
    graph_.opset = around.graph_.opset;
  }

  void ReadGraph(onnx::GraphProto& g) {
    ReadInitializers(g);
    ReadInputs(g);
    ReadNodes(g);
    ReadOutputs(g);
    SortNodes();
  }

  bool IsBody() const { return around_ != nullptr; }

  // The value of that name, of this graph or of one around it, which then becomes an input of this
  // one. kNoValue if there is none.
  ValueId Find(const std::string& name) {
    if (const auto it = by_name_.find(name); it != by_name_.end()) return it->second;
    const ValueId outside = IsBody() ? around_->Find(name) : kNoValue;
    if (outside == kNoValue) return kNoValue;
    const ValueId inside = graph_.AddValue(name);
    by_name_[name] = inside;
    if (around_->graph_.Constant(outside) != nullptr) {
      graph_.value(inside).info = around_->graph_.value(outside).info;
    } else {
      graph_.inputs.push_back(inside);
      captured_.push_back(outside);
    }
    return inside;
  }

  void ListUnsupported(const onnx::GraphProto& g, std::map<std::string, std::string>& list) const {
    for (int i = 0; i < g.node_size(); ++i) {
      const auto& proto = g.node(i);
      const std::string type = IsDefaultDomain(proto.domain())
                                   ? proto.op_type()
                                   : StrCat(proto.domain(), ".", proto.op_type());
      const OpDef* def = FindOp(type);
      if (def == nullptr || def->internal || graph_.opset < def->first_opset ||
          graph_.opset > def->last_opset) {
        list.try_emplace(type, NodeName(proto, i));
      }
      for (const auto& attribute : proto.attribute()) {
        if (attribute.has_g()) ListUnsupported(attribute.g(), list);
      }
    }
  }

  // Reads the bodies of a node from its attributes, and adds what they read of this graph to its
  // inputs.
  void ReadBodies(onnx::NodeProto& proto, Node& node, const std::string& what) {
    if (node.def->num_bodies == 0) return;
    const bool is_loop = node.def->num_bodies == 1;
    const std::size_t own_inputs = is_loop ? std::max<std::size_t>(2, node.inputs.size()) : 1;
    node.inputs.resize(own_inputs, kNoValue);
    node.num_own_body_inputs = is_loop ? own_inputs : 0;
    for (const std::string& name : BodyNames(node.op.type)) {
      const auto attribute =
          std::find_if(proto.mutable_attribute()->begin(), proto.mutable_attribute()->end(),
                       [&](const auto& a) { return a.name() == name && a.has_g(); });
      Require(attribute != proto.mutable_attribute()->end(), what, ": has no graph '", name, "'");
      Importer importer(*this);
      importer.ReadGraph(*attribute->mutable_g());
      const Graph& body = importer.graph_;
      const std::size_t inputs = body.inputs.size() - importer.captured_.size();
      const std::size_t outputs = node.outputs.size() + (is_loop ? 1 : 0);
      Require(inputs == node.num_own_body_inputs, what, ": '", name, "' has ", inputs,
              " inputs instead of ", node.num_own_body_inputs);
      Require(body.outputs.size() == outputs, what, ": '", name, "' has ", body.outputs.size(),
              " outputs instead of ", outputs);
      Require(!is_loop || node.outputs.size() + 2 >= own_inputs, what, ": ", node.outputs.size(),
              " outputs for ", own_inputs - 2, " values that are carried on");
      node.inputs.insert(node.inputs.end(), importer.captured_.begin(), importer.captured_.end());
      node.bodies.push_back(std::make_shared<const Graph>(std::move(importer.graph_)));
    }
  }

  int Opset(const onnx::ModelProto& model) const {
    for (const auto& set : model.opset_import()) {
      if (!IsDefaultDomain(set.domain())) continue;
      Require(set.version() >= kMinOpset && set.version() <= kMaxOpset, file_, ": opset ",
              set.version(), " is not supported (", kMinOpset, " to ", kMaxOpset, " are)");
      return static_cast<int>(set.version());
    }
    throw Error(StrCat(file_, ": the model names no opset"));
  }

  static bool IsDefaultDomain(const std::string& domain) {
    return domain.empty() || domain == "ai.onnx";
  }

  Tensor ReadTensor(const onnx::TensorProto& proto, const std::string& what) const {
    const DType dtype = ToDType(proto.data_type(), what);
    Shape shape;
    std::size_t bytes = 0;
    try {
      shape = Shape(std::vector<std::int64_t>(proto.dims().begin(), proto.dims().end()));
      bytes = static_cast<std::size_t>(shape.NumElements()) * SizeOf(dtype);
    } catch (const Error& e) {
      throw Error(StrCat(what, ": ", e.what()));
    }
    Require(!proto.has_segment(), what, ": segmented tensors are not supported");
    if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
      return ReadExternal(proto, dtype, shape, what);
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

  Tensor ReadExternal(const onnx::TensorProto& proto, DType dtype, const Shape& shape,
                      const std::string& what) const {
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
    Require(!folder_.empty(), what, ": external data is not supported for models in memory");
    const std::filesystem::path relative = std::filesystem::path(location).lexically_normal();
    Require(!location.empty() && relative.is_relative() && *relative.begin() != "..", what,
            ": external data '", location, "' lies outside the model's folder");
    const std::filesystem::path path = folder_ / relative;
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

  void ReadInitializers(onnx::GraphProto& g) {
    Require(g.sparse_initializer_size() == 0, file_, ": sparse initializers are not supported");
    for (onnx::TensorProto& parsed : *g.mutable_initializer()) {
      const onnx::TensorProto proto = std::move(parsed);
      const std::string what = StrCat(file_, ": initializer '", proto.name(), "'");
      Require(!by_name_.contains(proto.name()), what, " is there twice");
      by_name_[proto.name()] = graph_.AddConstant(proto.name(), ReadTensor(proto, what));
    }
  }

  static ValueDecl ReadDecl(const onnx::ValueInfoProto& proto, const std::string& what) {
    ValueDecl decl;
    decl.name = proto.name();
    Require(proto.type().has_tensor_type(), what, " is not a tensor");
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
      if (!IsBody()) graph_.input_decls.push_back(ReadDecl(proto, what));
      const ValueId id = graph_.AddValue(proto.name());
      by_name_[proto.name()] = id;
      graph_.inputs.push_back(id);
    }
  }

  void ReadOutputs(const onnx::GraphProto& g) {
    Require(g.output_size() > 0, file_, ": the graph has no output");
    for (const auto& proto : g.output()) {
      const std::string what = StrCat(file_, ": output '", proto.name(), "'");
      graph_.outputs.push_back(Find(proto.name()));
      Require(graph_.outputs.back() != kNoValue, what, " is made by no node");
      if (!IsBody()) graph_.output_decls.push_back(ReadDecl(proto, what));
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
          out.Set(a.name(), std::make_shared<const Tensor>(
                                ReadTensor(a.t(), StrCat(what, ": attribute '", a.name(), "'"))));
          break;
        case A::GRAPH:  // see ReadBodies
          break;
        default:
          throw Error(
              StrCat(what, ": attribute '", a.name(), "' has a type that is not supported"));
      }
    }
    return out;
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
      onnx::NodeProto proto = std::move(*g.mutable_node(i));
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
        node.inputs.push_back(Find(name));
        Require(node.inputs.back() != kNoValue, what, ": its input '", name, "' does not exist");
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
      const bool has_output = std::any_of(node.outputs.begin(), node.outputs.end(),
                                          [](ValueId v) { return v != kNoValue; });
      const bool may_omit = node.def->num_bodies > 0 || (node.def->can_omit_output0 && has_output);
      Require(!node.outputs.empty() && (node.outputs[0] != kNoValue || may_omit), what,
              ": no output 0");
      ReadBodies(proto, node, what);
      graph_.nodes.push_back(std::move(node));
    }
  }

  static std::string NodeName(const onnx::NodeProto& proto, int index) {
    if (!proto.name().empty()) return proto.name();
    if (proto.output_size() > 0 && !proto.output(0).empty()) return proto.output(0);
    return StrCat(proto.op_type(), "#", index);
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
  // For a body only: the graph that it stands in, and what it reads there, which are the last of
  // its inputs.
  Importer* around_ = nullptr;
  std::vector<ValueId> captured_;
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

}  // namespace tessera
