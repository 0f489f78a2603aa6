#pragma once

/// A small product of matrices in registers, for AVX-512: what Winograd's products are made of.
///
/// Threads  none of its own

#include <cstdint>

namespace paceline::engine::cpu {

/// Whether this machine can run it, and the kernels of winograd.h.
[[nodiscard]] bool has_avx512_products();

constexpr int kPanel = 32;         ///< columns of `b` that lie together
constexpr int kMultiplyRows = 12;  ///< that multiply() does best: a multiple of so many rows

/// c [rows][columns] = a [rows][inner] * b [inner][columns], added to c when `adds`. Element (r, i) of `a`
/// lies at a[r * a_row + i * a_inner], where one of the two strides is 1; element (i, j) of `b` at b[j /
/// kPanel * b_panel + i * b_inner + j % kPanel]. `columns` is a multiple of 16.
struct Multiply {
  int rows = 0, columns = 0, inner = 0;
  const float* a = nullptr;
  std::int64_t a_row = 0, a_inner = 0;
  const float* b = nullptr;
  std::int64_t b_inner = 0, b_panel = 0;
  float* c = nullptr;
  std::int64_t c_row = 0;
  bool adds = false;
};

void multiply(const Multiply& args);

}  // namespace paceline::engine::cpu
