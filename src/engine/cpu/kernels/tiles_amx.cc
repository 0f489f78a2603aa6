// Tiles by AMX-BF16. As with the other kernels of one instruction set the pragma chooses it, behind
// everything that is shared.
//
// The tile instructions are written out. gcc 12's intrinsics are the same lines, but do not tell the compiler
// that a tile load reads memory and a configuration too: stores in front of them were moved away, and the
// program died of an illegal instruction. And its macros want the register's number as a literal.

#include "engine/cpu/kernels/tiles.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#if defined(__clang__)  // knows no GCC target; the fuzz targets are built with it
#pragma clang attribute push(                                                            \
    __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,fma"))), \
    apply_to = function)
#endif
#pragma GCC optimize("O2", "no-math-errno", "no-trapping-math", "fp-contract=off")
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are only passed to functions that are inlined

namespace paceline::engine::cpu::tiles::amx {
namespace {

#include "engine/cpu/kernels/vector.inc"

/// What ldtilecfg reads: the shape of each of the 8 tiles. All are 16 rows of 64 bytes here.
struct Configuration {
  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Configuration) == 64);

/// Tiles 0 to 3 are the sums (2 r + j), 4 and 5 a, 6 and 7 b.
struct Tiles {
  static constexpr int kRows = 16, kRowTiles = 2;

  static void begin() {
    const Configuration configuration;
    asm volatile("ldtilecfg %0" : : "m"(configuration));
  }
  static void end() { asm volatile("tilerelease" : : : "memory"); }

  template <int r, int j>
  PACELINE_INLINE void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(2 * r + j));
  }
  template <int r, int j>
  PACELINE_INLINE void load_sums(const float* p) {
    load<2 * r + j>(p, 4 * kBlock);
  }
  template <int r, int j>
  PACELINE_INLINE void store(float* p) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(p), "r"(std::int64_t{4} * kBlock), "i"(2 * r + j)
                 : "memory");
  }
  template <int r>
  PACELINE_INLINE void load_a(const std::uint16_t* p) {
    load<4 + r>(p, 2 * kBlock);
  }
  template <int j>
  PACELINE_INLINE void load_b(const std::uint16_t* p) {
    load<6 + j>(p, 2 * kBlock);
  }
  template <int r, int j>
  PACELINE_INLINE void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(2 * r + j), "i"(4 + r), "i"(6 + j));
  }

 private:
  template <int tile>
  static PACELINE_INLINE void load(const void* p, std::int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(tile) : "memory");
  }
};

#include "engine/cpu/kernels/tiles.inc"

}  // namespace

extern const TileKernels kTable;
constinit const TileKernels kTable = table<Tiles>(Unit::amx);

}  // namespace paceline::engine::cpu::tiles::amx

#if defined(__clang__)
#pragma clang attribute pop
#endif
