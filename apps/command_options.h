// Command lines: options in groups, with a --help that shows them so.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/read_number.h"

namespace tessera {

// `names` are as CLI11 has them, the long one last: "-o,--output". `type` is what --help shows for
// the value. Targets are set while Parse is at work, which throws Error for what cannot be meant.
class Options {
 public:
  Options(const std::string& program, const std::string& purpose);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // Of the options that follow.
  void Group(const std::string& name) { group_ = name; }

  void Flag(const std::string& names, bool& target, const std::string& help);

  // `take` returns false if it makes no sense of the text; `wanted` says of what it would.
  void Text(const std::string& names, const std::string& type, const std::string& wanted,
            const std::function<bool(const std::string&)>& take, const std::string& help);

  void Name(const std::string& names, const std::string& type, std::string& target,
            const std::string& help);
  void Path(const std::string& names, const std::string& type, std::filesystem::path& target,
            const std::string& help);
  // More than one may be given, each with the option in front: files may follow.
  void Paths(const std::string& names, const std::string& type,
             std::vector<std::filesystem::path>& target, const std::string& help);
  // The words that belong to no option.
  void Positional(const std::string& name, std::vector<std::filesystem::path>& target,
                  const std::string& help);

  template <typename T, typename Target>
  void Whole(const std::string& names, const std::string& type, T low, T high, Target& target,
             const std::string& help) {
    const auto take = [&target, low, high](const std::string& text) {
      const std::optional<T> value = ReadNumber<T>(text, low, high);
      if (value) target = *value;
      return value.has_value();
    };
    Text(names, type, StrCat("a whole number from ", low, " to ", high), take, help);
  }

  template <typename Value>
  void Choice(const std::string& names, const std::vector<std::pair<std::string, Value>>& choices,
              const std::function<void(Value)>& set, const std::string& help) {
    std::string type, wanted;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      type += (i == 0 ? "" : "|") + choices[i].first;
      wanted += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i].first;
    }
    const auto take = [choices, set](const std::string& text) {
      for (const auto& [name, value] : choices) {
        if (text != name) continue;
        set(value);
        return true;
      }
      return false;
    };
    Text(names, type, wanted, take, help);
  }

  // Adds --target, --help and --version to the last group. Returns what the latter two print, if
  // they are asked for.
  std::string Parse(std::vector<std::string> words);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::string group_;
};

}  // namespace tessera
