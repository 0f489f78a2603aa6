#pragma once

/// What ranks give to collectives, and how what they get is compared.

#include <cstring>
#include <vector>

#include "base/rng.h"
#include "base/summation_tree.h"

namespace paceline::comm {

/// What `rank` gives to a collective of `count` numbers: of all magnitudes, so that the order of additions
/// shows in the bits, and others for another count: what an earlier collective left behind is no sum.
inline std::vector<float> values_of(int rank, std::size_t count) {
  base::Rng rng(static_cast<std::uint64_t>(rank) + 1, base::Purpose::test, count);
  std::vector<float> values(count);
  for (float& value : values) value = (rng.uniform() - 0.5f) * static_cast<float>(1 << rng.below(20));
  return values;
}

/// What `ranks` of them must end with.
inline std::vector<float> tree_of(int ranks, std::size_t count) {
  std::vector<std::vector<float>> inputs;
  for (int rank = 0; rank < ranks; ++rank) inputs.push_back(values_of(rank, count));
  std::vector<const float*> parts;
  for (const auto& input : inputs) parts.push_back(input.data());
  std::vector<float> sum(count);
  base::tree_sum<float>(parts, sum.data(), count);
  return sum;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace paceline::comm
