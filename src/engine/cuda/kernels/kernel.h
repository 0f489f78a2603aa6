#pragma once

/// Defines what a kernel of the CUDA engine is: a struct that is compiled from the same source for host and
/// device.
///
/// A kernel is a trivially copyable struct of pointers into device memory and sizes. Its threads form blocks.
/// It runs in phases: all threads of a block finish a phase before the next begins, and only `shared` memory
/// carries values from one phase to the next:
///
///     struct Scale {
///       float* values;
///       std::int64_t count;
///       Grid grid() const;                  // host only
///       PACELINE_HD int phases() const { return 1; }
///       PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const;
///     };
///
/// The device wrapper (device.cu) puts __syncthreads() between phases; the host loop (host.cc) runs all
/// threads of a block through a phase before the next. There are no shuffles, no atomics and no contraction
/// of a * b + c, so that the same inputs give the same bits on both, except for exp, log and erf. nvcc
/// compiles this header and the kernels; they may include only the standard library, each other and
/// base/sample_draw.h.

#include <cstdint>
#include <cstring>

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

PACELINE_HD float load(float value) { return value; }
PACELINE_HD float load(Bf16 value) { return bits_to_float(std::uint32_t{value.bits} << 16); }
PACELINE_HD void store(float value, float& to) { to = value; }
/// Rounds to nearest even; NaN stays NaN.
PACELINE_HD void store(float value, Bf16& to) {
  const std::uint32_t bits = float_to_bits(value);
  to.bits = (bits & 0x7fffffffu) > 0x7f800000u
                ? static_cast<std::uint16_t>((bits >> 16) | 0x40u)
                : static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace paceline::engine::cuda
