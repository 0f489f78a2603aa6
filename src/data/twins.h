#pragma once

/// Samples of equal content, found by hash and then compared.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace paceline::data {

/// Two samples with the same content; `first` is the earliest that has it.
struct Twin {
  std::int64_t first = 0, second = 0;
};

/// Whether the contents of sample `a` and sample `b` are the same, whose hashes are.
using IsEqual = std::function<bool(std::int64_t a, std::int64_t b)>;

/// The samples whose content an earlier one has.
/// Cost  a comparison for each of them, however many are alike, and one for each clash of hashes
[[nodiscard]] std::vector<Twin> find_twins(std::span<const std::uint64_t> hashes, const IsEqual& is_equal);

/// The samples of `other` whose content one of `hashes` has. `is_equal_inside` compares two of the first set,
/// `is_equal` one of it with one of `other`.
[[nodiscard]] std::vector<Twin> find_twins(std::span<const std::uint64_t> hashes,
                                           const IsEqual& is_equal_inside,
                                           std::span<const std::uint64_t> other, const IsEqual& is_equal);

}  // namespace paceline::data
