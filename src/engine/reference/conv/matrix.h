#pragma once

/// The two matrix operations on which the reference engine's convolutions and dense layers are built: plain
/// loops over row-major arrays.

#include <cstdint>

namespace paceline::engine::reference {

/// c += a * b.
///
/// Shapes   a [rows, inner], b [inner, columns], c [rows, columns]
template <typename T>
void add_product(std::int64_t rows, std::int64_t inner, std::int64_t columns, const T* a, const T* b, T* c);

/// dst [columns, rows] = src [rows, columns], transposed.
template <typename T>
void transpose(std::int64_t rows, std::int64_t columns, const T* src, T* dst);

}  // namespace paceline::engine::reference
