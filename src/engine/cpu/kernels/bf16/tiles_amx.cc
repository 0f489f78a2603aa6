// Tiles by AMX-BF16. As in the other files for one instruction set, a pragma after all shared headers chooses
// it.
//
// The tile instructions are written as inline assembly. gcc 12's intrinsics do the same, but do not tell the
// compiler that a tile load, and loading a configuration, read memory: stores before them were moved, and the
// program died of an illegal instruction. Its macros also require the register number as a literal.

#include "engine/cpu/kernels/bf16/tiles.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prfchw,prefer-vector-width=512")
#if defined(__clang__)  // clang does not know GCC's target pragma; the fuzz targets are built with clang
#pragma clang attribute push(                                                                              \
    __attribute__((target("amx-tile,amx-bf16,avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,fma,prfchw"))), \
    apply_to = function)
#endif
#pragma GCC optimize("O2", "no-math-errno", "no-trapping-math", "fp-contract=off")
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are only passed to functions that are inlined

namespace paceline::engine::cpu::tiles::amx {
namespace {

#define PACELINE_HAS_AVX512
#define PACELINE_ROUNDS_TO_BF16  // every processor with AMX-BF16 has AVX512-BF16
#include "engine/cpu/kernels/vector.inc"

/// The operand of ldtilecfg: the shape of each of the 8 tiles. Here all have 16 rows of 64 bytes.
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

  // For Neighbours tiles 0 to 2 are the sums, 3 to 5 a; for RowOfPixels and tall strips 0 to 3, 4
  // a, and 5 to 7 the weights.
  template <int i>
  PACELINE_INLINE void zero_sum() {
    asm volatile("tilezero %%tmm%c0" : : "i"(i));
  }
  template <int i>
  PACELINE_INLINE void load_sum(const float* p) {
    load<i>(p, 4 * kBlock);
  }
  template <int i>
  PACELINE_INLINE void store_sum(float* p) {
    store<i / 2, i % 2>(p);
  }
  template <int i>
  PACELINE_INLINE void load_near(const std::uint16_t* p) {
    load<3 + i>(p, 2 * kBlock);
  }
  template <int i, int k, int j>
  PACELINE_INLINE void multiply_near() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(i), "i"(3 + k), "i"(6 + j));
  }
  PACELINE_INLINE void load_pixel(const std::uint16_t* p, std::int64_t step = kBlock) {
    load<4>(p, 2 * step);
  }
  template <int j>
  PACELINE_INLINE void load_weight(const std::uint16_t* p) {
    load<5 + j>(p, 2 * kBlock);
  }
  template <int i, int j>
  PACELINE_INLINE void multiply_pixel() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(i), "i"(4), "i"(5 + j));
  }

  // For other strips 4 is the weights, 5 to 7 pixels.
  PACELINE_INLINE void load_strip_weight(const std::uint16_t* p) { load<4>(p, 2 * kBlock); }
  template <int k>
  PACELINE_INLINE void load_strip(const std::uint16_t* p, std::int64_t step) {
    load<5 + k>(p, 2 * step);
  }
  template <int i, int k>
  PACELINE_INLINE void multiply_strip() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(i), "i"(5 + k), "i"(4));
  }

  // For PairVisit 0 to 5 are the sums.
  PACELINE_INLINE void load_left(const std::uint16_t* p) { load<6>(p, 2 * kBlock); }
  PACELINE_INLINE void load_right(const std::uint16_t* p) { load<7>(p, 2 * kBlock); }
  template <int i>
  PACELINE_INLINE void multiply_sides() {
    asm volatile("tdpbf16ps %%tmm7, %%tmm6, %%tmm%c0" : : "i"(i));
  }

 private:
  template <int tile>
  static PACELINE_INLINE void load(const void* p, std::int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(tile) : "memory");
  }
};

#include "engine/cpu/kernels/bf16/tiles.inc"

}  // namespace

extern const TileKernels kTable;
constinit const TileKernels kTable =
    table<Tiles>("amx", multiply<Tiles>, multiply_neighbours<Tiles>, multiply_row<Tiles>,
                 multiply_strip<Tiles>, visit_pairs<Tiles>);

}  // namespace paceline::engine::cpu::tiles::amx

#if defined(__clang__)
#pragma clang attribute pop
#endif
