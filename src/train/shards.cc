#include "train/shards.h"

#include <algorithm>

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
  // The last shard's gradient is joined in place, so it needs no array.
  return base::TreeCounter::levels(shards);
}

ShardSums::ShardSums(std::int64_t shards, std::int64_t elements) : shards_(shards) {
  for (std::int64_t i = 0; i < arrays(shards); ++i)
    levels_.emplace_back(static_cast<std::size_t>(elements) * sizeof(float));
}

void ShardSums::add(std::span<const float> gradient) {
  base::expects(counter_.count() + 1 < shards_, "the last shard of a step is joined, not added");
  const auto target = levels_[static_cast<std::size_t>(counter_.next_level())].as<float>();
  if (counter_.next_level() == 0) std::copy(gradient.begin(), gradient.end(), target.begin());
  counter_.add([&](int level) {
    add_to(kept(level), gradient, target);
    gradient = target;
  });
}

void ShardSums::join_last(std::span<float> gradient, std::int64_t begin, std::int64_t end) const {
  base::expects(counter_.count() + 1 == shards_, "every shard but the last was added");
  const auto part = gradient.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  counter_.join_last([&](int level) {
    add_to(kept(level).subspan(static_cast<std::size_t>(begin), part.size()), part, part);
  });
}

}  // namespace paceline::train
