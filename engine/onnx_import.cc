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

#include "engine/onnx_old_opsets.h"
#include "engine/onnx_scan.h"
#include "engine/onnx_tensor.h"
#include "engine/open_file.h"

namespace tessera {
namespace {

constexpr std::int64_t kMinIr = 3, kMaxIr = 10;

// Throws Error for what protobuf cannot parse.
void CheckSize(std::uintmax_t bytes, const std::string& file) {
  Require(bytes <= std::numeric_limits<int>::max(), file,
          ": models over 2 GB have to keep their weights in external data");
  Require(bytes > 0, file, ": the file is empty");
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
  std::ifstream in = OpenModelFile(path);
  CheckSize(std::filesystem::file_size(path), path.string());
  Message message;
  Require(message.ParseFromIstream(&in), path.string(), ": not ", what,
          ", cut short, or unreadable (protobuf cannot parse it)");
  return message;
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
    RequireSupported(model.ir_version() >= kMinIr && model.ir_version() <= kMaxIr, file_,
                     ": IR version ", model.ir_version(), " is not supported (", kMinIr, " to ",
                     kMaxIr, " are)");
    graph_.file = file_;
    graph_.opset = Opset(model);
    CheckOperators(model.graph());
    Require(graph_.opset != 0, file_, ": the model names no opset");
    RaiseOpset(model, file_);
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

  // That of the default domain after RaiseOpset; 0 if the model names none.
  int Opset(const onnx::ModelProto& model) const {
    for (const auto& set : model.opset_import()) {
      if (!IsDefaultDomain(set.domain())) continue;
      RequireSupported(set.version() >= kOldestOpset && set.version() <= kMaxOpset, file_,
                       ": opset ", set.version(), " is not supported (", kOldestOpset, " to ",
                       kMaxOpset, " are)");
      return std::max(static_cast<int>(set.version()), kMinOpset);
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
          out.Set(a.name(), std::make_shared<const Tensor>(ReadTensor(
                                a.t(), folder_, StrCat(what, ": attribute '", a.name(), "'"))));
          break;
        case A::GRAPH:  // see ReadBodies
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
  std::ifstream in = OpenModelFile(path);
  CheckSize(std::filesystem::file_size(path), path.string());
  {
    google::protobuf::io::IstreamInputStream bytes(&in, /*block_size=*/1 << 16);
    ScanOnnx(bytes, path.string());
  }
  in.clear();
  in.seekg(0);
  google::protobuf::io::IstreamInputStream bytes(&in, /*block_size=*/1 << 16);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  return Importer(path.string(), folder).Import(bytes);
}

Graph ImportOnnx(std::span<const std::byte> model, const std::string& name,
                 const std::filesystem::path& folder) {
  CheckSize(model.size(), name);
  {
    google::protobuf::io::ArrayInputStream bytes(model.data(), static_cast<int>(model.size()));
    ScanOnnx(bytes, name);
  }
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
