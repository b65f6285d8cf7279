#include "models/builtin_models.h"

#include <algorithm>

// builtin_data.S
extern "C" {
extern const std::byte tessera_default_x2_begin[];
extern const std::byte tessera_default_x2_end[];
extern const std::byte tessera_default_x4_begin[];
extern const std::byte tessera_default_x4_end[];
extern const std::byte tessera_default_x4_restore_begin[];
extern const std::byte tessera_default_x4_restore_end[];
}

namespace tessera {

std::span<const BuiltinModel> BuiltinModels() {
  static const BuiltinModel models[] = {
      {.name = "default-x2",
       .description = "small general-purpose x2 model for photographs",
       .licence = "Apache-2.0",
       .scale = 2,
       .parameters = 256572,
       .onnx = {tessera_default_x2_begin, tessera_default_x2_end}},
      {.name = "default-x4",
       .description = "small general-purpose x4 model for photographs",
       .licence = "Apache-2.0",
       .scale = 4,
       .parameters = 272160,
       .onnx = {tessera_default_x4_begin, tessera_default_x4_end}},
      {.name = "default-x4-restore",
       .description = "small x4 model for photographs with blur, noise and JPEG damage",
       .licence = "Apache-2.0",
       .scale = 4,
       .parameters = 272160,
       .onnx = {tessera_default_x4_restore_begin, tessera_default_x4_restore_end}},
  };
  return models;
}

const BuiltinModel* FindBuiltinModel(std::string_view name) {
  const std::span<const BuiltinModel> models = BuiltinModels();
  const auto found = std::ranges::find(models, name, &BuiltinModel::name);
  return found == models.end() ? nullptr : &*found;
}

const BuiltinModel& DefaultModel(double scale) {
  const std::span<const BuiltinModel> models = BuiltinModels();
  const auto found = std::ranges::find_if(
      models, [scale](const BuiltinModel& model) { return model.scale >= scale; });
  return found != models.end() ? *found
                               : *std::ranges::max_element(models, {}, &BuiltinModel::scale);
}

}  // namespace tessera
