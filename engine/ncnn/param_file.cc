#include "engine/ncnn/param_file.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>

#include "engine/model_limits.h"
#include "ops/error.h"

namespace tessera {
namespace {

// What ncnn itself allows.
constexpr int kMaxParams = 32;
constexpr int kListIds = -23300;  // -23300 - id introduces a list with its length in front
constexpr std::size_t kMaxText = 255;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text) { network_.file = file; }

  NcnnNetwork Parse() {
    CheckMagic();
    Require(NextLine(), network_.file, ": ends after the first line");
    const std::int64_t layers = Count(Word("the number of layers"), "number of layers");
    Require(layers <= kMaxNodes, network_.file, ": has more than ", kMaxNodes, " layers");
    const std::int64_t blobs = Count(Word("the number of blobs"), "number of blobs");
    Check(Rest().empty(), "'", Rest(), "' after the numbers of layers and blobs");
    while (NextLine()) {
      Check(static_cast<std::int64_t>(network_.layers.size()) < layers, "the file promises ",
            layers, " layers, this is one more");
      ParseLayer();
    }
    const auto found = static_cast<std::int64_t>(network_.layers.size());
    Require(found == layers, network_.file, ": ends after ", found, " of ", layers, " layers");
    Require(static_cast<std::int64_t>(made_.size()) <= blobs, network_.file, ": promises ", blobs,
            " blobs, its layers make ", made_.size());
    return std::move(network_);
  }

 private:
  template <typename... Args>
  void Check(bool condition, const Args&... args) const {
    if (condition) return;
    const std::string layer =
        in_layer_ ? StrCat(" layer '", network_.layers.back().name, "':") : std::string();
    throw Error(StrCat(network_.file, ":", line_number_, ":", layer, " ", args...));
  }

  void CheckMagic() {
    constexpr std::uint32_t kMagic = 7767517;
    std::uint32_t binary = 0;
    if (text_.size() >= sizeof(binary)) std::memcpy(&binary, text_.data(), sizeof(binary));
    Require(binary != kMagic, network_.file,
            ": is in ncnn's binary format; the text format (.param) is needed");
    Require(NextLine(), network_.file, ": the file is empty");
    const std::string_view magic = Word("a magic number");
    Require(magic == kNcnnMagic && Rest().empty(), network_.file,
            ": no ncnn network, or of a format that is too old (the first line is not ", kNcnnMagic,
            ")");
  }

  // The next line that holds anything.
  bool NextLine() {
    in_layer_ = false;
    while (!text_.empty()) {
      const std::size_t end = text_.find('\n');
      line_ = text_.substr(0, end);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      ++line_number_;
      if (!Rest().empty()) return true;
    }
    return false;
  }

  // What is left of the line.
  std::string_view Rest() {
    while (!line_.empty() && IsSpace(line_.front())) line_.remove_prefix(1);
    return line_;
  }

  std::string_view Word(std::string_view what) {
    const std::string_view rest = Rest();
    Check(!rest.empty(), what, " is missing");
    std::size_t end = 0;
    while (end < rest.size() && !IsSpace(rest[end])) ++end;
    line_.remove_prefix(end);
    return rest.substr(0, end);
  }

  std::int64_t Count(std::string_view word, std::string_view what) const {
    const std::int64_t n = Integer(word);
    Check(n >= 0, "'", word, "' is no ", what);
    return n;
  }

  std::int64_t Integer(std::string_view word) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    Check(error == std::errc() && end == word.data() + word.size() &&
              value >= std::numeric_limits<std::int32_t>::min() &&
              value <= std::numeric_limits<std::int32_t>::max(),
          "'", word, "' is no integer of 32 bits");
    return value;
  }

  double Number(std::string_view word) const {
    if (word.find_first_of(".eE") == std::string_view::npos) {
      return static_cast<double>(Integer(word));
    }
    double decimals = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), decimals);
    const auto value = static_cast<float>(decimals);  // what a file means is the nearest float
    Check(error == std::errc() && end == word.data() + word.size() && std::isfinite(value), "'",
          word, "' is no number");
    return value;
  }

  void ParseLayer() {
    const std::string_view type = Word("a layer's type");
    network_.layers.emplace_back();
    NcnnLayer& layer = network_.layers.back();
    layer.type = type;
    layer.name = Word("the layer's name");
    layer.line = line_number_;
    in_layer_ = true;
    const std::int64_t bottoms = Count(Word("the number of inputs"), "number of inputs");
    const std::int64_t tops = Count(Word("the number of outputs"), "number of outputs");
    for (std::int64_t i = 0; i < bottoms; ++i) {
      layer.bottoms.emplace_back(Word("the name of an input"));
      Check(made_.contains(layer.bottoms.back()), "its input '", layer.bottoms.back(),
            "' is made by no layer before it");
    }
    for (std::int64_t i = 0; i < tops; ++i) {
      layer.tops.emplace_back(Word("the name of an output"));
      Check(made_.insert(layer.tops.back()).second, "its output '", layer.tops.back(),
            "' is made by another layer already");
    }
    while (!Rest().empty()) ParseParam(layer);
  }

  void ParseParam(NcnnLayer& layer) {
    const std::string_view rest = Rest();
    const std::size_t equals = rest.find('=');
    Check(equals != std::string_view::npos, "'", rest.substr(0, 40),
          "' is no parameter (ID=VALUE)");
    const std::int64_t written = Integer(rest.substr(0, equals));
    const bool counted = written <= kListIds;
    const std::int64_t id = counted ? kListIds - written : written;
    Check(id >= 0 && id < kMaxParams, "parameter ", written, ": ids go from 0 to ", kMaxParams - 1);
    line_.remove_prefix(equals + 1);
    NcnnParam param = !counted && (line_.starts_with('"') || (!line_.empty() && IsAlpha(line_[0])))
                          ? Text()
                          : Numbers(counted);
    Check(layer.params.emplace(static_cast<int>(id), std::move(param)).second, "parameter ", id,
          " is there twice");
  }

  NcnnParam Text() {
    NcnnParam param;
    param.kind = NcnnParam::Kind::kText;
    if (line_.starts_with('"')) {
      line_.remove_prefix(1);
      const std::size_t end = line_.find('"');
      Check(end != std::string_view::npos, "a string does not end");
      param.text = line_.substr(0, end);
      line_.remove_prefix(end + 1);
      Check(line_.empty() || IsSpace(line_.front()), "'", line_.substr(0, 40), "' after a string");
    } else {
      param.text = Word("a value");
    }
    Check(param.text.size() <= kMaxText, "a string is longer than ", kMaxText);
    return param;
  }

  // "7", "1,2,3", or with the length in front "3,1,2,3".
  NcnnParam Numbers(bool counted) {
    Check(!line_.empty() && !IsSpace(line_.front()), "a parameter has no value");
    std::string_view word = Word("a value");
    NcnnParam param;
    if (counted || word.find(',') != std::string_view::npos) param.kind = NcnnParam::Kind::kList;
    std::int64_t length = -1;
    if (counted) {
      const std::size_t comma = std::min(word.find(','), word.size());
      length = Count(word.substr(0, comma), "length of a list");
      word.remove_prefix(std::min(comma + 1, word.size()));
    } else if (word.ends_with(',')) {
      word.remove_suffix(1);
    }
    while (!word.empty()) {
      const std::size_t comma = std::min(word.find(','), word.size());
      param.numbers.push_back(Number(word.substr(0, comma)));
      word.remove_prefix(std::min(comma + 1, word.size()));
    }
    const auto found = static_cast<std::int64_t>(param.numbers.size());
    Check(length < 0 || found == length, "a list of ", length, " has ", found, " numbers");
    return param;
  }

  std::string_view text_, line_;  // what is not read yet: of the file, of its present line
  int line_number_ = 0;
  bool in_layer_ = false;
  std::set<std::string, std::less<>> made_;  // blobs so far
  NcnnNetwork network_;
};

}  // namespace

NcnnNetwork ParseNcnnParam(std::string_view text, const std::string& file) {
  return Parser(text, file).Parse();
}

}  // namespace tessera
