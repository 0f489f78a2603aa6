#pragma once

/// The one order in which partial sums are joined: a fixed binary tree over parts 0 ... n-1.
///
/// Floating-point addition is not associative, so a sum has the same bits on every machine and for every
/// number of workers only if its order is fixed. Ours pairs neighbours level by level, and carries an odd
/// last part up:
///
///     n = 4   (0 + 1) + (2 + 3)
///     n = 5   ((0 + 1) + (2 + 3)) + 4
///     n = 7   ((0 + 1) + (2 + 3)) + ((4 + 5) + 6)
///
/// The same tree, seen from the top: the left half holds the largest power of two smaller than n, the right
/// half the rest (`tree_split`). Two things follow. Aligned groups of 2^k neighbours are subtrees: when each
/// worker joins 2^k consecutive shards, and the workers' sums are joined after that, the order is that of one
/// worker who joins all shards. And parts may come one by one, with log2(n) partial sums kept: see TreeSum.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace paceline::comm {

/// How many of n >= 2 parts the left half of the tree holds: the largest power of two smaller than n.
[[nodiscard]] constexpr std::size_t tree_split(std::size_t n) { return std::bit_ceil(n) / 2; }

/// Folds `parts` (at least one) with `combine(left, right)` in the order of the tree.
template <typename T, typename Combine>
[[nodiscard]] T tree_fold(std::span<const T> parts, const Combine& combine) {
  if (parts.size() == 1) return parts[0];
  const std::size_t left = tree_split(parts.size());
  return combine(tree_fold(parts.first(left), combine), tree_fold(parts.subspan(left), combine));
}

/// dst[i] = the sum over parts of parts[p][i], in the order of the tree. `dst` may be one of the parts.
///
/// Shapes   each part and dst [count]
/// Cost     count * (parts - 1) additions; small blocks, so that partial sums stay in the first-level cache
template <typename T>
void tree_sum(std::span<const T* const> parts, T* dst, std::size_t count);

/// The same sum when parts come one at a time (a worker walks its shards): keeps one partial sum for each
/// level, as a binary counter keeps its digits. `Sum` is anything movable; `combine(Sum& into, const Sum&
/// right)` joins.
///
/// Cost     at most log2(n) + 1 partial sums are alive
template <typename Sum>
class TreeSum {
 public:
  template <typename Combine>
  void add(Sum part, const Combine& combine) {
    // Part i closes as many pairs as i has ones at its low end: 0 none, 1 one, 3 two, 7 three.
    for (int pairs = std::countr_one(added_); pairs > 0; --pairs) {
      combine(open_.back(), std::as_const(part));
      part = std::move(open_.back());
      open_.pop_back();
    }
    open_.push_back(std::move(part));
    ++added_;
  }
  /// Joins what is open, the youngest first, and starts anew. At least one part must have been added.
  template <typename Combine>
  [[nodiscard]] Sum take(const Combine& combine) {
    while (open_.size() > 1) {
      const Sum right = std::move(open_.back());
      open_.pop_back();
      combine(open_.back(), right);
    }
    Sum sum = std::move(open_.back());
    open_.clear();
    added_ = 0;
    return sum;
  }
  [[nodiscard]] std::uint64_t added() const { return added_; }

 private:
  std::vector<Sum> open_;  ///< partial sums of falling sizes, each a power of two of parts
  std::uint64_t added_ = 0;
};

namespace detail {

inline constexpr std::size_t kTreeBlock = 1024;

template <typename T>
void tree_sum_block(std::span<const T* const> parts, std::size_t begin, std::size_t count, T* dst) {
  if (parts.size() == 1) {
    const T* a = parts[0] + begin;
    for (std::size_t i = 0; i < count; ++i) dst[i] = a[i];
  } else if (parts.size() == 2) {
    const T *a = parts[0] + begin, *b = parts[1] + begin;
    for (std::size_t i = 0; i < count; ++i) dst[i] = a[i] + b[i];
  } else {
    // Both halves have a place of their own: `dst` may be one of the parts that the right half still has to
    // read.
    std::array<T, kTreeBlock> left, right;
    const std::size_t half = tree_split(parts.size());
    tree_sum_block(parts.first(half), begin, count, left.data());
    tree_sum_block(parts.subspan(half), begin, count, right.data());
    for (std::size_t i = 0; i < count; ++i) dst[i] = left[i] + right[i];
  }
}

}  // namespace detail

template <typename T>
void tree_sum(std::span<const T* const> parts, T* dst, std::size_t count) {
  for (std::size_t begin = 0; begin < count; begin += detail::kTreeBlock)
    detail::tree_sum_block(parts, begin, std::min(detail::kTreeBlock, count - begin), dst + begin);
}

}  // namespace paceline::comm
