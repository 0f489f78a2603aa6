#include "base/rng.h"

#include <cmath>
#include <numbers>

namespace paceline::base {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = static_cast<std::uint64_t>(kMultiplier0) * counter[0];
    const std::uint64_t product1 = static_cast<std::uint64_t>(kMultiplier1) * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

Rng::Rng(std::uint64_t seed, Purpose purpose, std::uint64_t a, std::uint64_t b)
    : key_{static_cast<std::uint32_t>(seed) ^ (static_cast<std::uint32_t>(purpose) * 0x9E3779B1u),
           static_cast<std::uint32_t>(seed >> 32) + static_cast<std::uint32_t>(purpose)},
      counter_{0, static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(a),
               static_cast<std::uint32_t>(a >> 32)} {}

std::uint32_t Rng::next_u32() {
  if (used_ == 4) {
    block_ = philox(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

std::uint64_t Rng::next_u64() {
  const std::uint64_t high = next_u32();
  return high << 32 | next_u32();
}

float Rng::normal() {
  const double u = 1.0 - uniform();  // (0, 1]: the logarithm stays finite
  const double v = uniform();
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
}

}  // namespace paceline::base
