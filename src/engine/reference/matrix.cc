#include "engine/reference/conv.h"

#include <algorithm>

#include "base/vector_clones.h"

namespace paceline::engine::reference {
namespace {

// The inner loop runs along rows of b and c, which the compiler vectorises without reordering any sum. Four
// steps of `inner` share one pass over the row of c, and a block of b's columns stays in the first-level
// cache.
template <typename T>
[[gnu::always_inline]] inline void add_product_of(std::int64_t rows, std::int64_t inner, std::int64_t columns,
                                                  const T* a, const T* b, T* c) {
  constexpr std::int64_t kColumns = 512;
  constexpr std::int64_t kInner = 16;
  for (std::int64_t j0 = 0; j0 < columns; j0 += kColumns) {
    const std::int64_t width = std::min(kColumns, columns - j0);
    for (std::int64_t k0 = 0; k0 < inner; k0 += kInner) {
      const std::int64_t k_end = std::min(inner, k0 + kInner);
      for (std::int64_t i = 0; i < rows; ++i) {
        T* __restrict row = c + i * columns + j0;
        std::int64_t k = k0;
        for (; k + 4 <= k_end; k += 4) {
          const T a0 = a[i * inner + k], a1 = a[i * inner + k + 1];
          const T a2 = a[i * inner + k + 2], a3 = a[i * inner + k + 3];
          const T* __restrict b0 = b + k * columns + j0;
          const T* __restrict b1 = b0 + columns;
          const T* __restrict b2 = b1 + columns;
          const T* __restrict b3 = b2 + columns;
          for (std::int64_t j = 0; j < width; ++j)
            row[j] += (a0 * b0[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
        }
        for (; k < k_end; ++k) {
          const T a0 = a[i * inner + k];
          const T* __restrict b0 = b + k * columns + j0;
          for (std::int64_t j = 0; j < width; ++j) row[j] += a0 * b0[j];
        }
      }
    }
  }
}

PACELINE_VECTOR_CLONES void add_product_f32(std::int64_t rows, std::int64_t inner, std::int64_t columns,
                                            const float* a, const float* b, float* c) {
  add_product_of(rows, inner, columns, a, b, c);
}
PACELINE_VECTOR_CLONES void add_product_f64(std::int64_t rows, std::int64_t inner, std::int64_t columns,
                                            const double* a, const double* b, double* c) {
  add_product_of(rows, inner, columns, a, b, c);
}

}  // namespace

template <>
void add_product(std::int64_t rows, std::int64_t inner, std::int64_t columns, const float* a, const float* b,
                 float* c) {
  add_product_f32(rows, inner, columns, a, b, c);
}
template <>
void add_product(std::int64_t rows, std::int64_t inner, std::int64_t columns, const double* a,
                 const double* b, double* c) {
  add_product_f64(rows, inner, columns, a, b, c);
}

template <typename T>
void transpose(std::int64_t rows, std::int64_t columns, const T* src, T* dst) {
  constexpr std::int64_t kBlock = 16;  // both sides of a block fit into the first-level cache
  for (std::int64_t i0 = 0; i0 < rows; i0 += kBlock)
    for (std::int64_t j0 = 0; j0 < columns; j0 += kBlock)
      for (std::int64_t i = i0; i < std::min(rows, i0 + kBlock); ++i)
        for (std::int64_t j = j0; j < std::min(columns, j0 + kBlock); ++j)
          dst[j * rows + i] = src[i * columns + j];
}

template void transpose(std::int64_t, std::int64_t, const float*, float*);
template void transpose(std::int64_t, std::int64_t, const double*, double*);

}  // namespace paceline::engine::reference
