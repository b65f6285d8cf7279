// Values of command-line options from their text.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

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

// Where a target is in a first frame.
struct InitialBox {
  std::optional<Box> box;
  std::filesystem::path file;  // instead, for ReadBox
};
// "x,y,w,h" or "x y w h" (with '.' in every locale), or the name of a file. nullopt for numbers
// that are no box. Throws Error if the box is empty.
std::optional<InitialBox> ReadInitialBox(const std::string& text);
inline constexpr std::string_view kInitialBoxWanted =
    "X,Y,W,H, the upper left corner and the size of a box, or a file that holds them";

}  // namespace tessera
