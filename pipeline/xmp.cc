#include "pipeline/xmp.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace tessera {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
bool IsSpace(char c) { return kSpace.find(c) != kSpace.npos; }

// The text up to a little behind `at`. What is looked for is short; not finding it must not take a
// search through the whole packet, again and again.
std::string_view Near(std::string_view xml, std::size_t at) { return xml.substr(0, at + 256); }

// Of a value: where it begins and ends.
struct Range {
  std::size_t begin, end;
};

// Of an attribute of whose name `at` is the end.
std::optional<Range> AttributeValue(std::string_view packet, std::size_t at) {
  const std::string_view xml = Near(packet, at);
  at = xml.find_first_not_of(kSpace, at);
  if (at == xml.npos || xml[at] != '=') return std::nullopt;
  at = xml.find_first_not_of(kSpace, at + 1);
  if (at == xml.npos || (xml[at] != '"' && xml[at] != '\'')) return std::nullopt;
  const std::size_t end = xml.find(xml[at], at + 1);
  if (end == xml.npos) return std::nullopt;
  return Range{.begin = at + 1, .end = end};
}

// Of an element of the name in whose tag `at` is the end.
std::optional<Range> ElementValue(std::string_view packet, std::size_t at) {
  const std::string_view xml = Near(packet, at);
  const std::size_t tag_end = xml.find('>', at);
  if (tag_end == xml.npos || xml[tag_end - 1] == '/') return std::nullopt;
  const std::size_t end = xml.find('<', tag_end);
  if (end == xml.npos) return std::nullopt;
  return Range{.begin = tag_end + 1, .end = end};
}

// The prefix that stands for a namespace; empty if none does. A packet that has two for one is
// not to be met with.
std::string Prefix(std::string_view xml, std::string_view name_space) {
  constexpr std::string_view kDeclaration = "xmlns:";
  for (std::size_t at = 0; (at = xml.find(kDeclaration, at)) != xml.npos;) {
    at += kDeclaration.size();
    const std::size_t end = Near(xml, at).find_first_of(" \t\r\n=", at);
    if (end == xml.npos) continue;
    const auto value = AttributeValue(xml, end);
    if (value && xml.substr(value->begin, value->end - value->begin) == name_space)
      return std::string(xml.substr(at, end - at));
  }
  return {};
}

// Gives all attributes and elements of a name a value.
void Set(std::string& xmp, const std::string& name, std::int64_t value) {
  std::string result;
  std::size_t copied = 0;
  for (std::size_t at = 0; (at = xmp.find(name, at)) != xmp.npos;) {
    const char before = at == 0 ? '\0' : xmp[at - 1];
    at += name.size();
    const bool longer = at < xmp.size() && !IsSpace(xmp[at]) && xmp[at] != '=' && xmp[at] != '>';
    if (longer || (before != '<' && !IsSpace(before))) continue;
    const auto old = before == '<' ? ElementValue(xmp, at) : AttributeValue(xmp, at);
    if (!old) continue;
    result.append(xmp, copied, old->begin - copied).append(std::to_string(value));
    at = copied = old->end;
  }
  xmp = result.append(xmp, copied);
}

}  // namespace

bool LooksLikeXmp(std::string_view xmp) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (xmp.starts_with(kByteOrderMark)) xmp.remove_prefix(kByteOrderMark.size());
  const std::size_t first = xmp.find_first_not_of(kSpace);
  if (first == xmp.npos || xmp[first] != '<') return false;
  return xmp.find("<x:xmpmeta") != xmp.npos || xmp.find("<rdf:RDF") != xmp.npos;
}

void PatchXmp(std::string& xmp, std::int64_t width, std::int64_t height) {
  if (const std::string tiff = Prefix(xmp, "http://ns.adobe.com/tiff/1.0/"); !tiff.empty()) {
    Set(xmp, tiff + ":Orientation", 1);
    Set(xmp, tiff + ":ImageWidth", width);
    Set(xmp, tiff + ":ImageLength", height);
  }
  if (const std::string exif = Prefix(xmp, "http://ns.adobe.com/exif/1.0/"); !exif.empty()) {
    Set(xmp, exif + ":PixelXDimension", width);
    Set(xmp, exif + ":PixelYDimension", height);
  }
}

}  // namespace tessera
