#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "ops/op.h"

namespace tessera {
namespace {

TEST(Registry, EveryOperatorIsCompleteAndUnique) {
  std::set<std::string_view> types;
  for (const OpDef* op : AllOps()) {
    EXPECT_TRUE(types.insert(op->type).second) << op->type;
    EXPECT_EQ(FindOp(op->type), op);
    EXPECT_NE(op->infer, nullptr) << op->type;
    // A view has nothing to run, and what has sub-graphs is run by the engine.
    EXPECT_EQ(op->prepare == nullptr, op->is_view || op->num_bodies > 0) << op->type;
    EXPECT_TRUE(op->max_inputs == -1 || op->min_inputs <= op->max_inputs) << op->type;
  }
  EXPECT_GT(types.size(), 50u);
  EXPECT_EQ(FindOp("NoSuchOperator"), nullptr);
}

// The unit tests name the operators that they call.
TEST(Registry, EveryOperatorHasAUnitTest) {
  const std::filesystem::path tests = std::filesystem::path(TESSERA_SOURCE_DIR) / "tests";
  std::string sources;
  const auto read = [&](const std::filesystem::path& path) {
    std::ifstream in(path);
    sources.append(std::istreambuf_iterator<char>(in), {});
  };
  for (const auto& entry : std::filesystem::directory_iterator(tests / "ops")) {
    if (entry.path().string().ends_with("_test.cc")) read(entry.path());
  }
  read(tests / "engine" / "control_flow_test.cc");  // If and Loop run graphs
  for (const OpDef* op : AllOps()) {
    if (op->internal) continue;
    EXPECT_NE(sources.find(StrCat("\"", op->type, "\"")), std::string::npos) << op->type;
  }
}

}  // namespace
}  // namespace tessera
