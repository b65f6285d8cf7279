#include "apps/bench_passes.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "engine/passes.h"
#include "ops/error.h"

namespace tessera {
namespace {

// Of the longest name of a pass.
int NameWidth() {
  std::size_t width = 0;
  for (const Pass& pass : AllPasses()) width = std::max(width, pass.name.size());
  return static_cast<int>(width);
}

Shape ShapeOf(const ValueDecl& decl, const std::vector<BenchInput>& inputs) {
  const auto input = std::ranges::find(inputs, decl.name, &BenchInput::name);
  if (input != inputs.end()) return input->tensor.shape();
  const bool open =
      !decl.has_shape || std::ranges::any_of(decl.dims, [](std::int64_t d) { return d < 0; });
  Require(!open, "input '", decl.name, "' may have any size: say one with --input");
  return Shape(decl.dims);
}

}  // namespace

std::string PassList() {
  std::ostringstream out;
  out << std::left;
  for (const Pass& pass : AllPasses()) {
    if (pass.stage == PassStage::kRequired) continue;
    out << std::setw(NameWidth()) << pass.name << "  " << pass.what << "\n";
  }
  return out.str();
}

std::string PassTable(Session& session, const std::vector<BenchInput>& inputs) {
  std::vector<Shape> shapes;
  for (const ValueDecl& decl : session.inputs()) shapes.push_back(ShapeOf(decl, inputs));
  std::ostringstream out;
  for (const PassCount& pass : session.PassCounts(shapes)) {
    out << std::right << std::setw(5) << pass.count << "  " << std::left << std::setw(NameWidth())
        << pass.name << "  " << pass.what << "\n";
  }
  return out.str();
}

}  // namespace tessera
