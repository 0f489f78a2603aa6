#include "comm/algorithms/direct.h"

#include <algorithm>
#include <array>

#include "base/summation_tree.h"
#include "base/vector_clones.h"

// The direct all-reduce.
//
//   rank      0 ... N-1, each with a buffer of X elements in memory that all can reach
//   segment   a contiguous part of about X / N elements; rank r owns segment r
//   block     a part of a segment, small enough that one block of every rank fits the second-level cache
//
// A ring moves each partial sum through N - 1 neighbours because a network card reaches one peer at a time.
// Threads of one process reach everything at once, so each rank does for its own segment what the ring does
// in 2 (N - 1) steps: it reads the segment from all N buffers, adds them up, and writes the sum to all N
// buffers. Reading corresponds to the reduce-scatter, writing to the all-gather; they are fused, block by
// block, so that data that was read is still in the cache when it is overwritten. No rank touches another's
// segment, so no locks are needed: ranks meet once before (all buffers are ready) and once after (all
// segments are done).
//
// The order of additions is the tree of base/summation_tree.h, the same for every element: it depends neither
// on the segment's owner nor on the order of arrival. So all ranks, and all runs, get the same bits.
//
// The additions cost nothing beside the traffic (one for 8 bytes read and 8 written), so the loops are plain
// and the compiler vectorises them; N = 2 and N = 4, the common cases, keep the whole tree in registers.

namespace paceline::comm {
namespace {

constexpr std::size_t kLineElements =
    64 / sizeof(float);               ///< two ranks never write the same cache line of aligned buffers
constexpr std::size_t kBlock = 4096;  ///< elements; 16 KB for each rank

// A target may be the source of its rank at the same addresses, but never shifted. ivdep allows that;
// restrict would not.

PACELINE_VECTOR_CLONES
void reduce_two(const float* a, const float* b, float* to_a, float* to_b, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    to_a[i] = sum;
    to_b[i] = sum;
  }
}

PACELINE_VECTOR_CLONES
void reduce_four(const float* a, const float* b, const float* c, const float* d,
                 std::span<float* const> targets, std::size_t begin, std::size_t count) {
  float *const to_a = targets[0] + begin, *const to_b = targets[1] + begin, *const to_c = targets[2] + begin,
               *const to_d = targets[3] + begin;
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = (a[i] + b[i]) + (c[i] + d[i]);
    to_a[i] = sum;
    to_b[i] = sum;
    to_c[i] = sum;
    to_d[i] = sum;
  }
}

PACELINE_VECTOR_CLONES
void add(const float* left, const float* right, float* dst, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) dst[i] = left[i] + right[i];
}

/// dst [count] = the tree's sum of buffers[.][begin, begin + count); count <= kBlock.
void sum_block(std::span<const float* const> buffers, std::size_t begin, std::size_t count, float* dst) {
  base::tree_sum_block<kBlock, float>(buffers, begin, count, dst, add);
}

}  // namespace

Segment direct_segment(std::size_t count, int rank, int ranks) {
  const std::size_t lines = (count + kLineElements - 1) / kLineElements;
  const auto bound = [&](int r) {
    return std::min(count,
                    lines * static_cast<std::size_t>(r) / static_cast<std::size_t>(ranks) * kLineElements);
  };
  return {bound(rank), bound(rank + 1)};
}

void direct_all_reduce(std::span<const float* const> sources, std::span<float* const> targets,
                       Segment segment) {
  for (std::size_t begin = segment.begin; begin < segment.end; begin += kBlock) {
    const std::size_t count = std::min(kBlock, segment.end - begin);
    if (sources.size() == 2) {
      reduce_two(sources[0] + begin, sources[1] + begin, targets[0] + begin, targets[1] + begin, count);
    } else if (sources.size() == 4) {
      reduce_four(sources[0] + begin, sources[1] + begin, sources[2] + begin, sources[3] + begin, targets,
                  begin, count);
    } else {
      alignas(64) std::array<float, kBlock> sum;
      sum_block(sources, begin, count, sum.data());
      for (float* target : targets) std::copy_n(sum.data(), count, target + begin);
    }
  }
}

void direct_sum(std::span<const float* const> sources, Segment segment, float* dst) {
  for (std::size_t begin = segment.begin; begin < segment.end; begin += kBlock)
    sum_block(sources, begin, std::min(kBlock, segment.end - begin), dst + (begin - segment.begin));
}

}  // namespace paceline::comm
