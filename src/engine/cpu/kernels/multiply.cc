// AVX-512 only: the block of sums is made for its 32 registers.

#include "engine/cpu/kernels/multiply.h"

#include <utility>

#if defined(__x86_64__)
#include "engine/cpu/kernels/avx512_begin.inc"

namespace paceline::engine::cpu {
namespace {

using V = __m512;
constexpr int kLanes = 16;

/// R rows x N vectors of sums in registers: 12 x 2 leaves enough of them for one row of b and a factor.
template <int R, int N>
void multiply_block(const Multiply& m, const float* a, const float* b, float* c) {
  V sums[R][N];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) sums[r][n] = m.adds ? _mm512_loadu_ps(c + r * m.c_row + n * kLanes) : V{};
  // Rows in fours: a quarter of the addresses to keep in registers.
  const float* fours[3] = {a, a + 4 * m.a_row, a + 8 * m.a_row};
  const std::int64_t row = m.a_row, inner = m.a_inner, b_inner = m.b_inner;
  for (int i = 0; i < m.inner; ++i) {
    V columns[N];
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) columns[n] = _mm512_loadu_ps(b + n * kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const V factor = _mm512_set1_ps(fours[r / 4][r % 4 * row]);
#pragma GCC unroll 2
      for (int n = 0; n < N; ++n) sums[r][n] = _mm512_fmadd_ps(factor, columns[n], sums[r][n]);
    }
#pragma GCC unroll 3
    for (int four = 0; four < (R + 3) / 4; ++four) fours[four] += inner;
    b += b_inner;
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) _mm512_storeu_ps(c + r * m.c_row + n * kLanes, sums[r][n]);
}

using Block = void (*)(const Multiply&, const float*, const float*, float*);
struct Blocks {
  Block of_rows[kMultiplyRows + 1];
};
template <int N, int... R>
constexpr Blocks blocks(std::integer_sequence<int, R...>) {
  return {{nullptr, multiply_block<R + 1, N>...}};
}
constexpr Blocks kBlocks[2] = {blocks<1>(std::make_integer_sequence<int, kMultiplyRows>()),
                               blocks<2>(std::make_integer_sequence<int, kMultiplyRows>())};

}  // namespace

void multiply(const Multiply& m) {
  for (int column = 0; column < m.columns; column += kPanel) {
    const float* b = m.b + column / kPanel * m.b_panel;
    const Blocks& blocks = kBlocks[m.columns - column >= kPanel ? 1 : 0];
    for (int row = 0; row < m.rows; row += kMultiplyRows) {
      const int rows = m.rows - row < kMultiplyRows ? m.rows - row : kMultiplyRows;
      blocks.of_rows[rows](m, m.a + row * m.a_row, b, m.c + row * m.c_row + column);
    }
  }
}

}  // namespace paceline::engine::cpu
#include "engine/cpu/kernels/avx512_end.inc"

namespace paceline::engine::cpu {
bool has_avx512_products() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
}  // namespace paceline::engine::cpu
#endif
