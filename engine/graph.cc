#include "engine/graph.h"

#include <algorithm>

namespace tessera {

ValueId Graph::AddValue(std::string name) {
  values.push_back({std::move(name), {}});
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::AddConstant(std::string name, Tensor tensor) {
  const ValueId id = AddValue(std::move(name));
  auto constant = std::make_shared<const Tensor>(std::move(tensor));
  value(id).info = {true, constant->dtype(), constant->shape(), Layout::kRowMajor, constant};
  return id;
}

bool Graph::IsOutput(ValueId id) const {
  return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
}

const Tensor* Graph::Constant(ValueId id) const {
  return id == kNoValue ? nullptr : value(id).info.constant.get();
}

std::vector<std::vector<int>> Graph::Consumers() const {
  std::vector<std::vector<int>> consumers(values.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (ValueId v : nodes[n].inputs) {
      if (v != kNoValue) consumers[static_cast<std::size_t>(v)].push_back(static_cast<int>(n));
    }
  }
  return consumers;
}

std::vector<int> Graph::Producers() const {
  std::vector<int> producers(values.size(), -1);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (ValueId v : nodes[n].outputs) {
      if (v != kNoValue) producers[static_cast<std::size_t>(v)] = static_cast<int>(n);
    }
  }
  return producers;
}

void Graph::ReplaceUses(ValueId from, ValueId to) {
  for (Node& node : nodes) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  std::replace(outputs.begin(), outputs.end(), from, to);
}

void Graph::RemoveDeadNodes() {
  std::vector<bool> wanted(values.size(), false);
  for (ValueId v : outputs) wanted[static_cast<std::size_t>(v)] = true;
  std::vector<bool> keep(nodes.size(), false);
  for (std::size_t n = nodes.size(); n-- > 0;) {
    keep[n] = std::any_of(nodes[n].outputs.begin(), nodes[n].outputs.end(), [&](ValueId v) {
      return v != kNoValue && wanted[static_cast<std::size_t>(v)] && Constant(v) == nullptr;
    });
    if (!keep[n]) continue;
    for (ValueId v : nodes[n].inputs) {
      if (v != kNoValue) wanted[static_cast<std::size_t>(v)] = true;
    }
  }
  std::size_t kept = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (!keep[n]) continue;
    if (kept != n) nodes[kept] = std::move(nodes[n]);
    ++kept;
  }
  nodes.resize(kept);
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (!wanted[v]) values[v].info.constant.reset();
  }
}

namespace {

std::vector<TensorInfo> Infos(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<TensorInfo> infos;
  infos.reserve(ids.size());
  for (ValueId v : ids) infos.push_back(v == kNoValue ? TensorInfo{} : graph.value(v).info);
  return infos;
}

}  // namespace

std::vector<TensorInfo> InputInfos(const Graph& graph, const Node& node) {
  return Infos(graph, node.inputs);
}

std::vector<TensorInfo> OutputInfos(const Graph& graph, const Node& node) {
  return Infos(graph, node.outputs);
}

std::string Describe(const Node& node) {
  return StrCat("node '", node.op.name, "' (", node.op.type, ")");
}

void FailAtNode(const std::string& file, const Node& node, std::span<const TensorInfo> inputs,
                std::string_view reason) {
  std::string shapes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!shapes.empty()) shapes += ", ";
    if (inputs[i].present) {
      shapes += StrCat(inputs[i].dtype, " ", inputs[i].shape);
    } else {
      shapes += node.inputs[i] == kNoValue ? "-" : "?";
    }
  }
  throw Error(StrCat(file, ": ", Describe(node), ": ", reason, " [inputs: ", shapes, "]"));
}

}  // namespace tessera
