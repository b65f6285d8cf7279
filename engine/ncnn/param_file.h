// The text of an ncnn network: its layers, the blobs between them, and their numbered parameters.
// Format: ncnn's docs/developer-guide/param-and-model-file-structure.md
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// The first line of the text format.
inline constexpr std::string_view kNcnnMagic = "7767517";

// A parameter as it is written: one number, a list of numbers, or a string.
struct NcnnParam {
  enum class Kind { kNumber, kList, kText };

  Kind kind = Kind::kNumber;
  std::vector<double> numbers;  // one for kNumber; every int32 and float is exact in a double
  std::string text;
};

struct NcnnLayer {
  std::string type, name;
  std::vector<std::string> bottoms, tops;  // names of the blobs that it reads and makes
  std::map<int, NcnnParam> params;
  int line = 0;  // of the file, from 1
};

// Layers in the order of the file, which is the order of their weights too. Every blob is made
// before it is read, and made once.
struct NcnnNetwork {
  std::string file;
  std::vector<NcnnLayer> layers;
};

// Throws Error, with the file's name and the line, for text that is no such network.
NcnnNetwork ParseNcnnParam(std::string_view text, const std::string& file);

}  // namespace tessera
