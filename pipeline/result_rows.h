// From what the network makes, tile by tile, to the rows of the result.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "ops/parallel.h"
#include "pipeline/planes.h"
#include "pipeline/upscale_plan.h"
#include "pipeline/upscaler.h"

namespace tessera {

// Thread-safe.
class ResultRows {
 public:
  virtual ~ResultRows() = default;
  // Takes `planes`, which hold `rect` of the own picture, as soon as there is room for them, and
  // hands on what is complete. Returns where the first value is that is no finite number, in pixels
  // of the own picture less its border, if there is one. Throws the error of Cancel.
  [[nodiscard]] virtual std::optional<Place> Put(const Rect& rect, const PlanesView& planes,
                                                 Parallel& parallel) = 0;
  // The first row of the input that is still looked at, for alpha.
  virtual std::int64_t FirstInputRow() const = 0;
  // A thread failed: those that wait for what it should have done do not wait any longer.
  virtual void Cancel(const std::exception_ptr& error) = 0;
};

// All of these are to outlive what is returned.
std::unique_ptr<ResultRows> MakeResultRows(const UpscalePlan& plan, const Picture& in,
                                           const Picture& result, const PictureOptions& options,
                                           const RowFlow& flow);

}  // namespace tessera
