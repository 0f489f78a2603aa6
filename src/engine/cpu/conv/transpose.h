#pragma once

/// Gradients of weights, [element of a row][output] in some order, into the flat rows [output][element]: by
/// tiles of 16 x 16 that are turned in registers.

#include <cstdint>

#include "engine/cpu/kernels/isa.h"
#include "engine/cpu/kernels/transpose/transpose.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {

constexpr int kTransposeTile = 16;  ///< outputs, and elements of one output: a tile of both orders

/// Whether tiles can be turned in registers, to whole lines at `to`.
[[nodiscard]] inline bool can_transpose(std::int64_t row, std::int64_t outs, const float* to) {
  return has(Isa::avx512) && outs % kTransposeTile == 0 && row % kTransposeTile == 0 &&
         reinterpret_cast<std::uintptr_t>(to) % 64 == 0;
}

/// The tile of elements from `at` and outputs from `out` on, to `to` with `stride` from row to row.
template <auto transpose, typename Locate>
void transpose_rows_tile(std::int64_t at, std::int64_t out, const Locate& locate, std::int64_t stride,
                         float* to) {
  const float* from[kTransposeTile];
  float* rows[kTransposeTile];
  for (int i = 0; i < kTransposeTile; ++i) {
    from[i] = locate(at + i, out);
    rows[i] = to + i * stride;
  }
  transpose(from, rows);
}

/// `outs` rows of `row` elements at `to`, on the pool's threads. 16 outputs of an element lie side by side at
/// locate(element, first output).
template <typename Locate>
void transpose_rows(base::ThreadPool& pool, std::int64_t row, std::int64_t outs, const Locate& locate,
                    float* to) {
  const std::int64_t least = std::max<std::int64_t>(1, kRangeElements / (kTransposeTile * outs));
  parallel_ranges(pool, row / kTransposeTile, least, [&](int, Range part) {
    for (std::int64_t at = part.begin * kTransposeTile; at < part.end * kTransposeTile; at += kTransposeTile)
      // Along the outputs, which lie side by side where it reads.
      for (std::int64_t out = 0; out < outs; out += kTransposeTile)
        transpose_rows_tile<transpose_tile>(at, out, locate, row, to + at + out * row);
    end_streams();
  });
}

/// Some elements of some outputs alone, as rows of their own, on the calling thread and through its caches.
template <typename Locate>
void transpose_near_rows(Range elements, Range outs, const Locate& locate, float* to) {
  for (std::int64_t at = elements.begin; at < elements.end; at += kTransposeTile)
    for (std::int64_t out = outs.begin; out < outs.end; out += kTransposeTile)
      transpose_rows_tile<transpose_near_tile>(
          at, out, locate, elements.size(), to + at - elements.begin + (out - outs.begin) * elements.size());
}

}  // namespace paceline::engine::cpu
