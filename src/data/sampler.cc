#include "data/sampler.h"

#include <array>

#include "base/error.h"
#include "base/rng.h"

namespace paceline::data {
namespace {

// Four rounds make a Feistel network a pseudo-random permutation when its round function is ideal (Luby &
// Rackoff 1988); this one is a cheap mixer and the halves are small, so twice as many rounds are used.
constexpr int kRounds = 8;

/// Murmur3's finaliser on (half, key): every bit of the result depends on every bit of both.
std::uint32_t mix(std::uint32_t half, std::uint32_t key) {
  std::uint32_t h = half * 0x9E3779B1u ^ key;
  h ^= h >> 16;
  h *= 0x85EBCA6Bu;
  h ^= h >> 13;
  h *= 0xC2B2AE35u;
  return h ^ (h >> 16);
}

}  // namespace

Sampler::Sampler(std::int64_t size, std::uint64_t seed, bool shuffle)
    : size_(size), seed_(seed), shuffle_(shuffle), half_bits_(0) {
  base::expects(size >= 0 && size <= (std::int64_t{1} << 62), "0 <= size <= 2^62");
  while ((std::int64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
}

std::int64_t Sampler::index(std::int64_t epoch, std::int64_t position) const {
  base::expects(position >= 0 && position < size_, "0 <= position < size");
  if (!shuffle_) return position;
  // The epoch is a coordinate of the generator and never added to the seed: with seed + epoch, run 1 epoch 0
  // would repeat run 0 epoch 1.
  base::Rng rng(seed_, base::Purpose::shuffle, static_cast<std::uint64_t>(epoch));
  std::array<std::uint32_t, kRounds> keys;
  for (auto& key : keys) key = rng.next_u32();

  const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << half_bits_) - 1);
  auto value = static_cast<std::uint64_t>(position);
  // Cycle walking: the network permutes [0, 4^half_bits), at most four times the size; following its cycle
  // until it comes back into [0, size) permutes [0, size).
  do {
    auto left = static_cast<std::uint32_t>(value >> half_bits_);
    auto right = static_cast<std::uint32_t>(value) & mask;
    for (const auto key : keys) {
      const std::uint32_t next = left ^ (mix(right, key) & mask);
      left = right;
      right = next;
    }
    value = (static_cast<std::uint64_t>(left) << half_bits_) | right;
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

}  // namespace paceline::data
