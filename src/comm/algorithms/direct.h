#pragma once

/// The direct all-reduce: ranks that can read and write one another's memory sum it without any message.
/// The essay is in direct.cc; steps and bytes of every algorithm are in docs/collectives.md.

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline::comm {

/// Elements [begin, end) of a collective's buffer that one rank sums for all.
struct Segment {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t count() const { return end - begin; }
};

/// Rank `rank`'s segment of `count` elements: equal parts in whole cache lines; the last ones may be shorter
/// or empty. The segments of all ranks cover every element once.
[[nodiscard]] Segment direct_segment(std::size_t count, int rank, int ranks);

/// Sums elements [begin, end) of all ranks' `sources` in the tree's order (base/summation_tree.h) and writes
/// the sum to all `targets`.
///
/// Shapes   both [ranks], each at least segment.end elements; none overlap, but a target may be its rank's
///          source
/// Cost     reads and writes (ranks - 1) * segment bytes in other ranks' memory, and a segment's bytes in
///          its own
/// Threads  different segments of the same buffers may be summed at the same time
void direct_all_reduce(std::span<const float* const> sources, std::span<float* const> targets,
                       Segment segment);

/// The same sum, written once: `dst` [segment.count()], which may be that segment of a source.
void direct_sum(std::span<const float* const> sources, Segment segment, float* dst);

}  // namespace paceline::comm
