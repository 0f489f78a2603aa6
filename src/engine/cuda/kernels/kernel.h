#pragma once

/// Defines what a kernel of the CUDA engine is: a struct that is compiled from the same source for host and
/// device.
///
/// A kernel is a trivially copyable struct of pointers into device memory and sizes. Its threads form blocks:
///
///     struct Scale {
///       float* values;
///       std::int64_t count;
///       Grid grid() const;  // host only
///       PACELINE_HD void run(const ThreadIndex& at) const;
///     };
///
/// One whose threads pass values to one another runs in phases: all threads of a block finish a phase before
/// the next begins, and only `shared` memory carries values from one phase to the next:
///
///       PACELINE_HD int phases() const;
///       PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const;
///
/// The device wrapper (device.cu) puts __syncthreads() between phases; the host loop (host.cc) runs all
/// threads of a block through a phase before the next. There are no shuffles, no atomics and no contraction
/// of a * b + c, so that the same inputs give the same bits on both, except for exp, log and erf. nvcc
/// compiles this header and the kernels; they may include only the standard library, each other and
/// base/sample_draw.h and engine/loss_scale.h.

#include <cstdint>
#include <cstring>
#include <type_traits>

#ifdef __CUDACC__
#define PACELINE_HD __host__ __device__ __forceinline__
#else
#define PACELINE_HD inline
#endif
#ifdef __CUDACC__
#define PACELINE_UNROLL _Pragma("unroll")
#define PACELINE_UNROLL_4 _Pragma("unroll 4")
#else
#define PACELINE_UNROLL
#define PACELINE_UNROLL_4
#endif

namespace paceline::engine::cuda {

/// The most threads of a block; the device wrapper promises it to the compiler.
constexpr int kMostThreads = 256;

/// The threads that run a kernel.
struct Grid {
  int blocks = 1;
  int threads = 1;       ///< of a block, at most kMostThreads
  int shared_bytes = 0;  ///< of a block, at most 48 KB
};

/// A grid for `items` that are independent of one another; a thread loops from at.global() in steps of
/// at.global_count(). Any number of blocks gives the same bits. There are enough threads to keep the largest
/// GPU busy, but not one for each item if there are many, so that starting threads costs little.
inline Grid grid_for(std::int64_t items) {
  constexpr std::int64_t kMostBlocks = 2048;
  const std::int64_t blocks = (items + kMostThreads - 1) / kMostThreads;
  return {.blocks = static_cast<int>(blocks < 1             ? 1
                                     : blocks > kMostBlocks ? kMostBlocks
                                                            : blocks),
          .threads = kMostThreads,
          .shared_bytes = 0};
}

/// The position of a thread in its grid.
struct ThreadIndex {
  int block = 0, blocks = 1;
  int thread = 0, threads = 1;
  [[nodiscard]] PACELINE_HD std::int64_t global() const { return std::int64_t{block} * threads + thread; }
  [[nodiscard]] PACELINE_HD std::int64_t global_count() const { return std::int64_t{blocks} * threads; }
};

template <typename Kernel, typename = void>
constexpr bool kHasPhases = false;
template <typename Kernel>
constexpr bool kHasPhases<Kernel, std::void_t<decltype(&Kernel::phases)>> = true;

template <typename Kernel>
PACELINE_HD int phases_of(const Kernel& kernel) {
  if constexpr (kHasPhases<Kernel>)
    return kernel.phases();
  else
    return 1;
}
template <typename Kernel>
PACELINE_HD void run_phase(const Kernel& kernel, int phase, const ThreadIndex& at, float* shared) {
  if constexpr (kHasPhases<Kernel>)
    kernel.run(phase, at, shared);
  else
    kernel.run(at);
}

/// The upper half of a float, like base::BFloat16.
struct Bf16 {
  std::uint16_t bits;
};

PACELINE_HD float bits_to_float(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
PACELINE_HD std::uint32_t float_to_bits(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// A number of IEEE 754's format binary16: fp16.
struct Half {
  std::uint16_t bits;
};

PACELINE_HD float load(float value) { return value; }
PACELINE_HD float load(Half value) {
#ifdef __CUDA_ARCH__
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#else
  const std::uint32_t sign = std::uint32_t{value.bits & 0x8000u} << 16, rest = value.bits & 0x7fffu;
  if (rest >= 0x7c00u) return bits_to_float(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  if (rest >= 0x400u) return bits_to_float(sign | ((rest << 13) + (112u << 23)));
  const float subnormal = static_cast<float>(rest) * 0x1p-24f;
  return sign != 0 ? -subnormal : subnormal;
#endif
}
PACELINE_HD float load(Bf16 value) { return bits_to_float(std::uint32_t{value.bits} << 16); }
PACELINE_HD void store(float value, float& to) { to = value; }
/// Rounds to nearest even; NaN stays NaN, and from 65,520 on it is infinity.
PACELINE_HD void store(float value, Half& to) {
#ifdef __CUDA_ARCH__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(value));
#else
  const std::uint32_t bits = float_to_bits(value), sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
  std::uint32_t half;
  if (size > 0x7f800000u)
    half = 0x7fffu;  // the one NaN of the device
  else if (size >= 0x477ff000u)
    half = sign | 0x7c00u;
  else if (size >= 0x38800000u)
    half = sign | (((size + 0xfffu + ((size >> 13) & 1u)) >> 13) - (112u << 10));
  else  // subnormal: in [0.5, 1) floats have the same spacing, 2^-24, so that the addition rounds
    half = sign | (float_to_bits(bits_to_float(size) + 0.5f) - 0x3f000000u);
  to.bits = static_cast<std::uint16_t>(half);
#endif
}
/// Rounds to nearest even; NaN stays NaN.
PACELINE_HD void store(float value, Bf16& to) {
  const std::uint32_t bits = float_to_bits(value);
  to.bits = (bits & 0x7fffffffu) > 0x7f800000u
                ? static_cast<std::uint16_t>((bits >> 16) | 0x40u)
                : static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Kernels that fill, copy and add flat arrays of floats, for base::Memory on a device. Arrays need no
// alignment.
//
// Cost   each input is read once, dst written once

struct ArrayFill {
  float* dst;
  std::int64_t count;
  float value;

  [[nodiscard]] Grid grid() const { return grid_for(count); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t i = at.global(); i < count; i += at.global_count()) dst[i] = value;
  }
};

struct ArrayCopy {
  const float* src;
  float* dst;
  std::int64_t count;

  [[nodiscard]] Grid grid() const { return grid_for(count); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t i = at.global(); i < count; i += at.global_count()) dst[i] = src[i];
  }
};

/// dst = left + right; dst may be left or right.
struct ArrayAdd {
  const float* left;
  const float* right;
  float* dst;
  std::int64_t count;

  [[nodiscard]] Grid grid() const { return grid_for((count + 3) / 4); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const std::int64_t step = at.global_count();
    std::int64_t i = at.global();
    for (; i + 3 * step < count; i += 4 * step) {  // eight loads in flight
      float a[4], b[4];
      PACELINE_UNROLL
      for (int k = 0; k < 4; ++k) {
        a[k] = left[i + k * step];
        b[k] = right[i + k * step];
      }
      PACELINE_UNROLL
      for (int k = 0; k < 4; ++k) dst[i + k * step] = a[k] + b[k];
    }
    for (; i < count; i += step) dst[i] = left[i] + right[i];
  }
};

/// dst = keep * dst + rest * src.
struct ArrayMix {
  const float* src;
  float* dst;
  std::int64_t count;
  float keep, rest;

  [[nodiscard]] Grid grid() const { return grid_for(count); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t i = at.global(); i < count; i += at.global_count())
      dst[i] = keep * dst[i] + rest * src[i];
  }
};

/// One level of the tree of base/summation_tree.h over `parts` arrays; part p is at first + p * stride. For
/// each p that is a multiple of 2 * distance, adds the sum at part p + distance to the sum at part p. The
/// last level writes the sum of all parts to `dst`.
struct ArrayTreeLevel {
  float* first;
  float* dst;
  std::int64_t stride, count;
  int parts, distance;

  [[nodiscard]] Grid grid() const { return grid_for(count); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const bool is_last = 2 * distance >= parts;
    for (std::int64_t i = at.global(); i < count; i += at.global_count())
      for (int into = 0; into + distance < parts; into += 2 * distance) {
        float* const left = first + into * stride + i;
        const float sum = left[0] + left[distance * stride];
        *(is_last ? dst + i : left) = sum;
      }
  }
};

// Loads and stores vectors of eight neighbouring channels, as fp32: one access of 16 bytes for bf16 and fp16,
// two for float.
//
// Requires   addresses aligned to 16 bytes (channels are padded to multiples of 8)

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

/// Eight channels as stored. A thread can load several before it converts and computes. T: float, or a type
/// of two bytes.
template <typename T>
struct Raw8 {
  Words4 all;
};
template <>
struct Raw8<float> {
  Words4 half[2];
};

/// Eight channels as fp32.
struct Float8 {
  float value[kVector];
};

PACELINE_HD Raw8<float> load_raw(const float* from) { return {{load16(from), load16(from + 4)}}; }
template <typename T>
PACELINE_HD Raw8<T> load_raw(const T* from) {
  return {load16(from)};
}

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

PACELINE_HD Float8 to_float8(const Raw8<Half>& raw) {
  Float8 result;
  PACELINE_UNROLL
  for (int i = 0; i < kVector / 2; ++i) {
    result.value[2 * i] = load(Half{static_cast<std::uint16_t>(raw.all.word[i])});
    result.value[2 * i + 1] = load(Half{static_cast<std::uint16_t>(raw.all.word[i] >> 16)});
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
/// T: a type of two bytes.
template <typename T>
PACELINE_HD void store8(const Float8& values, T* to) {
  Words4 all;
  PACELINE_UNROLL
  for (int i = 0; i < kVector / 2; ++i) {
    T low, high;
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

// StepNumbers: the numbers that differ between steps. They are in device memory, so that captured kernels
// read the current ones.

struct StepReport;

/// The host copies it to the device before each forward pass.
struct StepNumbers {
  double gradient_scale = 1;          ///< StepInput::gradient_scale
  std::uint64_t step = 0;             ///< StepInput::step, for dropout
  std::int64_t first_position = 0;    ///< StepInput::first_position, for dropout
  std::int32_t stop = 0, enough = 0;  ///< StepFlags, for the votes
  std::int32_t is_first_pass = 1;     ///< whether the pass is the first of its step
  /// Pinned memory of the host, where kernels write what the step reports; null for a step that is not
  /// queued.
  StepReport* report = nullptr;
};

}  // namespace paceline::engine::cuda
