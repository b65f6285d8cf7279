#include "pipeline/quantization/int8_pictures.h"

#include <algorithm>
#include <utility>

#include "ops/error.h"
#include "pipeline/format_text.h"
#include "pipeline/quantization/quantize_network.h"

namespace tessera {

std::shared_ptr<Session> QuantizeForPictures(const Int8Network& network,
                                             std::vector<Sample> samples, const Int8Note& note) {
  constexpr std::size_t kTests = 4;
  Calibration calibration{
      .samples = std::move(samples), .damage = PictureDamage, .unit = DamageUnit::kDecibels};
  calibration.tests = SomeOf(calibration.samples, kTests);
  QuantizedModel model = QuantizeNetwork(network.graph(), calibration, std::nullopt, {});
  // Not a number is too much as well.
  if (!(PsnrOfDamage(model.damage) >= kVisiblePsnr)) {
    note(StrCat("int8 would come within ", Fixed(PsnrOfDamage(model.damage), 1),
                " dB of float32, which can be seen; the layers that do the harm are searched for"));
    model = QuantizeNetwork(network.graph(), calibration, DamageOfPsnr(kVisiblePsnr), {});
  }
  note(StrCat(CountText(model), ", PSNR to float32 ", Fixed(PsnrOfDamage(model.damage), 1), " dB"));
  return network.Keep(model.graph, note);
}

}  // namespace tessera
