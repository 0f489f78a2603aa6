#pragma once

/// The number formats of stored tensors, and conversion between bfloat16 and float.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace paceline::base {

enum class DType { f64, f32, f16, bf16, i64, i32, u8 };

[[nodiscard]] constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

/// The upper half of a float; conversion rounds to nearest even, NaN stays NaN.
struct BFloat16 {
  std::uint16_t bits = 0;
};

[[nodiscard]] inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
[[nodiscard]] inline BFloat16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

}  // namespace paceline::base
