#include "engine/model_file.h"

#include <string>

#include "engine/ncnn/param_file.h"
#include "engine/ncnn_import.h"
#include "engine/onnx_import.h"
#include "engine/open_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// Names may hold dots: "foo.v2" is no file of type ".v2".
fs::path With(fs::path path, const char* extension) { return path += extension; }

bool BeginsAsNcnnText(const fs::path& path) {
  std::ifstream in = OpenModelFile(path);
  std::string start(kNcnnMagic.size(), '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == kNcnnMagic;
}

}  // namespace

fs::path NcnnWeightsFile(fs::path param) { return param.replace_extension(".bin"); }
fs::path NcnnTextFile(fs::path bin) { return bin.replace_extension(".param"); }

bool ModelExists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) || IsFile(With(path, ".onnx")) || IsFile(With(path, ".param"));
}

Graph ImportModel(const fs::path& path) {
  const fs::path extension = path.extension();
  if (IsFile(path) && extension == ".bin" && !BeginsAsNcnnText(path)) {
    Require(path.stem().extension() != ".param", path.string(),
            ": is an ncnn network in the binary format; the text format (.param) is needed");
    const fs::path text = NcnnTextFile(path);
    Require(IsFile(text), path.string(), ": holds weights; the network has to be beside it, in ",
            text.filename().string());
    return ImportNcnn(text, path);
  }
  if (extension == ".param" || (IsFile(path) && BeginsAsNcnnText(path))) {
    const fs::path weights = NcnnWeightsFile(path);
    OpenModelFile(path);  // if both are missing, this is the one to name
    Require(IsFile(weights), path.string(), ": the weights have to be beside it, in ",
            weights.filename().string());
    return ImportNcnn(path, weights);
  }
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (const fs::path onnx = With(path, ".onnx"); IsFile(onnx)) return ImportOnnx(onnx);
    if (const fs::path text = With(path, ".param"); IsFile(text)) return ImportModel(text);
  }
  return ImportOnnx(path);
}

}  // namespace tessera
