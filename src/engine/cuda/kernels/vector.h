#pragma once

/// Loads and stores vectors of eight neighbouring channels, as fp32: one access of 16 bytes for bf16, two for
/// float.
///
/// Requires   addresses aligned to 16 bytes (channels are padded to multiples of 8)

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

constexpr int kVector = 8;

struct alignas(16) Words4 {
  std::uint32_t word[4];
};

PACELINE_HD Words4 load16(const void* from) {
#ifdef __CUDA_ARCH__
  return *static_cast<const Words4*>(from);
#else
  Words4 words;
  std::memcpy(&words, from, sizeof words);  // the memory holds floats or Bf16, never Words4
  return words;
#endif
}
PACELINE_HD void store16(const Words4& words, void* to) {
#ifdef __CUDA_ARCH__
  *static_cast<Words4*>(to) = words;
#else
  std::memcpy(to, &words, sizeof words);
#endif
}

/// Eight channels as stored. A thread can load several before it converts and computes.
template <typename T>
struct Raw8;
template <>
struct Raw8<float> {
  Words4 half[2];
};
template <>
struct Raw8<Bf16> {
  Words4 all;
};

/// Eight channels as fp32.
struct Float8 {
  float value[kVector];
};

PACELINE_HD Raw8<float> load_raw(const float* from) { return {{load16(from), load16(from + 4)}}; }
PACELINE_HD Raw8<Bf16> load_raw(const Bf16* from) { return {load16(from)}; }

PACELINE_HD Float8 to_float8(const Raw8<float>& raw) {
  Float8 result;
  PACELINE_UNROLL
  for (int i = 0; i < kVector; ++i) result.value[i] = bits_to_float(raw.half[i / 4].word[i % 4]);
  return result;
}
PACELINE_HD Float8 to_float8(const Raw8<Bf16>& raw) {
  Float8 result;
  PACELINE_UNROLL
  for (int i = 0; i < kVector / 2; ++i) {  // the first of two lies in the lower half of its word
    result.value[2 * i] = bits_to_float(raw.all.word[i] << 16);
    result.value[2 * i + 1] = bits_to_float(raw.all.word[i] & 0xffff0000u);
  }
  return result;
}

template <typename T>
PACELINE_HD Float8 load8(const T* from) {
  return to_float8(load_raw(from));
}

PACELINE_HD void store8(const Float8& values, float* to) {
  Words4 half[2];
  PACELINE_UNROLL
  for (int i = 0; i < kVector; ++i) half[i / 4].word[i % 4] = float_to_bits(values.value[i]);
  store16(half[0], to);
  store16(half[1], to + 4);
}
PACELINE_HD void store8(const Float8& values, Bf16* to) {
  Words4 all;
  PACELINE_UNROLL
  for (int i = 0; i < kVector / 2; ++i) {
    Bf16 low, high;
    store(values.value[2 * i], low);
    store(values.value[2 * i + 1], high);
    all.word[i] = std::uint32_t{low.bits} | std::uint32_t{high.bits} << 16;
  }
  store16(all, to);
}

/// `values` as they are after storing them as T.
template <typename T>
PACELINE_HD Float8 as_stored(const Float8& values) {
  Float8 result;
  PACELINE_UNROLL
  for (int i = 0; i < kVector; ++i) {
    T stored;
    store(values.value[i], stored);
    result.value[i] = load(stored);
  }
  return result;
}

/// Four floats of a flat array.
struct Float4 {
  float value[4];
};
PACELINE_HD Float4 load4(const float* from) {
  const Words4 words = load16(from);
  Float4 result;
  PACELINE_UNROLL
  for (int i = 0; i < 4; ++i) result.value[i] = bits_to_float(words.word[i]);
  return result;
}
PACELINE_HD void store4(const Float4& values, float* to) {
  Words4 words;
  PACELINE_UNROLL
  for (int i = 0; i < 4; ++i) words.word[i] = float_to_bits(values.value[i]);
  store16(words, to);
}

}  // namespace paceline::engine::cuda
