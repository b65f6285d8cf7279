#include <gtest/gtest.h>

#include <set>
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

}  // namespace
}  // namespace tessera
