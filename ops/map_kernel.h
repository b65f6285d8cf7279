// The kernel of operators that compute each element of output 0 from the element of input 0 in its
// place.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "ops/element_loops.h"
#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {

// Row is a callable row(in, out, n): n elements that lie one after the other in memory. `out` may
// be `in` if elements of both types have one size.
template <typename Row>
class MapKernel final : public Kernel {
 public:
  MapKernel(std::string_view name, const PrepareContext& context, Row row)
      : name_(name),
        row_(std::move(row)),
        in_bytes_(static_cast<std::int64_t>(SizeOf(context.inputs[0].dtype))),
        out_bytes_(static_cast<std::int64_t>(SizeOf(context.outputs[0].dtype))),
        loops_(ElementLoops::Same(context.inputs[0].shape, context.inputs[0].layout)) {}

  std::string_view name() const override { return name_; }
  bool CanOverwriteInput(std::size_t) const override { return in_bytes_ == out_bytes_; }
  void Run(const RunContext& context) const override {
    const auto* in = context.inputs[0].data<const std::byte>();
    auto* out = context.outputs[0].data<std::byte>();
    loops_.Run(context.parallel, [&](const ElementLoops::Offsets& at, std::int64_t n) {
      row_(in + at[1] * in_bytes_, out + at[0] * out_bytes_, n);
    });
  }

 private:
  std::string_view name_;
  Row row_;
  std::int64_t in_bytes_, out_bytes_;
  ElementLoops loops_;
};

// `name` is a literal.
template <typename Row>
std::unique_ptr<Kernel> MakeMapKernel(std::string_view name, const PrepareContext& context,
                                      Row row) {
  return std::make_unique<MapKernel<Row>>(name, context, std::move(row));
}

// A row of values that `function` maps from From to To.
template <typename From, typename To, typename Function>
void MapElements(const Function& function, const void* in, void* out, std::int64_t n) {
  const From* from = static_cast<const From*>(in);
  To* to = static_cast<To*>(out);
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<To>(function(static_cast<ComputeType<From>>(from[i])));
  }
}

// The kernel of a Function without state, which maps the element types of a list to themselves.
template <typename Function, typename Types>
std::unique_ptr<Kernel> PrepareMap(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, Types(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeMapKernel("map", context, [](const void* in, void* out, std::int64_t n) {
      MapElements<T, T>(Function(), in, out, n);
    });
  });
}

}  // namespace tessera
