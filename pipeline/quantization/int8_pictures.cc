#include "pipeline/quantization/int8_pictures.h"

#include <algorithm>
#include <utility>

#include "ops/error.h"
#include "pipeline/format_text.h"
#include "pipeline/quantization/picture_samples.h"
#include "pipeline/quantization/quantize_network.h"

namespace tessera {
namespace {

// Bytes of float32 weights above which nobody who waits for a picture wants to wait for a search,
// which quantises the network again and again.
constexpr std::size_t kLargeNetwork = std::size_t{2} << 20;

bool IsLarge(const QuantizedModel& model) {
  std::size_t bytes = 0;
  for (const LayerReport& layer : model.layers) bytes += layer.float_bytes;
  return bytes > kLargeNetwork;
}

}  // namespace

std::shared_ptr<Session> QuantizeForPictures(const Int8Network& network,
                                             std::vector<Sample> samples, const Int8Note& note) {
  constexpr std::size_t kTests = 4;
  Calibration calibration{
      .samples = std::move(samples), .damage = PictureDamage, .unit = DamageUnit::kDecibels};
  // The first picture may be black or tiny, and what is kept is for all that come later.
  const Shape tile = calibration.samples.at(0).at(0).shape();
  calibration.samples.push_back(DrawnTile(tile));
  calibration.tests = SomeOf(calibration.samples, kTests);
  calibration.tests.push_back(DrawnTile(tile));
  QuantizedModel model = QuantizeNetwork(network.graph(), calibration, std::nullopt, {});
  // Not a number is too much as well.
  const bool is_visible = !(PsnrOfDamage(model.damage) >= kVisiblePsnr);
  if (is_visible && IsLarge(model)) {
    note(StrCat(
        "int8 comes within ", Fixed(PsnrOfDamage(model.damage), 1),
        " dB of float32, which can be seen; 'quantize --search' finds the layers that should "
        "stay in float"));
  } else if (is_visible) {
    note(StrCat("int8 would come within ", Fixed(PsnrOfDamage(model.damage), 1),
                " dB of float32, which can be seen; the layers that do the harm are searched for"));
    model = QuantizeNetwork(network.graph(), calibration, DamageOfPsnr(kVisiblePsnr), {});
  }
  note(StrCat(CountText(model), ", PSNR to float32 ", Fixed(PsnrOfDamage(model.damage), 1), " dB"));
  return network.Keep(model.graph, note);
}

}  // namespace tessera
