// File names in messages.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "ops/error.h"

namespace tessera {

// The name on one line of valid UTF-8: control characters, backslashes and bytes that are no UTF-8
// are shown as \n, \\, \xFF.
std::string DisplayName(const std::filesystem::path& path);
// The same for a file that is read: "-" is "standard input".
std::string InputName(const std::filesystem::path& path);

// A message in the same way, but for its backslashes: names within it may have been escaped
// already. Names of nodes in a model and arguments of a command may hold anything.
std::string OneLine(std::string_view message);

// An Error whose message begins with the name of a file.
class FileError : public Error {
 public:
  using Error::Error;
};

// Returns f(); an Error from it gets a name, as it is to be shown, in front: "cat.png: file ends
// too soon". Not a second one: where files are read and written in one go, the inner name is the
// right one.
template <typename F>
auto Naming(const std::string& shown_name, F&& f) {
  try {
    return f();
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    throw FileError(StrCat(shown_name, ": ", error.what()));
  }
}

template <typename F>
auto NamingFile(const std::filesystem::path& path, F&& f) {
  return Naming(DisplayName(path), f);
}

// Like NamingFile, for a file that is read.
template <typename F>
auto NamingInput(const std::filesystem::path& path, F&& f) {
  return Naming(InputName(path), f);
}

}  // namespace tessera
