// The table of operators: to add one, write its file and list its OpDef here.
#include <algorithm>
#include <iterator>

#include "ops/op.h"

namespace tessera {

extern const OpDef kAbsOp;
extern const OpDef kAddOp;
extern const OpDef kAndOp;
extern const OpDef kArgMaxOp;
extern const OpDef kArgMinOp;
extern const OpDef kAveragePoolOp;
extern const OpDef kBatchNormalizationOp;
extern const OpDef kCastOp;
extern const OpDef kClipOp;
extern const OpDef kConcatOp;
extern const OpDef kConstantOfShapeOp;
extern const OpDef kConstantOp;
extern const OpDef kConvOp;
extern const OpDef kConvPairOp;
extern const OpDef kCumSumOp;
extern const OpDef kDepthToSpaceOp;
extern const OpDef kDivOp;
extern const OpDef kDropoutOp;
extern const OpDef kEinsumOp;
extern const OpDef kEluOp;
extern const OpDef kEqualOp;
extern const OpDef kExpOp;
extern const OpDef kExpandOp;
extern const OpDef kFlattenOp;
extern const OpDef kFusedCompareOp;
extern const OpDef kFusedConvOp;
extern const OpDef kFusedDepthToSpaceOp;
extern const OpDef kFusedGemmOp;
extern const OpDef kFusedMulOp;
extern const OpDef kGatherOp;
extern const OpDef kGemmOp;
extern const OpDef kGlobalAveragePoolOp;
extern const OpDef kGlobalMaxPoolOp;
extern const OpDef kGreaterOp;
extern const OpDef kGreaterOrEqualOp;
extern const OpDef kGroupNormalizationOp;
extern const OpDef kGruOp;
extern const OpDef kHardSigmoidOp;
extern const OpDef kHardSwishOp;
extern const OpDef kHardmaxOp;
extern const OpDef kIdentityOp;
extern const OpDef kInstanceNormalizationOp;
extern const OpDef kLayerNormalizationOp;
extern const OpDef kLeakyReluOp;
extern const OpDef kLessOp;
extern const OpDef kLessOrEqualOp;
extern const OpDef kLogSoftmaxOp;
extern const OpDef kLpNormalizationOp;
extern const OpDef kLrnOp;
extern const OpDef kLstmOp;
extern const OpDef kIfOp;
extern const OpDef kLeakyReluOp;
extern const OpDef kLessOp;
extern const OpDef kLessOrEqualOp;
extern const OpDef kLoopOp;
extern const OpDef kMatMulOp;
extern const OpDef kMaxOp;
extern const OpDef kMaxPoolOp;
extern const OpDef kMeanVarianceNormalizationOp;
extern const OpDef kMinOp;
extern const OpDef kMulAddOp;
extern const OpDef kMulOp;
extern const OpDef kNegOp;
extern const OpDef kNotOp;
extern const OpDef kOrOp;
extern const OpDef kPReluOp;
extern const OpDef kPadOp;
extern const OpDef kPixelCorrelationOp;
extern const OpDef kPowOp;
extern const OpDef kReduceL1Op;
extern const OpDef kReduceL2Op;
extern const OpDef kReduceLogSumExpOp;
extern const OpDef kReduceLogSumOp;
extern const OpDef kReduceMaxOp;
extern const OpDef kReduceMeanOp;
extern const OpDef kReduceMinOp;
extern const OpDef kReduceProdOp;
extern const OpDef kReduceSumOp;
extern const OpDef kReduceSumSquareOp;
extern const OpDef kReluOp;
extern const OpDef kReshapeOp;
extern const OpDef kResizeOp;
extern const OpDef kRnnOp;
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
extern const OpDef kTopKOp;
extern const OpDef kTransposeOp;
extern const OpDef kUnsqueezeOp;
extern const OpDef kUpsampleOp;
extern const OpDef kWhereOp;
extern const OpDef kWinogradInputOp;

namespace {

const OpDef* const kOps[] = {
    &kAbsOp,
    &kAddOp,
    &kAndOp,
    &kArgMaxOp,
    &kArgMinOp,
    &kAveragePoolOp,
    &kBatchNormalizationOp,
    &kCastOp,
    &kClipOp,
    &kConcatOp,
    &kConstantOfShapeOp,
    &kConstantOp,
    &kConvOp,
    &kConvPairOp,
    &kCumSumOp,
    &kDepthToSpaceOp,
    &kDivOp,
    &kDropoutOp,
    &kEinsumOp,
    &kEluOp,
    &kEqualOp,
    &kExpOp,
    &kExpandOp,
    &kFlattenOp,
    &kFusedCompareOp,
    &kFusedConvOp,
    &kFusedDepthToSpaceOp,
    &kFusedGemmOp,
    &kFusedMulOp,
    &kGatherOp,
    &kGemmOp,
    &kGlobalAveragePoolOp,
    &kGlobalMaxPoolOp,
    &kGreaterOp,
    &kGreaterOrEqualOp,
    &kGroupNormalizationOp,
    &kGruOp,
    &kHardSigmoidOp,
    &kHardSwishOp,
    &kHardmaxOp,
    &kIdentityOp,
    &kInstanceNormalizationOp,
    &kLayerNormalizationOp,
    &kLeakyReluOp,
    &kLessOp,
    &kLessOrEqualOp,
    &kLogSoftmaxOp,
    &kLpNormalizationOp,
    &kLrnOp,
    &kLstmOp,
    &kIfOp,
    &kLeakyReluOp,
    &kLessOp,
    &kLessOrEqualOp,
    &kLoopOp,
    &kMatMulOp,
    &kMaxOp,
    &kMaxPoolOp,
    &kMeanVarianceNormalizationOp,
    &kMinOp,
    &kMulAddOp,
    &kMulOp,
    &kNegOp,
    &kNotOp,
    &kOrOp,
    &kPReluOp,
    &kPadOp,
    &kPixelCorrelationOp,
    &kPowOp,
    &kReduceL1Op,
    &kReduceL2Op,
    &kReduceLogSumExpOp,
    &kReduceLogSumOp,
    &kReduceMaxOp,
    &kReduceMeanOp,
    &kReduceMinOp,
    &kReduceProdOp,
    &kReduceSumOp,
    &kReduceSumSquareOp,
    &kReluOp,
    &kReshapeOp,
    &kResizeOp,
    &kRnnOp,
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
    &kTopKOp,
    &kTransposeOp,
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
