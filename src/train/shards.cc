#include "train/shards.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace paceline::train {
namespace {

/// dst = left + right. The order of the operands is the tree's; with two operands it cannot change the bits,
/// but it keeps NaN payloads and readers calm.
void add_to(std::span<const float> left, std::span<const float> right, std::span<float> dst) {
  for (std::size_t i = 0; i < dst.size(); ++i) dst[i] = left[i] + right[i];
}

}  // namespace

std::int64_t ShardSums::arrays(std::int64_t shards) {
  // The last shard's gradient is joined in place, so only the digits of (shards - 1) are ever kept.
  return shards <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(shards - 1));
}

ShardSums::ShardSums(std::int64_t shards, std::int64_t elements) : shards_(shards) {
  levels_.resize(static_cast<std::size_t>(arrays(shards)));
  for (auto& level : levels_) level.sum = base::Buffer(static_cast<std::size_t>(elements) * sizeof(float));
}

void ShardSums::add(std::span<const float> gradient) {
  base::expects(seen_ + 1 < shards_, "the last shard of a step is joined, not added");
  ++seen_;
  // Like adding 1 to a binary number: find the first level that is free, and carry all below it into it.
  std::size_t free = 0;
  while (levels_[free].full) ++free;
  auto target = levels_[free].sum.as<float>();
  if (free == 0) {
    std::copy(gradient.begin(), gradient.end(), target.begin());
  } else {
    add_to(levels_[0].sum.as<float>(), gradient, target);
    levels_[0].full = false;
    for (std::size_t i = 1; i < free; ++i) {
      add_to(levels_[i].sum.as<float>(), target, target);
      levels_[i].full = false;
    }
  }
  levels_[free].full = true;
}

void ShardSums::join_last(std::span<float> gradient, std::int64_t begin, std::int64_t end) const {
  base::expects(seen_ + 1 == shards_, "every shard but the last was added");
  const auto part = gradient.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  for (const auto& level : levels_)
    if (level.full)
      add_to(level.sum.as<float>().subspan(static_cast<std::size_t>(begin), part.size()), part, part);
}

void ShardSums::clear() {
  seen_ = 0;
  for (auto& level : levels_) level.full = false;
}

}  // namespace paceline::train
