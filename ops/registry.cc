// The table of operators: to add one, write its file and list its OpDef here.
#include <algorithm>
#include <iterator>

#include "ops/op.h"

namespace tessera {

extern const OpDef kConvOp;
extern const OpDef kFusedConvOp;
extern const OpDef kIdentityOp;

namespace {

const OpDef* const kOps[] = {
    &kConvOp,
    &kFusedConvOp,
    &kIdentityOp,
};

}  // namespace

const OpDef* FindOp(std::string_view type) {
  const auto it = std::find_if(std::begin(kOps), std::end(kOps),
                               [&](const OpDef* op) { return op->type == type; });
  return it == std::end(kOps) ? nullptr : *it;
}

std::vector<const OpDef*> AllOps() {
  std::vector<const OpDef*> ops(std::begin(kOps), std::end(kOps));
  std::sort(ops.begin(), ops.end(),
            [](const OpDef* a, const OpDef* b) { return a->type < b->type; });
  return ops;
}

}  // namespace tessera
