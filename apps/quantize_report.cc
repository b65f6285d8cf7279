#include "apps/quantize_report.h"

#include <algorithm>
#include <vector>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/format_text.h"

namespace tessera {
namespace {

std::string Kilobytes(std::size_t bytes) { return Fixed(static_cast<double>(bytes) * 0x1p-10, 1); }

// The first and second column to the left, the others to the right.
std::string Align(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (i < 2 ? row[i] + pad : pad + row[i]);
    }
    text += line + "\n";
  }
  return text;
}

// Of all convolutions together.
double Speedup(const std::vector<LayerReport>& layers) {
  double time = 0, all = 0;
  for (const LayerReport& layer : layers) {
    all += layer.share;
    time += layer.share / (layer.quantized && layer.speedup > 0 ? layer.speedup : 1);
  }
  return time > 0 ? all / time : 1;
}

}  // namespace

std::string ToText(const QuantizeReport& report) {
  const QuantizedModel& model = *report.quantized;
  std::vector<std::vector<std::string>> rows = {{"layer", "type",
                                                 StrCat(QualityWord(report.unit), " alone"), "as",
                                                 "weights KB", "share", "speed-up"}};
  for (const LayerReport& layer : model.layers) {
    rows.push_back({OneLine(layer.name), layer.type,
                    report.searched ? QualityText(report.unit, layer.damage) : "-",
                    layer.quantized ? "int8" : "float",
                    StrCat(Kilobytes(layer.float_bytes), " -> ",
                           Kilobytes(layer.quantized ? layer.quantized_bytes : layer.float_bytes)),
                    Fixed(100 * layer.share, 1) + " %",
                    layer.quantized ? Fixed(layer.speedup, 1) : "1.0"});
  }
  const auto quantized = std::ranges::count(model.layers, true, &LayerReport::quantized);
  return StrCat(Align(rows), OneLine(report.model), ": ", quantized, " of ", model.layers.size(),
                " convolutions with 8-bit integers; ", Kilobytes(report.float_bytes), " KB -> ",
                Kilobytes(report.quantized_bytes), " KB; ", QualityName(report.unit), ": ",
                QualityText(report.unit, model.damage), "; expected speed-up of the convolutions ",
                Fixed(Speedup(model.layers), 1), "\n");
}

}  // namespace tessera
