#include "apps/command_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/target_option.h"

namespace tessera {
namespace {

// CLI11 takes [a,b] for a list of a and b. A word like that gets a byte in front that no argument
// can have, until it is in its place.
constexpr char kMark = '\0';

std::string Marked(std::string word) {
  if (word.size() >= 2 && word.front() == '[' && word.back() == ']') word.insert(0, 1, kMark);
  return word;
}
std::string Unmarked(const std::string& word) {
  return word.empty() || word.front() != kMark ? word : word.substr(1);
}

const CLI::Validator kUnmark(
    [](std::string& text) {
      text = Unmarked(text);
      return std::string();
    },
    "");

}  // namespace

struct Options::Impl {
  CLI::App app;
};

Options::Options(const std::string& program, const std::string& purpose)
    : impl_(new Impl{.app = CLI::App(purpose, program)}) {
  impl_->app.get_formatter()->column_width(32);
  impl_->app.set_help_flag();  // until its group has begun
}

Options::~Options() = default;

void Options::Flag(const std::string& names, bool& target, const std::string& help) {
  impl_->app.add_flag(names, target, help)->group(group_);
}

void Options::Text(const std::string& names, const std::string& type, const std::string& wanted,
                   const std::function<bool(const std::string&)>& take, const std::string& help) {
  const std::string name = names.substr(names.rfind(',') + 1);
  const auto checked = [name, wanted, take](const std::string& word) {
    const std::string text = Unmarked(word);
    // An empty variable of a script is a mistake, not a wish for the default.
    Require(!text.empty(), name, ": is empty");
    Require(take(text), name, " ", text, ": want ", wanted);
  };
  impl_->app.add_option_function<std::string>(names, checked, help)->type_name(type)->group(group_);
}

void Options::Name(const std::string& names, const std::string& type, std::string& target,
                   const std::string& help) {
  const auto take = [&target](const std::string& text) {
    target = text;
    return true;
  };
  Text(names, type, "", take, help);
}

void Options::Path(const std::string& names, const std::string& type, std::filesystem::path& target,
                   const std::string& help) {
  const auto take = [&target](const std::string& text) {
    target = text;
    return true;
  };
  Text(names, type, "", take, help);
}

void Options::Paths(const std::string& names, const std::string& type,
                    std::vector<std::filesystem::path>& target, const std::string& help) {
  impl_->app.add_option(names, target, help + " (repeatable)")
      ->allow_extra_args(false)
      ->transform(kUnmark)
      ->check(CLI::Validator(
          [](const std::string& text) { return std::string(text.empty() ? "is empty" : ""); }, ""))
      ->type_name(type)
      ->group(group_);
}

void Options::Positional(const std::string& name, std::vector<std::filesystem::path>& target,
                         const std::string& help) {
  impl_->app.add_option(name, target, help)->transform(kUnmark)->type_name("");
}

std::string Options::Parse(std::vector<std::string> words) {
  CLI::App& app = impl_->app;
  AddTargetOption(app)->group(group_);
  app.set_help_flag("-h,--help", "Show this")->group(group_);
  AddVersionOption(app)->group(group_);
  std::ranges::transform(words, words.begin(), Marked);
  std::ranges::reverse(words);  // CLI11 takes the last one first
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::CallForVersion& version) {
    return StrCat(version.what(), "\n");
  } catch (const CLI::ParseError& error) {
    throw Error(error.what());
  }
  return {};
}

}  // namespace tessera
