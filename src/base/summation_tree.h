#pragma once

/// The fixed order in which partial sums are added: a binary tree over parts 0 ... n-1.
///
/// Floating-point addition is not associative, so a sum has the same bits for every number of workers and
/// threads only if the order of additions is fixed. Here the order is a function of the count n alone:
/// neither values nor the time of arrival change it.
///
/// Level k = 0, 1, 2, ... adds sums of 2^k neighbours: to the sum that begins at part p, p a multiple of
/// 2^(k+1), it adds (as right operand) the sum that begins at part p + 2^k. If that begins at n or beyond,
/// the sum goes to the next level unchanged.
///
///     n = 4   (0 + 1) + (2 + 3)
///     n = 5   ((0 + 1) + (2 + 3)) + 4
///     n = 7   ((0 + 1) + (2 + 3)) + ((4 + 5) + 6)
///
/// Seen from the root, the left half holds the largest power of two smaller than n, the right half the rest
/// (tree_split). Aligned groups of 2^k neighbours are subtrees. So if each worker sums 2^k consecutive parts,
/// and the workers' sums are added in this order too, the additions are the same as if one worker had summed
/// all parts.
///
/// Four forms of this order: tree_fold for values, tree_sum for arrays, join_as_tree for partial results that
/// are joined in place, TreeCounter for parts that arrive one at a time.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline::base {

/// How many of n >= 2 parts the left half of the tree holds: the largest power of two smaller than n.
[[nodiscard]] constexpr std::size_t tree_split(std::size_t n) { return std::bit_ceil(n) / 2; }

/// Folds `parts` (at least one) with `combine(left, right)`.
template <typename T, typename Combine>
[[nodiscard]] T tree_fold(std::span<const T> parts, const Combine& combine) {
  if (parts.size() == 1) return parts[0];
  const std::size_t left = tree_split(parts.size());
  return combine(tree_fold(parts.first(left), combine), tree_fold(parts.subspan(left), combine));
}

/// Joins `count` partial results into the first one, in place: calls add(into, from) with their indices.
template <typename Add>
void join_as_tree(int count, const Add& add) {
  for (int distance = 1; distance < count; distance *= 2)
    for (int into = 0; into + distance < count; into += 2 * distance) add(into, into + distance);
}

/// dst[i] = the sum over parts of parts[p][begin + i] for i < count <= kMost. `dst` may be parts[p] + begin.
/// Calls add(left, right, dst, count) for each addition of two arrays.
///
/// Cost     on the stack, per level of the tree: two arrays of kMost elements
template <std::size_t kMost, typename T, typename Add>
void tree_sum_block(std::span<const T* const> parts, std::size_t begin, std::size_t count, T* dst,
                    const Add& add) {
  if (parts.size() == 1) {
    if (dst != parts[0] + begin) std::copy_n(parts[0] + begin, count, dst);
    return;
  }
  const std::size_t half = tree_split(parts.size());
  // The halves' sums have their own memory: `dst` may be a part that the right half has not read yet.
  alignas(64) std::array<T, kMost> left_sum, right_sum;
  const T* left = parts[0] + begin;
  const T* right = parts[half] + begin;
  if (half > 1) {
    tree_sum_block<kMost, T>(parts.first(half), begin, count, left_sum.data(), add);
    left = left_sum.data();
  }
  if (parts.size() - half > 1) {
    tree_sum_block<kMost, T>(parts.subspan(half), begin, count, right_sum.data(), add);
    right = right_sum.data();
  }
  add(left, right, dst, count);
}

/// dst[i] = the sum over parts of parts[p][i]. `dst` may be one of the parts.
///
/// Shapes   each part and dst [count]
/// Cost     count * (parts - 1) additions, in blocks so small that partial sums stay in the first-level cache
template <typename T>
void tree_sum(std::span<const T* const> parts, T* dst, std::size_t count) {
  constexpr std::size_t kBlock = 1024;
  const auto add = [](const T* left, const T* right, T* sum, std::size_t elements) {
    for (std::size_t i = 0; i < elements; ++i) sum[i] = left[i] + right[i];
  };
  for (std::size_t begin = 0; begin < count; begin += kBlock)
    tree_sum_block<kBlock, T>(parts, begin, std::min(kBlock, count - begin), dst + begin, add);
}

/// The order for parts that arrive one at a time. Like the digits of a binary counter, the caller keeps at
/// most one partial sum per level; level k holds the sum of 2^k parts.
class TreeCounter {
 public:
  /// The number of levels in use before the last of `parts` parts arrives.
  [[nodiscard]] static constexpr int levels(std::int64_t parts) {
    return parts <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(parts - 1)));
  }
  /// The number of parts so far.
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(count_); }
  /// The level that will hold the next part's sum: the lowest empty one.
  [[nodiscard]] int next_level() const { return std::countr_one(count_); }
  /// Adds the next part: calls join(level), lowest level first, for each kept sum that becomes a left operand
  /// of the part's sum. These levels are empty afterwards; the result belongs on the level that next_level()
  /// gave before.
  template <typename Join>
  void add(const Join& join) {
    for (int level = 0; level < next_level(); ++level) join(level);
    ++count_;
  }
  /// Adds the last part: calls join(level) for every kept sum, lowest level first. Changes no state, so a
  /// caller may repeat it for several ranges of an array.
  template <typename Join>
  void join_last(const Join& join) const {
    for (std::uint64_t left = count_; left != 0; left &= left - 1) join(std::countr_zero(left));
  }
  void clear() { count_ = 0; }

 private:
  std::uint64_t count_ = 0;
};

}  // namespace paceline::base
