#include "ops/pair_kernel.h"

#include <array>

#include "ops/element_loops.h"

namespace tessera {
namespace {

class PairKernel final : public Kernel {
 public:
  PairKernel(std::string_view name, const PrepareContext& context, PairRow row)
      : name_(name),
        row_(row),
        in_bytes_(static_cast<std::int64_t>(SizeOf(context.inputs[0].dtype))),
        out_bytes_(static_cast<std::int64_t>(SizeOf(context.outputs[0].dtype))),
        loops_(
            ElementLoops::Broadcast(context.outputs[0].shape,
                                    std::array{context.inputs[0].shape, context.inputs[1].shape})) {
    for (std::size_t i = 0; i < 2; ++i) {
      overwritable_[i] =
          in_bytes_ == out_bytes_ && context.inputs[i].shape == context.outputs[0].shape;
    }
  }

  std::string_view name() const override { return name_; }
  bool CanOverwriteInput(std::size_t i) const override { return overwritable_[i]; }
  void Run(const RunContext& context) const override {
    const auto* a = context.inputs[0].data<const std::byte>();
    const auto* b = context.inputs[1].data<const std::byte>();
    auto* out = context.outputs[0].data<std::byte>();
    const std::int64_t a_step = loops_.IsConstant(1) ? 0 : 1, b_step = loops_.IsConstant(2) ? 0 : 1;
    loops_.Run(context.parallel, [&](const ElementLoops::Offsets& at, std::int64_t n) {
      row_(a + at[1] * in_bytes_, a_step, b + at[2] * in_bytes_, b_step, out + at[0] * out_bytes_,
           n);
    });
  }

 private:
  std::string_view name_;
  PairRow row_;
  std::int64_t in_bytes_, out_bytes_;
  ElementLoops loops_;
  std::array<bool, 2> overwritable_{};
};

}  // namespace

std::unique_ptr<Kernel> MakePairKernel(std::string_view name, const PrepareContext& context,
                                       PairRow row) {
  return std::make_unique<PairKernel>(name, context, row);
}

}  // namespace tessera
