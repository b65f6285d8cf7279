// Convolution: parameters that all of its kernels share, and the kernels.
// https://onnx.ai/onnx/operators/onnx__Conv.html
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/epilogue.h"
#include "ops/op.h"
#include "ops/window.h"

namespace tessera {

// A convolution on X [N, C, spatial...] with W [M, C / group, kernel...]. Where it is transposed, W
// is [C, M / group, kernel...], and the windows lie in the output: with tap k, input element i of
// an axis adds to output element i * stride - pad_begin + k * dilation.
struct ConvNd {
  std::int64_t batch, in_channels, out_channels, groups;
  std::vector<WindowAxis> axes;
  Epilogue epilogue;
  bool transposed = false;

  Shape OutputShape() const;
  double Flops() const;
};

// By the rules of the model's opset (auto_pad, defaults). Throws Error for invalid combinations.
ConvNd ReadConv(const OpNode& node, const Shape& x, const Shape& w);
ConvNd ReadConvTranspose(const OpNode& node, const Shape& x, const Shape& w);

// A 2-D convolution on X [N, C, H, W] with W [M, C / group, KH, KW]. (1-D ones are seen as 2-D
// with height 1.)
struct ConvParams {
  std::int64_t batch, in_channels, in_height, in_width;
  std::int64_t out_channels, out_height, out_width;
  std::int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  std::int64_t pad_top, pad_left, pad_bottom, pad_right;
  std::int64_t groups;
  Epilogue epilogue;

  ConvNd ToNd() const;
  double Flops() const {
    return 2.0 * static_cast<double>(batch * out_channels * out_height * out_width) *
           static_cast<double>(in_channels / groups * kernel_h * kernel_w);
  }
};

// Attribute of a FusedConv whose X is the output of WinogradInput: the shape of WinogradInput's X.
inline constexpr std::string_view kTransformedFrom = "transformed_from";

// The shape of X, before WinogradInput if there is one.
Shape ConvInputShape(const OpNode& node, const TensorInfo& x);

// ReadConv for one or two spatial axes; throws Error for more.
ConvParams ReadConvParams(const OpNode& node, const Shape& x, const Shape& w);

// Constant operands of a convolution, as float32 row-major; null where absent or computed.
struct ConvConstants {
  std::shared_ptr<const Tensor> weights;  // [M, C / group, KH, KW]
  std::shared_ptr<const Tensor> bias;     // [M]
  std::shared_ptr<const Tensor> slope;    // M or 1 elements
};

// Kernels. Inputs at run time are those of FusedConv (see epilogue.h).

// Plain loops in double precision, row-major, every parameter; operands need not be constant.
std::unique_ptr<Kernel> MakeReferenceConv(const ConvNd& conv);
std::unique_ptr<Kernel> MakeReferenceConv(const ConvParams& params);

// float32, row-major, every parameter; operands need not be constant: the input pixels that a few
// output pixels depend on are copied side by side, and the weights times them is a matrix product.
// Null for kernels of too many taps.
std::unique_ptr<Kernel> MakeGemmConv(const ConvNd& conv);

// 3x3, stride 1, dilation 1, one group, pads of at most 1 (at the ends 2), NCHWc in and out:
// Winograd F(6x6,3x3) or F(4x4,3x3), whichever is faster for the shape. Null where it does not
// apply or a direct kernel is faster. An infinity or NaN in the input spreads over its 4x4 or 6x6
// tile of the output.
int ChooseWinogradTile(const ConvParams& params);  // 6, 4, or 0 for none
// Whether ChooseWinogradTile is other than 0 for some size of X.
bool MayUseWinograd(const ConvParams& params);
// AxisField::rounding of these: the first pixel of six is rounded by the input of the last.
inline constexpr int kWinogradRounding = 5;
std::unique_ptr<Kernel> MakeWinogradConv(const ConvParams& params, const ConvConstants& constants,
                                         PackCache& packs);

// The same convolution in two steps, for several convolutions that read the same channels (dense
// blocks do): the first transforms X [1, C, H, W] into tiles, NCHWc to NCHWc, once for all of them.
// A Concat of channels is the same before and after it. Only for one image, pads of 1, F(6x6,3x3).
bool CanShareWinogradInput(const ConvParams& params);
// [1, C, 64 positions, tiles], up to a last column that nobody uses.
Shape WinogradInputShape(const Shape& x);
std::unique_ptr<Kernel> MakeWinogradInput(const Shape& x);
// The second: X comes transformed; all else is as for MakeWinogradConv.
std::unique_ptr<Kernel> MakeWinogradProduct(const ConvParams& params,
                                            const ConvConstants& constants, PackCache& packs);

// Any kernel size, stride, dilation and pads: implicit GEMM on vectors of output channels. Input
// and output in either layout (row-major ones are transposed on the way; the addend has the layout
// of the output). In several groups only if their input and output channels are multiples of
// FloatLanes().
std::unique_ptr<Kernel> MakeDirectConv(const ConvParams& params, const ConvConstants& constants,
                                       Layout input_layout, Layout output_layout, PackCache& packs);

// The same on vectors of pixels, for few output channels (a group), whatever their number, in any
// number of groups. Row-major in and out.
std::unique_ptr<Kernel> MakePlanarConv(const ConvParams& params, const ConvConstants& constants,
                                       PackCache& packs);

// The same on vectors of input channels, for few output channels in one group. NCHWc in, row-major
// out.
std::unique_ptr<Kernel> MakeDotConv(const ConvParams& params, const ConvConstants& constants,
                                    PackCache& packs);

// groups == in_channels == out_channels, NCHWc in and out. Weights need not be constant (null).
std::unique_ptr<Kernel> MakeDepthwiseConv(const ConvParams& params, const ConvConstants& constants,
                                          PackCache& packs);

}  // namespace tessera
