// Identity and Dropout at inference: the output is the input.
// https://onnx.ai/onnx/operators/onnx__Identity.html
#include "ops/op.h"

namespace tessera {

extern const OpDef kIdentityOp;
const OpDef kIdentityOp = {
    .type = "Identity",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferSameAsInput0,
    .field = PointwiseField,
    .is_view = true,
};

}  // namespace tessera
