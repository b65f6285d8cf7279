// JSON, as protobuf's strict parser reads it.
#pragma once

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "ops/error.h"

namespace tessera {

using JsonValue = google::protobuf::Value;

// Throws Error if `text` is no JSON.
inline JsonValue ParseJson(const std::string& text) {
  JsonValue value;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &value);
  Require(status.ok(), "no JSON: ", status.ToString(), ": ", text);
  return value;
}

inline JsonValue ReadJson(const std::filesystem::path& path) {
  std::ifstream in(path);
  return ParseJson({std::istreambuf_iterator<char>(in), {}});
}

// Throws std::exception if `object` has no such field.
inline const JsonValue& Field(const JsonValue& object, const std::string& key) {
  return object.struct_value().fields().at(key);
}
inline double Number(const JsonValue& object, const std::string& key) {
  return Field(object, key).number_value();
}
inline const std::string& String(const JsonValue& object, const std::string& key) {
  return Field(object, key).string_value();
}
// The elements of a list.
inline const auto& Elements(const JsonValue& object, const std::string& key) {
  return Field(object, key).list_value().values();
}

}  // namespace tessera
