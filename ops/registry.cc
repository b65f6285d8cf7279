// The table of operators: to add one, write its file and list its OpDef here.
#include <algorithm>
#include <iterator>

#include "ops/op.h"

namespace tessera {

extern const OpDef kAbsOp;
extern const OpDef kAcosOp;
extern const OpDef kAcoshOp;
extern const OpDef kAddOp;
extern const OpDef kAndOp;
extern const OpDef kArgMaxOp;
extern const OpDef kArgMinOp;
extern const OpDef kAsinOp;
extern const OpDef kAsinhOp;
extern const OpDef kAtanOp;
extern const OpDef kAtanhOp;
extern const OpDef kAveragePoolOp;
extern const OpDef kBatchNormalizationOp;
extern const OpDef kBitShiftOp;
extern const OpDef kBitwiseAndOp;
extern const OpDef kBitwiseNotOp;
extern const OpDef kBitwiseOrOp;
extern const OpDef kBitwiseXorOp;
extern const OpDef kByteTableOp;
extern const OpDef kCastOp;
extern const OpDef kCastLikeOp;
extern const OpDef kCeilOp;
extern const OpDef kCeluOp;
extern const OpDef kClipOp;
extern const OpDef kCompressOp;
extern const OpDef kConcatOp;
extern const OpDef kConstantOp;
extern const OpDef kConstantOfShapeOp;
extern const OpDef kConvOp;
extern const OpDef kConvIntegerOp;
extern const OpDef kConvPairOp;
extern const OpDef kConvTransposeOp;
extern const OpDef kCosOp;
extern const OpDef kCoshOp;
extern const OpDef kCumSumOp;
extern const OpDef kDepthToSpaceOp;
extern const OpDef kDequantizeLinearOp;
extern const OpDef kDivOp;
extern const OpDef kDropoutOp;
extern const OpDef kDynamicQuantizeLinearOp;
extern const OpDef kEinsumOp;
extern const OpDef kEluOp;
extern const OpDef kEqualOp;
extern const OpDef kErfOp;
extern const OpDef kExpOp;
extern const OpDef kExpandOp;
extern const OpDef kEyeLikeOp;
extern const OpDef kFlattenOp;
extern const OpDef kFloorOp;
extern const OpDef kFusedCompareOp;
extern const OpDef kFusedConvOp;
extern const OpDef kFusedDepthToSpaceOp;
extern const OpDef kFusedGemmOp;
extern const OpDef kFusedMulOp;
extern const OpDef kGatherOp;
extern const OpDef kGatherElementsOp;
extern const OpDef kGatherNDOp;
extern const OpDef kGeluOp;
extern const OpDef kGemmOp;
extern const OpDef kGlobalAveragePoolOp;
extern const OpDef kGlobalLpPoolOp;
extern const OpDef kGlobalMaxPoolOp;
extern const OpDef kGreaterOp;
extern const OpDef kGreaterOrEqualOp;
extern const OpDef kGridSampleOp;
extern const OpDef kGroupNormalizationOp;
extern const OpDef kGruOp;
extern const OpDef kHardSigmoidOp;
extern const OpDef kHardSwishOp;
extern const OpDef kHardmaxOp;
extern const OpDef kIdentityOp;
extern const OpDef kIfOp;
extern const OpDef kInstanceNormalizationOp;
extern const OpDef kInterleavePhasesOp;
extern const OpDef kIsInfOp;
extern const OpDef kIsNaNOp;
extern const OpDef kLayerNormalizationOp;
extern const OpDef kLeakyReluOp;
extern const OpDef kLessOp;
extern const OpDef kLessOrEqualOp;
extern const OpDef kLogOp;
extern const OpDef kLogSoftmaxOp;
extern const OpDef kLoopOp;
extern const OpDef kLpNormalizationOp;
extern const OpDef kLpPoolOp;
extern const OpDef kLrnOp;
extern const OpDef kLstmOp;
extern const OpDef kMatMulOp;
extern const OpDef kMatMulIntegerOp;
extern const OpDef kMaxOp;
extern const OpDef kMaxPoolOp;
extern const OpDef kMaxUnpoolOp;
extern const OpDef kMeanOp;
extern const OpDef kMeanVarianceNormalizationOp;
extern const OpDef kMinOp;
extern const OpDef kMishOp;
extern const OpDef kModOp;
extern const OpDef kMulOp;
extern const OpDef kMulAddOp;
extern const OpDef kNegOp;
extern const OpDef kNonMaxSuppressionOp;
extern const OpDef kNonZeroOp;
extern const OpDef kNotOp;
extern const OpDef kOneHotOp;
extern const OpDef kOrOp;
extern const OpDef kPReluOp;
extern const OpDef kPadOp;
extern const OpDef kPixelCorrelationOp;
extern const OpDef kPowOp;
extern const OpDef kQLinearConvOp;
extern const OpDef kQLinearMatMulOp;
extern const OpDef kQuantizeLinearOp;
extern const OpDef kQuantizedAddOp;
extern const OpDef kQuantizedConvOp;
extern const OpDef kQuantizedConvChainOp;
extern const OpDef kQuantizedDepthToSpaceOp;
extern const OpDef kQuantizedGlobalAverageOp;
extern const OpDef kQuantizedScaleOp;
extern const OpDef kRangeOp;
extern const OpDef kReciprocalOp;
extern const OpDef kReduceL1Op;
extern const OpDef kReduceL2Op;
extern const OpDef kReduceLogSumOp;
extern const OpDef kReduceLogSumExpOp;
extern const OpDef kReduceMaxOp;
extern const OpDef kReduceMeanOp;
extern const OpDef kReduceMinOp;
extern const OpDef kReduceProdOp;
extern const OpDef kReduceSumOp;
extern const OpDef kReduceSumSquareOp;
extern const OpDef kReluOp;
extern const OpDef kReshapeOp;
extern const OpDef kResizeOp;
extern const OpDef kReverseSequenceOp;
extern const OpDef kRnnOp;
extern const OpDef kRoiAlignOp;
extern const OpDef kRoundOp;
extern const OpDef kScatterOp;
extern const OpDef kScatterElementsOp;
extern const OpDef kScatterNDOp;
extern const OpDef kSeluOp;
extern const OpDef kShapeOp;
extern const OpDef kSigmoidOp;
extern const OpDef kSignOp;
extern const OpDef kSinOp;
extern const OpDef kSinhOp;
extern const OpDef kSizeOp;
extern const OpDef kSliceOp;
extern const OpDef kSoftmaxOp;
extern const OpDef kSoftplusOp;
extern const OpDef kSoftsignOp;
extern const OpDef kSpaceToDepthOp;
extern const OpDef kSplitOp;
extern const OpDef kSqrtOp;
extern const OpDef kSqueezeOp;
extern const OpDef kSubOp;
extern const OpDef kSumOp;
extern const OpDef kTanOp;
extern const OpDef kTanhOp;
extern const OpDef kThresholdedReluOp;
extern const OpDef kTileOp;
extern const OpDef kTopKOp;
extern const OpDef kTransposeOp;
extern const OpDef kTriluOp;
extern const OpDef kUniqueOp;
extern const OpDef kUnsqueezeOp;
extern const OpDef kUpsampleOp;
extern const OpDef kWhereOp;
extern const OpDef kWinogradInputOp;
extern const OpDef kXorOp;

namespace {

const OpDef* const kOps[] = {
    &kAbsOp,
    &kAcosOp,
    &kAcoshOp,
    &kAddOp,
    &kAndOp,
    &kArgMaxOp,
    &kArgMinOp,
    &kAsinOp,
    &kAsinhOp,
    &kAtanOp,
    &kAtanhOp,
    &kAveragePoolOp,
    &kBatchNormalizationOp,
    &kBitShiftOp,
    &kBitwiseAndOp,
    &kBitwiseNotOp,
    &kBitwiseOrOp,
    &kBitwiseXorOp,
    &kByteTableOp,
    &kCastOp,
    &kCastLikeOp,
    &kCeilOp,
    &kCeluOp,
    &kClipOp,
    &kCompressOp,
    &kConcatOp,
    &kConstantOp,
    &kConstantOfShapeOp,
    &kConvOp,
    &kConvIntegerOp,
    &kConvPairOp,
    &kConvTransposeOp,
    &kCosOp,
    &kCoshOp,
    &kCumSumOp,
    &kDepthToSpaceOp,
    &kDequantizeLinearOp,
    &kDivOp,
    &kDropoutOp,
    &kDynamicQuantizeLinearOp,
    &kEinsumOp,
    &kEluOp,
    &kEqualOp,
    &kErfOp,
    &kExpOp,
    &kExpandOp,
    &kEyeLikeOp,
    &kFlattenOp,
    &kFloorOp,
    &kFusedCompareOp,
    &kFusedConvOp,
    &kFusedDepthToSpaceOp,
    &kFusedGemmOp,
    &kFusedMulOp,
    &kGatherOp,
    &kGatherElementsOp,
    &kGatherNDOp,
    &kGeluOp,
    &kGemmOp,
    &kGlobalAveragePoolOp,
    &kGlobalLpPoolOp,
    &kGlobalMaxPoolOp,
    &kGreaterOp,
    &kGreaterOrEqualOp,
    &kGridSampleOp,
    &kGroupNormalizationOp,
    &kGruOp,
    &kHardSigmoidOp,
    &kHardSwishOp,
    &kHardmaxOp,
    &kIdentityOp,
    &kIfOp,
    &kInstanceNormalizationOp,
    &kInterleavePhasesOp,
    &kIsInfOp,
    &kIsNaNOp,
    &kLayerNormalizationOp,
    &kLeakyReluOp,
    &kLessOp,
    &kLessOrEqualOp,
    &kLogOp,
    &kLogSoftmaxOp,
    &kLoopOp,
    &kLpNormalizationOp,
    &kLpPoolOp,
    &kLrnOp,
    &kLstmOp,
    &kMatMulOp,
    &kMatMulIntegerOp,
    &kMaxOp,
    &kMaxPoolOp,
    &kMaxUnpoolOp,
    &kMeanOp,
    &kMeanVarianceNormalizationOp,
    &kMinOp,
    &kMishOp,
    &kModOp,
    &kMulOp,
    &kMulAddOp,
    &kNegOp,
    &kNonMaxSuppressionOp,
    &kNonZeroOp,
    &kNotOp,
    &kOneHotOp,
    &kOrOp,
    &kPReluOp,
    &kPadOp,
    &kPixelCorrelationOp,
    &kPowOp,
    &kQLinearConvOp,
    &kQLinearMatMulOp,
    &kQuantizeLinearOp,
    &kQuantizedAddOp,
    &kQuantizedConvOp,
    &kQuantizedConvChainOp,
    &kQuantizedDepthToSpaceOp,
    &kQuantizedGlobalAverageOp,
    &kQuantizedScaleOp,
    &kRangeOp,
    &kReciprocalOp,
    &kReduceL1Op,
    &kReduceL2Op,
    &kReduceLogSumOp,
    &kReduceLogSumExpOp,
    &kReduceMaxOp,
    &kReduceMeanOp,
    &kReduceMinOp,
    &kReduceProdOp,
    &kReduceSumOp,
    &kReduceSumSquareOp,
    &kReluOp,
    &kReshapeOp,
    &kResizeOp,
    &kReverseSequenceOp,
    &kRnnOp,
    &kRoiAlignOp,
    &kRoundOp,
    &kScatterOp,
    &kScatterElementsOp,
    &kScatterNDOp,
    &kSeluOp,
    &kShapeOp,
    &kSigmoidOp,
    &kSignOp,
    &kSinOp,
    &kSinhOp,
    &kSizeOp,
    &kSliceOp,
    &kSoftmaxOp,
    &kSoftplusOp,
    &kSoftsignOp,
    &kSpaceToDepthOp,
    &kSplitOp,
    &kSqrtOp,
    &kSqueezeOp,
    &kSubOp,
    &kSumOp,
    &kTanOp,
    &kTanhOp,
    &kThresholdedReluOp,
    &kTileOp,
    &kTopKOp,
    &kTransposeOp,
    &kTriluOp,
    &kUniqueOp,
    &kUnsqueezeOp,
    &kUpsampleOp,
    &kWhereOp,
    &kWinogradInputOp,
    &kXorOp,
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
