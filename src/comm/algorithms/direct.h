#pragma once

/// The direct all-reduce, for ranks that can access one another's memory: it needs no messages. direct.cc
/// explains it; docs/collectives.md has steps and bytes of every algorithm.

#include <cstddef>
#include <span>

namespace paceline::comm {

/// Elements [begin, end) of a collective's buffer that one rank sums for all.
struct Segment {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t count() const { return end - begin; }
};

/// The segment of `count` elements that rank `rank` sums. Segments are equal and consist of whole cache
/// lines, except that the last ones may be shorter or empty. Together they cover every element once.
[[nodiscard]] Segment direct_segment(std::size_t count, int rank, int ranks);

/// Sums elements [begin, end) of all ranks' `sources` in the tree's order (base/summation_tree.h) and writes
/// the sum to all `targets`.
///
/// Shapes   both [ranks], each at least segment.end elements; none overlap, but a target may be its rank's
///          source
/// Cost     reads and writes (ranks - 1) * segment bytes in other ranks' memory, and one segment in its own
/// Threads  different segments of the same buffers may be summed at the same time
void direct_all_reduce(std::span<const float* const> sources, std::span<float* const> targets,
                       Segment segment);

/// The same sum, written once: to `dst` [segment.count()], which may be that segment of a source.
void direct_sum(std::span<const float* const> sources, Segment segment, float* dst);

}  // namespace paceline::comm
