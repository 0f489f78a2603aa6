#pragma once

/// Transposes weight gradients from [element of a row][output] to the flat rows [output][element], in tiles
/// of 16 x 16 that are transposed in registers.

#include <cstdint>

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/isa.h"
#include "engine/cpu/kernels/transpose/transpose.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {

// Converts convolution weights between PyTorch's order [out][in][tap] and [tap][in][out], the order of the
// algorithms that compute tap by tap.

/// PyTorch's order to tap order. Both arrays have shape.weights() floats.
void to_tap_order(const ConvShape& shape, const float* weights, float* packed);
/// Tap order to PyTorch's order, on the pool's threads.
void from_tap_order(const ConvShape& shape, base::ThreadPool& pool, const float* packed, float* weights);

constexpr int kTransposeTile = 16;  ///< width and height of a tile

/// Whether transpose_rows() works here: the machine has AVX-512, the sizes are whole tiles, and `to` is
/// aligned to 64 bytes.
[[nodiscard]] inline bool can_transpose(std::int64_t row, std::int64_t outs, const float* to) {
  return has(Isa::avx512) && outs % kTransposeTile == 0 && row % kTransposeTile == 0 &&
         reinterpret_cast<std::uintptr_t>(to) % 64 == 0;
}

/// Transposes the tile that begins at element `at` and output `out`. Writes 16 rows, `stride` floats apart,
/// from `to` on.
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

/// Writes `outs` rows of `row` elements to `to`, on the pool's threads and past the caches. locate(element,
/// output) is the address of 16 consecutive outputs of an element.
///
/// Requires  can_transpose()
template <typename Locate>
void transpose_rows(base::ThreadPool& pool, std::int64_t row, std::int64_t outs, const Locate& locate,
                    float* to) {
  const std::int64_t least = std::max<std::int64_t>(1, kRangeElements / (kTransposeTile * outs));
  parallel_ranges(pool, row / kTransposeTile, least, [&](int, Range part) {
    for (std::int64_t at = part.begin * kTransposeTile; at < part.end * kTransposeTile; at += kTransposeTile)
      // Along the outputs, which are contiguous in the source.
      for (std::int64_t out = 0; out < outs; out += kTransposeTile)
        transpose_rows_tile<transpose_tile>(at, out, locate, row, to + at + out * row);
    end_streams();
  });
}

/// The same for some elements of some outputs. Writes rows of elements.size() floats, on the calling thread
/// and through its caches.
template <typename Locate>
void transpose_near_rows(Range elements, Range outs, const Locate& locate, float* to) {
  for (std::int64_t at = elements.begin; at < elements.end; at += kTransposeTile)
    for (std::int64_t out = outs.begin; out < outs.end; out += kTransposeTile)
      transpose_rows_tile<transpose_near_tile>(
          at, out, locate, elements.size(), to + at - elements.begin + (out - outs.begin) * elements.size());
}

}  // namespace paceline::engine::cpu
