// Numbers in the names of files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Runs of digits compare by value, all else byte by byte: img2 is before img10. Names that differ
// in leading zeros alone compare as bytes.
bool NaturalLess(std::string_view a, std::string_view b);

// The name of a file with a place for a number, as printf has it: "img%04d.jpg". "%%" is a '%'.
class NumberedName {
 public:
  // Throws Error, which names the pattern, unless it has one conversion %d, %i or %u, in its last
  // part, with a width of at most 18 and a leading 0 at the most.
  explicit NumberedName(const std::filesystem::path& pattern);

  std::filesystem::path Of(std::int64_t number) const { return folder_ / NameOf(number); }

  // Numbers from 0 on of the files that are there, ascending. Throws Error if the folder cannot be
  // read.
  std::vector<std::int64_t> Existing() const;

 private:
  std::string NameOf(std::int64_t number) const;

  std::filesystem::path folder_;
  std::string before_, after_;  // what the name has beside the number
  std::size_t width_ = 0;
  char fill_ = ' ';
};

}  // namespace tessera
