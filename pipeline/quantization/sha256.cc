#include "pipeline/quantization/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tessera {
namespace {

constexpr std::size_t kBlock = 64, kRounds = 64;
using State = std::array<std::uint32_t, 8>;

// The constants are the first 32 bits of the fractions of roots of the first primes: for those of
// up to 311 a double has digits enough.
std::uint32_t Fraction(double root) {
  return static_cast<std::uint32_t>((root - std::floor(root)) * 0x1p32);
}

struct Constants {
  Constants() {
    std::size_t n = 0;
    for (int p = 2; n < kRounds; ++p) {
      bool prime = true;
      for (int d = 2; d * d <= p; ++d) prime = prime && p % d != 0;
      if (!prime) continue;
      if (n < start.size()) start[n] = Fraction(std::sqrt(p));
      rounds[n++] = Fraction(std::cbrt(p));
    }
  }
  State start = {};
  std::array<std::uint32_t, kRounds> rounds = {};
};

void AddBlock(const unsigned char* block, const Constants& constants, State& state) {
  std::array<std::uint32_t, kRounds> w;
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = std::uint32_t{block[4 * i]} << 24 | std::uint32_t{block[4 * i + 1]} << 16 |
           std::uint32_t{block[4 * i + 2]} << 8 | std::uint32_t{block[4 * i + 3]};
  }
  for (std::size_t i = 16; i < kRounds; ++i) {
    const std::uint32_t x = w[i - 15], y = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3)) + w[i - 7] +
           (std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < kRounds; ++i) {
    const std::uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                             ((e & f) ^ (~e & g)) + constants.rounds[i] + w[i];
    const std::uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const State added = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

void AppendBigEndian(std::uint64_t value, int bytes, std::string& text) {
  while (bytes-- > 0) text += static_cast<char>(value >> (8 * bytes) & 0xFF);
}

}  // namespace

std::string Sha256(std::string_view bytes) {
  static const Constants constants;
  State state = constants.start;
  const auto add = [&](std::string_view blocks) {
    for (std::size_t i = 0; i < blocks.size(); i += kBlock)
      AddBlock(reinterpret_cast<const unsigned char*>(blocks.data()) + i, constants, state);
  };
  const std::size_t whole = bytes.size() / kBlock * kBlock;
  add(bytes.substr(0, whole));
  std::string rest(bytes.substr(whole));
  rest += '\x80';
  while (rest.size() % kBlock != kBlock - 8) rest += '\0';
  AppendBigEndian(std::uint64_t{8} * bytes.size(), 8, rest);
  add(rest);
  std::string hash;
  for (const std::uint32_t word : state) AppendBigEndian(word, 4, hash);
  return hash;
}

std::string Sha256Hex(std::string_view bytes) {
  std::string hex;
  for (const char c : Sha256(bytes)) {
    for (const int shift : {4, 0})
      hex += "0123456789abcdef"[static_cast<unsigned char>(c) >> shift & 15];
  }
  return hex;
}

}  // namespace tessera
