#pragma once

/// Finds samples of equal content, by hash and then by comparison.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace paceline::data {

/// Two samples with equal content; `first` is the earliest such sample.
struct Twin {
  std::int64_t first = 0, second = 0;
};

/// Whether the contents of samples `a` and `b`, which have equal hashes, are equal.
using IsEqual = std::function<bool(std::int64_t a, std::int64_t b)>;

/// The samples whose content an earlier one has too.
///
/// Cost     a comparison for each of them, however many are alike, and one for each collision of hashes
[[nodiscard]] std::vector<Twin> find_twins(std::span<const std::uint64_t> hashes, const IsEqual& is_equal);

/// The samples of `other` whose content is also in the set of `hashes`. `is_equal_inside` compares two
/// samples of that set, `is_equal` one of it with one of `other`.
[[nodiscard]] std::vector<Twin> find_twins(std::span<const std::uint64_t> hashes,
                                           const IsEqual& is_equal_inside,
                                           std::span<const std::uint64_t> other, const IsEqual& is_equal);

}  // namespace paceline::data
