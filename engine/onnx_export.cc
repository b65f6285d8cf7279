#include "engine/onnx_export.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "engine/onnx_types.h"

namespace tessera {
namespace {

// The first version of the file format that knows the opset. Those before 7 want constants among
// the inputs, or are read by nobody else any more.
int IrVersion(int opset) {
  if (opset <= 14) return 7;
  if (opset <= 18) return 8;
  return opset <= 20 ? 9 : 10;
}

class Exporter {
 public:
  explicit Exporter(const Graph& graph) : graph_(graph) {}

  std::string Export() {
    CheckSize(graph_);
    model_.set_ir_version(IrVersion(graph_.opset));
    model_.set_producer_name("tessera");
    model_.add_opset_import()->set_version(graph_.opset);
    onnx::GraphProto& proto = *model_.mutable_graph();
    proto.set_name("network");
    Scope scope{graph_, std::vector<std::string>(graph_.values.size()), {}};
    NameValues(scope);
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      Declare(scope.Name(graph_.inputs[i]), graph_.input_decls[i], *proto.add_input());
    }
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      Declare(scope.Name(graph_.outputs[i]), graph_.output_decls[i], *proto.add_output());
    }
    for (ValueId id : graph_.outputs) scope.used.insert(id);
    WriteNodes(scope, proto);
    const std::size_t bytes = model_.ByteSizeLong();
    Require(bytes <= kMaxBytes, graph_.file, ": takes ", bytes >> 20,
            " MB as ONNX, more than the 2 GB of a file");
    return model_.SerializeAsString();
  }

 private:
  static constexpr std::size_t kMaxBytes = std::numeric_limits<std::int32_t>::max();

  // A graph or sub-graph that is being written.
  struct Scope {
    const Graph& graph;
    std::vector<std::string> names;    // of its values
    std::unordered_set<ValueId> used;  // by nodes and outputs

    const std::string& Name(ValueId id) const {
      static const std::string kNone;
      return id == kNoValue ? kNone : names[static_cast<std::size_t>(id)];
    }
  };

  // Before anything is copied. Returns the bytes of all constants.
  std::size_t CheckSize(const Graph& graph) const {
    std::size_t bytes = 0;
    for (const Value& value : graph.values) {
      if (value.info.constant != nullptr) bytes += value.info.constant->bytes();
    }
    for (const Node& node : graph.nodes) {
      for (const auto& body : node.bodies) bytes += CheckSize(*body);
    }
    Require(bytes <= kMaxBytes, graph_.file, ": its weights take ", bytes >> 20,
            " MB, more than the 2 GB of an ONNX file");
    return bytes;
  }

  // Names are unique over all graphs: a sub-graph sees those of the graphs around it.
  std::string Unique(const std::string& name, std::size_t id) {
    std::string unique = name.empty() ? StrCat("value_", id) : name;
    while (!taken_.insert(unique).second) unique += StrCat("_", id);
    return unique;
  }

  void NameValues(Scope& scope) {
    const auto name = [&](std::size_t id) {
      std::string& given = scope.names[id];
      if (given.empty()) given = Unique(scope.graph.values[id].name, id);
    };
    // Those that a person knows come first.
    for (const auto* ids : {&scope.graph.inputs, &scope.graph.outputs}) {
      for (ValueId id : *ids) name(static_cast<std::size_t>(id));
    }
    for (std::size_t id = 0; id < scope.names.size(); ++id) name(id);
  }

  static void Declare(const std::string& name, const ValueDecl& decl, onnx::ValueInfoProto& proto) {
    proto.set_name(name);
    auto& type = *proto.mutable_type()->mutable_tensor_type();
    type.set_elem_type(static_cast<std::int32_t>(DTypeToOnnx(decl.dtype)));
    if (!decl.has_shape) return;  // without dimensions it is a scalar
    onnx::TensorShapeProto& shape = *type.mutable_shape();
    for (std::size_t i = 0; i < decl.dims.size(); ++i) {
      onnx::TensorShapeProto::Dimension& dim = *shape.add_dim();
      if (decl.dims[i] >= 0) {
        dim.set_dim_value(decl.dims[i]);
      } else {
        dim.set_dim_param(StrCat(name, "_dim_", i));
      }
    }
  }

  static void WriteTensor(const Tensor& tensor, onnx::TensorProto& proto) {
    proto.set_data_type(static_cast<std::int32_t>(DTypeToOnnx(tensor.dtype())));
    for (std::int64_t dim : tensor.shape()) proto.add_dims(dim);
    // Little-endian and row-major, as in memory.
    proto.set_raw_data(tensor.view().bytes, tensor.bytes());
  }

  // A kind of attribute that is added to Attributes is added here.
  struct AttributeWriter {
    onnx::AttributeProto& proto;

    void operator()(std::int64_t v) const {
      proto.set_type(onnx::AttributeProto::INT);
      proto.set_i(v);
    }
    void operator()(float v) const {
      proto.set_type(onnx::AttributeProto::FLOAT);
      proto.set_f(v);
    }
    void operator()(const std::string& v) const {
      proto.set_type(onnx::AttributeProto::STRING);
      proto.set_s(v);
    }
    void operator()(const std::vector<std::int64_t>& v) const {
      proto.set_type(onnx::AttributeProto::INTS);
      proto.mutable_ints()->Add(v.begin(), v.end());
    }
    void operator()(const std::vector<float>& v) const {
      proto.set_type(onnx::AttributeProto::FLOATS);
      proto.mutable_floats()->Add(v.begin(), v.end());
    }
    void operator()(const std::vector<std::string>& v) const {
      proto.set_type(onnx::AttributeProto::STRINGS);
      for (const std::string& s : v) proto.add_strings(s);
    }
    void operator()(const std::shared_ptr<const Tensor>& v) const {
      proto.set_type(onnx::AttributeProto::TENSOR);
      WriteTensor(*v, *proto.mutable_t());
    }
  };

  // Nodes and the constants that they read.
  void WriteNodes(Scope& scope, onnx::GraphProto& proto) {
    for (const Node& node : scope.graph.nodes) WriteNode(scope, node, *proto.add_node());
    for (std::size_t i = 0; i < scope.graph.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      const Tensor* constant = scope.graph.Constant(id);
      if (constant == nullptr || !scope.used.contains(id)) continue;
      onnx::TensorProto& tensor = *proto.add_initializer();
      tensor.set_name(scope.Name(id));
      WriteTensor(*constant, tensor);
    }
  }

  void WriteNode(Scope& scope, const Node& node, onnx::NodeProto& proto) {
    Require(!node.def->internal, graph_.file, ": ", Describe(node), " is no operator of ONNX");
    proto.set_name(node.op.name);
    proto.set_op_type(node.op.type);
    for (ValueId id : node.inputs) {
      if (id != kNoValue) scope.used.insert(id);
    }
    for (ValueId id : node.outputs) proto.add_output(scope.Name(id));
    for (const auto& [name, value] : node.op.attributes) {
      onnx::AttributeProto& attribute = *proto.add_attribute();
      attribute.set_name(name);
      std::visit(AttributeWriter{attribute}, value);
    }
    // In ONNX bodies find what is around them by name; it comes last among the inputs here.
    std::size_t own_inputs = node.inputs.size();
    for (const auto& body : node.bodies)
      own_inputs -= body->inputs.size() - node.num_own_body_inputs;
    for (std::size_t i = 0; i < own_inputs; ++i) proto.add_input(scope.Name(node.inputs[i]));
    std::size_t captured = own_inputs;
    for (std::size_t b = 0; b < node.bodies.size(); ++b) {
      const Graph& body = *node.bodies[b];
      onnx::AttributeProto& attribute = *proto.add_attribute();
      attribute.set_name(node.op.type == "If" ? (b == 0 ? "then_branch" : "else_branch") : "body");
      attribute.set_type(onnx::AttributeProto::GRAPH);
      Scope inner{body, std::vector<std::string>(body.values.size()), {}};
      for (std::size_t i = node.num_own_body_inputs; i < body.inputs.size(); ++i) {
        inner.names[static_cast<std::size_t>(body.inputs[i])] = scope.Name(node.inputs[captured++]);
      }
      NameValues(inner);
      WriteBody(inner, node, *attribute.mutable_g());
    }
  }

  void WriteBody(Scope& scope, const Node& node, onnx::GraphProto& proto) {
    proto.set_name(StrCat(node.op.name, "_body"));
    const auto captured = std::span(scope.graph.inputs).subspan(node.num_own_body_inputs);
    // A Loop's body begins with the number of the iteration and its condition, which have to be
    // declared; what is carried on has the types that come.
    constexpr DType kFirstInputs[] = {DType::kInt64, DType::kBool};
    for (std::size_t i = 0; i < node.num_own_body_inputs; ++i) {
      const std::string& name = scope.Name(scope.graph.inputs[i]);
      onnx::ValueInfoProto& input = *proto.add_input();
      if (i < std::size(kFirstInputs)) {
        Declare(name, {.name = name, .dtype = kFirstInputs[i], .dims = {}, .has_shape = true},
                input);
      } else {
        input.set_name(name);
      }
    }
    for (ValueId id : scope.graph.outputs) scope.used.insert(id);
    WriteNodes(scope, proto);
    std::unordered_set<ValueId> written;
    for (ValueId id : scope.graph.outputs) {
      std::string name = scope.Name(id);
      // A body makes each of its outputs itself, once.
      if (!written.insert(id).second || std::ranges::find(captured, id) != captured.end()) {
        onnx::NodeProto& copy = *proto.add_node();
        copy.set_op_type("Identity");
        copy.add_input(name);
        name = Unique(name, static_cast<std::size_t>(id));
        copy.set_name(name);
        copy.add_output(name);
      }
      proto.add_output()->set_name(name);
    }
  }

  const Graph& graph_;
  onnx::ModelProto model_;
  std::unordered_set<std::string> taken_;  // names
};

}  // namespace

std::string ExportOnnx(const Graph& graph) { return Exporter(graph).Export(); }

}  // namespace tessera
