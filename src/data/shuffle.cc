#include "data/shuffle.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace paceline::data {
namespace {

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

Permutation::Permutation(std::int64_t size, base::Rng rng)
    : size_(size),
      half_bits_((std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1) - 1)) + 1) / 2) {
  base::expects(size >= 0 && size <= (std::int64_t{1} << 62), "0 <= size <= 2^62");
  for (auto& key : keys_) key = rng.next_u32();
}

std::int64_t Permutation::operator()(std::int64_t position) const {
  base::expects(position >= 0 && position < size_, "0 <= position < size");
  const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << half_bits_) - 1);
  auto value = static_cast<std::uint64_t>(position);
  // Cycle walking: the network permutes [0, 4^half_bits), at most four times the size; following its cycle
  // until it comes back into [0, size) permutes [0, size).
  do {
    auto left = static_cast<std::uint32_t>(value >> half_bits_);
    auto right = static_cast<std::uint32_t>(value) & mask;
    for (const auto key : keys_) {
      const std::uint32_t next = left ^ (mix(right, key) & mask);
      left = right;
      right = next;
    }
    value = (static_cast<std::uint64_t>(left) << half_bits_) | right;
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

WindowOrder::WindowOrder(std::vector<std::int64_t> sizes, std::int64_t window, std::uint64_t seed)
    : firsts_{0}, window_(static_cast<std::size_t>(window)), seed_(seed) {
  base::expects(!sizes.empty() && window >= 1, "there are shards, and a window has one");
  for (const auto size : sizes) {
    base::expects(size >= 0, "a shard has no negative number of samples");
    firsts_.push_back(firsts_.back() + size);
  }
}

std::shared_ptr<const WindowOrder::Epoch> WindowOrder::epoch(std::int64_t number) const {
  const std::lock_guard lock(mutex_);
  auto& kept = recent_[static_cast<std::uint64_t>(number) % recent_.size()];
  if (kept && kept->number == number) return kept;
  auto made = std::make_shared<Epoch>();
  made->number = number;
  made->begins = {0};
  const auto shards = static_cast<std::int64_t>(firsts_.size()) - 1;
  const Permutation order(shards, shuffle_rng(seed_, number));
  for (std::int64_t place = 0; place < shards; ++place) {
    const auto shard = static_cast<std::size_t>(order(place));
    made->shards.push_back(static_cast<std::uint32_t>(shard));
    made->begins.push_back(made->begins.back() + firsts_[shard + 1] - firsts_[shard]);
  }
  kept = made;
  return made;
}

std::int64_t WindowOrder::index(std::int64_t epoch_number, std::int64_t position) const {
  base::expects(position >= 0 && position < size(), "0 <= position < size");
  const auto order = epoch(epoch_number);
  const auto& begins = order->begins;
  /// The place of the shard that a position lies in.
  const auto place_of = [&](std::int64_t at) {
    return static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), at) - begins.begin()) - 1;
  };
  const auto window = place_of(position) / window_;
  const auto begin = begins[window * window_];
  const auto end = begins[std::min((window + 1) * window_, begins.size() - 1)];
  const auto moved =
      begin + Permutation(end - begin, shuffle_rng(seed_, epoch_number, window + 1))(position - begin);
  const auto place = place_of(moved);
  return firsts_[order->shards[place]] + moved - begins[place];
}

}  // namespace paceline::data
