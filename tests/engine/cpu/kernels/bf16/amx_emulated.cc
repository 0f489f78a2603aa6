// AMX-BF16 in plain C++, see emulated.inc.

#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu::tiles::emulated {
namespace {

#include "engine/cpu/kernels/bf16/emulated.inc"

constexpr int kAmxRows = 16;  ///< of a tile

/// tdpbf16ps: 16 pairs are summed separately from the sums so far, and first and second halves separately
/// from each other. It is a function call, compiled for every width: inlined at every use, with all users
/// compiled for every width, it took gcc four minutes.
PACELINE_EVERY_WIDTH __attribute__((noinline)) void add_product(V to[kAmxRows], const std::uint16_t* rows,
                                                                const std::uint16_t* pairs,
                                                                std::int64_t row_step = kBlock) {
  V first[kAmxRows] = {}, second[kAmxRows] = {};
  for (int pair = 0; pair < kHalf; ++pair) {
    U columns;
    __builtin_memcpy(&columns, pairs + pair * kBlock, sizeof columns);
    const V first_columns = first_of(columns), second_columns = second_of(columns);
    for (int row = 0; row < kAmxRows; ++row) {
      std::uint32_t word;
      __builtin_memcpy(&word, rows + row * row_step + 2 * pair, sizeof word);
      first[row] = flushed(first[row] + first_of(U{} + word) * first_columns);
      second[row] = flushed(second[row] + second_of(U{} + word) * second_columns);
    }
  }
  for (int row = 0; row < kAmxRows; ++row)
    to[row] = flushed(flushed(to[row]) + flushed(first[row] + second[row]));
}

// From here on gcc chooses what it inlines: all that is around the products, inlined at every use, makes a
// function of 1.5 MB, and took most of the time that this file takes.
// (No function below may be compiled for every width: it would pass vectors to functions that expect them
// elsewhere.)
#undef PACELINE_INLINE
#define PACELINE_INLINE inline

struct Tiles {
  static constexpr int kRows = kAmxRows, kRowTiles = 2;
  static void begin() {}
  static void end() {}

  V sums[2][2][kRows];
  const std::uint16_t* a[2] = {};
  const std::uint16_t* b[2] = {};

  template <int r, int j>
  PACELINE_INLINE void zero() {
    for (V& row : sums[r][j]) row = V{};
  }
  template <int r, int j>
  PACELINE_INLINE void load_sums(const float* p) {
    for (int row = 0; row < kRows; ++row) sums[r][j][row] = Float::load(p + row * kBlock);
  }
  template <int r, int j>
  PACELINE_INLINE void store(float* p) {
    for (int row = 0; row < kRows; ++row) Float::store(p + row * kBlock, sums[r][j][row]);
  }
  template <int r>
  PACELINE_INLINE void load_a(const std::uint16_t* p) {
    a[r] = p;
  }
  template <int j>
  PACELINE_INLINE void load_b(const std::uint16_t* p) {
    b[j] = p;
  }
  template <int r, int j>
  PACELINE_INLINE void multiply() {
    add_product(sums[r][j], a[r], b[j]);
  }

  V few_sums[2 * kPairTaps][kRows];
  const std::uint16_t *near[3] = {}, *pixel = nullptr, *weights[3] = {}, *strips[3] = {};
  std::int64_t strip_step = 0, pixel_step = 0;

  template <int i>
  PACELINE_INLINE void zero_sum() {
    for (V& row : few_sums[i]) row = V{};
  }
  template <int i>
  PACELINE_INLINE void load_sum(const float* p) {
    for (int row = 0; row < kRows; ++row) few_sums[i][row] = Float::load(p + row * kBlock);
  }
  template <int i>
  PACELINE_INLINE void store_sum(float* p) {
    for (int row = 0; row < kRows; ++row) Float::store(p + row * kBlock, few_sums[i][row]);
  }
  template <int i>
  PACELINE_INLINE void load_near(const std::uint16_t* p) {
    near[i] = p;
  }
  template <int i, int k, int j>
  PACELINE_INLINE void multiply_near() {
    add_product(few_sums[i], near[k], b[j]);
  }
  PACELINE_INLINE void load_pixel(const std::uint16_t* p, std::int64_t step = kBlock) {
    pixel = p;
    pixel_step = step;
  }
  template <int j>
  PACELINE_INLINE void load_weight(const std::uint16_t* p) {
    weights[j] = p;
  }
  template <int i, int j>
  PACELINE_INLINE void multiply_pixel() {
    add_product(few_sums[i], pixel, weights[j], pixel_step);
  }

  PACELINE_INLINE void load_strip_weight(const std::uint16_t* p) { weights[0] = p; }
  template <int k>
  PACELINE_INLINE void load_strip(const std::uint16_t* p, std::int64_t step) {
    strips[k] = p;
    strip_step = step;
  }
  template <int i, int k>
  PACELINE_INLINE void multiply_strip() {
    add_product(few_sums[i], strips[k], weights[0], strip_step);
  }

  PACELINE_INLINE void load_left(const std::uint16_t* p) { a[0] = p; }
  PACELINE_INLINE void load_right(const std::uint16_t* p) { b[0] = p; }
  template <int i>
  PACELINE_INLINE void multiply_sides() {
    add_product(few_sums[i], a[0], b[0]);
  }
};

#include "engine/cpu/kernels/bf16/tiles.inc"

void multiply_as_amx(const TileMultiply& m) { multiply<Tiles>(m); }
void multiply_neighbours_as_amx(const Neighbours& m) { multiply_neighbours<Tiles>(m); }
void multiply_row_as_amx(const RowOfPixels& m) { multiply_row<Tiles>(m); }
void multiply_strip_as_amx(const Strip& s) { multiply_strip<Tiles>(s); }
void visit_pairs_as_amx(const PairVisit& v) { visit_pairs<Tiles>(v); }

}  // namespace

extern const TileKernels kAmx;
constinit const TileKernels kAmx =
    table<Tiles>("emulated-amx", multiply_as_amx, multiply_neighbours_as_amx, multiply_row_as_amx,
                 multiply_strip_as_amx, visit_pairs_as_amx);

}  // namespace paceline::engine::cpu::tiles::emulated
