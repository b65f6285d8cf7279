// Values of command-line options from their text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "apps/command_options.h"
#include "pipeline/tracking/box.h"

namespace tessera {

// RGB from "white", "black", "#rrggbb" or "r,g,b" (0 to 255 each).
std::optional<std::array<std::uint8_t, 3>> ReadColour(std::string_view text);

// That one may ask for, on whatever machine.
inline constexpr int kMaxThreads = 1024;

inline constexpr int kMaxWorkers = 1024;
// "K", or "load:run:save" as the ncnn tools have it. Each is 1 to kMaxWorkers.
struct Workers {
  int run;  // K
  std::optional<int> load, save;
};
std::optional<Workers> ReadWorkers(std::string_view text);

// Adds --init, where a target is in a first frame: "x,y,w,h" or "x y w h" (with '.' in every
// locale), or the name of a file for ReadBox. Sets one of the two; wrong are numbers that are no
// box and empty boxes.
void AddInitialBox(Options& options, std::optional<Box>& box, std::filesystem::path& file);

// Adds --max-memory, for the MemoryScope that networks are loaded and run in: sets the bytes.
void AddMaxMemory(Options& options, std::size_t& bytes);

}  // namespace tessera
