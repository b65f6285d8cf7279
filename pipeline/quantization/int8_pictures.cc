#include "pipeline/quantization/int8_pictures.h"

#include <algorithm>

#include "ops/error.h"
#include "pipeline/format_text.h"
#include "pipeline/quantization/damage.h"

namespace tessera {

std::shared_ptr<Session> QuantizeForPictures(const Int8Network& network,
                                             std::span<const Sample> samples,
                                             const Int8Note& note) {
  constexpr std::size_t kTests = 4;
  const std::span<const Sample> tests = samples.first(std::min(kTests, samples.size()));
  QuantizedModel model = Quantize(network.graph(), samples, {});
  model.damage = MeasureDamage(network.graph(), model.graph, tests, PictureDamage);
  // Not a number is too much as well.
  if (!(PsnrOfDamage(model.damage) >= kVisiblePsnr)) {
    note(StrCat("int8 would come within ", Fixed(PsnrOfDamage(model.damage), 1),
                " dB of float32, which can be seen; the layers that do the harm are searched for"));
    model = QuantizeWithin(network.graph(), samples, tests, PictureDamage,
                           DamageOfPsnr(kVisiblePsnr), {});
  }
  note(StrCat(CountText(model), ", PSNR to float32 ", Fixed(PsnrOfDamage(model.damage), 1), " dB"));
  return network.Keep(model.graph, note);
}

}  // namespace tessera
