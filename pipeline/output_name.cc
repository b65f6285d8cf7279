#include "pipeline/output_name.h"

#include <algorithm>
#include <climits>
#include <string_view>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/picture_name.h"

namespace tessera {

OutputName::OutputName(const ListOptions& options)
    : pattern_(options.name.empty() ? "{stem}{suffix}{ext}" : options.name),
      suffix_(options.suffix),
      scale_(options.scale),
      format_(options.format) {
  Require(suffix_.find('/') == suffix_.npos, "--suffix ", suffix_, ": has a '/'");
  const auto require = [&](bool condition, const auto&... reason) {
    Require(condition, "--name ", pattern_, ": ", reason...);
  };
  require(pattern_.find('/') == pattern_.npos, "has a '/'; the output folder is named for itself");
  require(suffix_.empty() || pattern_.find("{suffix}") != pattern_.npos,
          "lacks {suffix}, and --suffix is given");
  require(pattern_.find(".{ext}") == pattern_.npos, "{ext} has its dot already");
  Expand("", "");
  if (pattern_.ends_with("{ext}")) return;
  const std::optional<ImageFormat> own = FormatOfExtension(pattern_);
  require(own.has_value(), "has to end with {ext} or one of ", KnownExtensions());
  require(!format_ || format_ == own, "its extension does not stand for ",
          Name(format_.value_or(*own)));
  format_ = own;
}

std::string OutputName::Expand(const std::string& stem, const std::string& extension) const {
  std::string name;
  for (std::size_t at = 0; at < pattern_.size();) {
    const std::size_t open = std::min(pattern_.find('{', at), pattern_.size());
    name.append(pattern_, at, open - at);
    if (open == pattern_.size()) break;
    const std::size_t close = pattern_.find('}', open);
    const std::string field = pattern_.substr(open, close == pattern_.npos ? 1 : close - open + 1);
    if (field == "{stem}") {
      name += stem;
    } else if (field == "{suffix}") {
      name += suffix_;
    } else if (field == "{scale}") {
      name += scale_;
    } else if (field == "{ext}") {
      name += extension;
    } else {
      throw Error(
          StrCat("--name ", pattern_, ": ", field, " is none of {stem}, {suffix}, {scale}, {ext}"));
    }
    at = close + 1;
  }
  return name;
}

ListedFile OutputName::For(const std::filesystem::path& input,
                           const std::filesystem::path& folder) const {
  const std::filesystem::path name = input.filename();
  std::string stem = name.native(), extension;
  if (HasPictureExtension(name)) {
    extension = name.extension().native();
    stem.resize(stem.size() - extension.size());
  }
  const std::optional<ImageFormat> own = FormatOfExtension(name);
  const ImageFormat format = format_.value_or(own.value_or(ImageFormat::kPng));
  if (own != format) extension = Extension(format);
  const std::string output = Expand(stem, extension);
  Require(output.size() <= NAME_MAX, DisplayName(input), ": its output's name, ",
          DisplayName(output), ", has ", output.size(), " bytes; a name can have ", NAME_MAX);
  return {.input = input, .output = folder / output, .format = format};
}

}  // namespace tessera
