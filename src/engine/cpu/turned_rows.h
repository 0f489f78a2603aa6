#pragma once

/// Gradients of weights, [element of a row][output] in some order, into the flat rows [output][element]: by
/// tiles of 16 x 16 that are turned in registers.

#include <cstdint>

#include "engine/cpu/kernels/isa.h"
#include "engine/cpu/kernels/transpose.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {

constexpr int kTurned = 16;  ///< outputs, and elements of one output: a tile of both orders

/// Whether tiles can be turned in registers, to whole lines at `to`.
[[nodiscard]] inline bool can_turn(std::int64_t row, std::int64_t outs, const float* to) {
  return has(Isa::avx512) && outs % kTurned == 0 && row % kTurned == 0 &&
         reinterpret_cast<std::uintptr_t>(to) % 64 == 0;
}

/// `outs` rows of `row` elements at `to`, on the pool's threads. 16 outputs of an element lie side by side at
/// locate(element, first output).
template <typename Locate>
void turn_rows(base::ThreadPool& pool, std::int64_t row, std::int64_t outs, const Locate& locate, float* to) {
  const std::int64_t least = std::max<std::int64_t>(1, kPartElements / (kTurned * outs));
  parallel_parts(pool, row / kTurned, least, [&](int, Part part) {
    for (std::int64_t at = part.begin * kTurned; at < part.end * kTurned; at += kTurned)
      // Along the outputs, which lie side by side where it reads.
      for (std::int64_t out = 0; out < outs; out += kTurned) {
        const float* from[kTurned];
        float* rows[kTurned];
        for (int i = 0; i < kTurned; ++i) {
          from[i] = locate(at + i, out);
          rows[i] = to + at + (out + i) * row;
        }
        transpose_tile(from, rows);
      }
    end_streams();
  });
}

}  // namespace paceline::engine::cpu
