#include "train/step/shards.h"

#include "base/error.h"

namespace paceline::train {

std::int64_t ShardSums::arrays(std::int64_t shards) {
  // The last shard's gradient is joined in place, so it needs no array.
  return base::TreeCounter::levels(shards);
}

ShardSums::ShardSums(std::int64_t shards, base::Array gradient) : shards_(shards) {
  for (std::int64_t i = 0; i < arrays(shards); ++i)
    levels_.push_back(gradient.memory->allocate(gradient.size));
}

// Sums are left + right in the tree's order. With two operands the order cannot change the bits, but it keeps
// NaN payloads and readers calm.

void ShardSums::add(base::Array gradient) {
  base::expects(counter_.count() + 1 < shards_, "the last shard of a step is joined, not added");
  const auto target = kept(counter_.next_level());
  if (counter_.next_level() == 0) gradient.memory->copy(gradient, target);
  counter_.add([&](int level) {
    gradient.memory->add(kept(level), gradient, target);
    gradient = target;
  });
}

void ShardSums::join_last(base::Array gradient, std::int64_t begin, std::int64_t end) const {
  base::expects(counter_.count() + 1 == shards_, "every shard but the last was added");
  const auto first = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(end - begin);
  const auto part = gradient.subarray(first, count);
  counter_.join_last(
      [&](int level) { gradient.memory->add(kept(level).subarray(first, count), part, part); });
}

}  // namespace paceline::train
