// The table of operators: to add one, write its file and list its OpDef here.
#include <algorithm>
#include <iterator>

#include "ops/op.h"

namespace tessera {

extern const OpDef kAbsOp;
extern const OpDef kAddOp;
extern const OpDef kAndOp;
extern const OpDef kAveragePoolOp;
extern const OpDef kBatchNormalizationOp;
extern const OpDef kCastLikeOp;
extern const OpDef kCastOp;
extern const OpDef kClipOp;
extern const OpDef kCompressOp;
extern const OpDef kConcatOp;
extern const OpDef kConstantOfShapeOp;
extern const OpDef kConstantOp;
extern const OpDef kConvOp;
extern const OpDef kConvPairOp;
extern const OpDef kDepthToSpaceOp;
extern const OpDef kDivOp;
extern const OpDef kDropoutOp;
extern const OpDef kEluOp;
extern const OpDef kEqualOp;
extern const OpDef kExpOp;
extern const OpDef kExpandOp;
extern const OpDef kEyeLikeOp;
extern const OpDef kFlattenOp;
extern const OpDef kFusedCompareOp;
extern const OpDef kFusedConvOp;
extern const OpDef kFusedDepthToSpaceOp;
extern const OpDef kFusedGemmOp;
extern const OpDef kFusedMulOp;
extern const OpDef kGatherElementsOp;
extern const OpDef kGatherNDOp;
extern const OpDef kGatherOp;
extern const OpDef kGemmOp;
extern const OpDef kGlobalAveragePoolOp;
extern const OpDef kGlobalMaxPoolOp;
extern const OpDef kGreaterOp;
extern const OpDef kGreaterOrEqualOp;
extern const OpDef kHardSigmoidOp;
extern const OpDef kHardSwishOp;
extern const OpDef kIdentityOp;
extern const OpDef kIfOp;
extern const OpDef kLeakyReluOp;
extern const OpDef kLessOp;
extern const OpDef kLessOrEqualOp;
extern const OpDef kLoopOp;
extern const OpDef kMatMulOp;
extern const OpDef kMaxOp;
extern const OpDef kMaxPoolOp;
extern const OpDef kMinOp;
extern const OpDef kMulAddOp;
extern const OpDef kMulOp;
extern const OpDef kNegOp;
extern const OpDef kNonZeroOp;
extern const OpDef kNotOp;
extern const OpDef kOneHotOp;
extern const OpDef kOrOp;
extern const OpDef kPReluOp;
extern const OpDef kPadOp;
extern const OpDef kPixelCorrelationOp;
extern const OpDef kPowOp;
extern const OpDef kRangeOp;
extern const OpDef kReduceMeanOp;
extern const OpDef kReluOp;
extern const OpDef kReshapeOp;
extern const OpDef kResizeOp;
extern const OpDef kReverseSequenceOp;
extern const OpDef kScatterElementsOp;
extern const OpDef kScatterNDOp;
extern const OpDef kScatterOp;
extern const OpDef kShapeOp;
extern const OpDef kSigmoidOp;
extern const OpDef kSizeOp;
extern const OpDef kSliceOp;
extern const OpDef kSoftmaxOp;
extern const OpDef kSpaceToDepthOp;
extern const OpDef kSplitOp;
extern const OpDef kSqrtOp;
extern const OpDef kSqueezeOp;
extern const OpDef kSubOp;
extern const OpDef kTanhOp;
extern const OpDef kTileOp;
extern const OpDef kTransposeOp;
extern const OpDef kTriluOp;
extern const OpDef kUniqueOp;
extern const OpDef kUnsqueezeOp;
extern const OpDef kUpsampleOp;
extern const OpDef kWhereOp;
extern const OpDef kWinogradInputOp;

namespace {

const OpDef* const kOps[] = {
    &kAbsOp,
    &kAddOp,
    &kAndOp,
    &kAveragePoolOp,
    &kBatchNormalizationOp,
    &kCastLikeOp,
    &kCastOp,
    &kClipOp,
    &kCompressOp,
    &kConcatOp,
    &kConstantOfShapeOp,
    &kConstantOp,
    &kConvOp,
    &kConvPairOp,
    &kDepthToSpaceOp,
    &kDivOp,
    &kDropoutOp,
    &kEluOp,
    &kEqualOp,
    &kExpOp,
    &kExpandOp,
    &kEyeLikeOp,
    &kFlattenOp,
    &kFusedCompareOp,
    &kFusedConvOp,
    &kFusedDepthToSpaceOp,
    &kFusedGemmOp,
    &kFusedMulOp,
    &kGatherElementsOp,
    &kGatherNDOp,
    &kGatherOp,
    &kGemmOp,
    &kGlobalAveragePoolOp,
    &kGlobalMaxPoolOp,
    &kGreaterOp,
    &kGreaterOrEqualOp,
    &kHardSigmoidOp,
    &kHardSwishOp,
    &kIdentityOp,
    &kIfOp,
    &kLeakyReluOp,
    &kLessOp,
    &kLessOrEqualOp,
    &kLoopOp,
    &kMatMulOp,
    &kMaxOp,
    &kMaxPoolOp,
    &kMinOp,
    &kMulAddOp,
    &kMulOp,
    &kNegOp,
    &kNonZeroOp,
    &kNotOp,
    &kOneHotOp,
    &kOrOp,
    &kPReluOp,
    &kPadOp,
    &kPixelCorrelationOp,
    &kPowOp,
    &kRangeOp,
    &kReduceMeanOp,
    &kReluOp,
    &kReshapeOp,
    &kResizeOp,
    &kReverseSequenceOp,
    &kScatterElementsOp,
    &kScatterNDOp,
    &kScatterOp,
    &kShapeOp,
    &kSigmoidOp,
    &kSizeOp,
    &kSliceOp,
    &kSoftmaxOp,
    &kSpaceToDepthOp,
    &kSplitOp,
    &kSqrtOp,
    &kSqueezeOp,
    &kSubOp,
    &kTanhOp,
    &kTileOp,
    &kTransposeOp,
    &kTriluOp,
    &kUniqueOp,
    &kUnsqueezeOp,
    &kUpsampleOp,
    &kWhereOp,
    &kWinogradInputOp,
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
