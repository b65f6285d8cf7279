#include "engine/onnx_export.h"

#include <onnx/onnx_pb.h>

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
    CheckSize();
    NameValues();
    model_.set_ir_version(IrVersion(graph_.opset));
    model_.set_producer_name("tessera");
    model_.add_opset_import()->set_version(graph_.opset);
    onnx::GraphProto& proto = *model_.mutable_graph();
    proto.set_name("network");
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      Declare(graph_.inputs[i], graph_.input_decls[i], *proto.add_input());
    }
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      Declare(graph_.outputs[i], graph_.output_decls[i], *proto.add_output());
    }
    for (const Node& node : graph_.nodes) WriteNode(node, *proto.add_node());
    WriteConstants(proto);
    const std::size_t bytes = model_.ByteSizeLong();
    Require(bytes <= kMaxBytes, graph_.file, ": takes ", bytes >> 20,
            " MB as ONNX, more than the 2 GB of a file");
    return model_.SerializeAsString();
  }

 private:
  static constexpr std::size_t kMaxBytes = std::numeric_limits<std::int32_t>::max();

  // Before anything is copied.
  void CheckSize() const {
    std::size_t bytes = 0;
    for (const Value& value : graph_.values) {
      if (value.info.constant != nullptr) bytes += value.info.constant->bytes();
    }
    Require(bytes <= kMaxBytes, graph_.file, ": its weights take ", bytes >> 20,
            " MB, more than the 2 GB of an ONNX file");
  }

  std::string Unique(const std::string& name, std::size_t id) {
    std::string unique = name.empty() ? StrCat("value_", id) : name;
    while (!taken_.insert(unique).second) unique += StrCat("_", id);
    return unique;
  }

  void NameValues() {
    names_.resize(graph_.values.size());
    // Those that a person knows come first.
    for (const auto* ids : {&graph_.inputs, &graph_.outputs}) {
      for (ValueId id : *ids) NameValue(static_cast<std::size_t>(id));
    }
    for (std::size_t id = 0; id < names_.size(); ++id) NameValue(id);
  }

  void NameValue(std::size_t id) {
    if (names_[id].empty()) names_[id] = Unique(graph_.values[id].name, id);
  }

  const std::string& Name(ValueId id) const {
    static const std::string kNone;
    return id == kNoValue ? kNone : names_[static_cast<std::size_t>(id)];
  }

  void Declare(ValueId id, const ValueDecl& decl, onnx::ValueInfoProto& proto) const {
    proto.set_name(Name(id));
    auto& type = *proto.mutable_type()->mutable_tensor_type();
    type.set_elem_type(static_cast<std::int32_t>(DTypeToOnnx(decl.dtype)));
    if (!decl.has_shape) return;
    onnx::TensorShapeProto& shape = *type.mutable_shape();
    for (std::size_t i = 0; i < decl.dims.size(); ++i) {
      onnx::TensorShapeProto::Dimension& dim = *shape.add_dim();
      if (decl.dims[i] >= 0) {
        dim.set_dim_value(decl.dims[i]);
      } else {
        dim.set_dim_param(StrCat(Name(id), "_dim_", i));
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

  void WriteNode(const Node& node, onnx::NodeProto& proto) {
    Require(!node.def->internal, graph_.file, ": ", Describe(node), " is no operator of ONNX");
    proto.set_name(node.op.name);
    proto.set_op_type(node.op.type);
    for (ValueId id : node.inputs) {
      proto.add_input(Name(id));
      if (id != kNoValue) used_.insert(id);
    }
    for (ValueId id : node.outputs) proto.add_output(Name(id));
    for (const auto& [name, value] : node.op.attributes) {
      onnx::AttributeProto& attribute = *proto.add_attribute();
      attribute.set_name(name);
      std::visit(AttributeWriter{attribute}, value);
    }
  }

  void WriteConstants(onnx::GraphProto& proto) {
    for (ValueId id : graph_.outputs) used_.insert(id);
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      const Tensor* constant = graph_.Constant(id);
      if (constant == nullptr || !used_.contains(id)) continue;
      onnx::TensorProto& tensor = *proto.add_initializer();
      tensor.set_name(Name(id));
      WriteTensor(*constant, tensor);
    }
  }

  const Graph& graph_;
  onnx::ModelProto model_;
  std::vector<std::string> names_;         // of the values
  std::unordered_set<std::string> taken_;  // names
  std::unordered_set<ValueId> used_;       // by nodes and outputs
};

}  // namespace

std::string ExportOnnx(const Graph& graph) { return Exporter(graph).Export(); }

}  // namespace tessera
