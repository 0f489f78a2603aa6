#pragma once

/// Matrix products of bf16 tiles, and the packing around them: one source for all units that multiply bf16.
///
/// A *block* is 32 samples or 32 channels. Tiles are stored in blocks of 1,024 elements, so that a product
/// reads whole cache lines one after the other:
///   a [rows][32]            rows of 32 bf16: 16 pairs, the inner dimension
///   b [2][16 pairs][16][2]  two halves of 16 columns; the two rows of each pair are interleaved
///   sums [rows][32]         float
/// where rows is 16 or 32. Elements of a block beyond the samples or channels that exist are zero.
///
/// Units differ in begin(), end() and a few operations on registers (tiles_*.cc). Products (tiles.inc) and
/// everything else are written once, over these operations. The tests have units that compute the
/// instructions as their documentation defines them, in plain C++, with the same shapes and orders, on any
/// machine.
///
/// Threads  any; kernels start none. begin() and end() belong to the calling thread

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace paceline::engine::cpu::tiles {

enum class Unit {
  amx,          ///< AMX-BF16: tiles of 16 rows; the sums of four at a time
  avx512_bf16,  ///< AVX512-BF16: sums of 8 rows by 32 columns in vector registers
};
inline constexpr std::array kUnits = {Unit::amx, Unit::avx512_bf16};
[[nodiscard]] std::string_view name_of(Unit unit);

constexpr int kBlock = 32;                       ///< samples or channels; also the inner dimension of a tile
constexpr int kHalf = 16;                        ///< columns of a tile, and the most rows
constexpr int kBlockElements = kBlock * kBlock;  ///< of a whole block of a, b or sums

[[nodiscard]] constexpr int blocks_of(int count) { return (count + kBlock - 1) / kBlock; }
/// Rows of a block for this number of samples: half a block if that is enough.
[[nodiscard]] constexpr int rows_of(int samples) { return samples <= kHalf ? kHalf : kBlock; }

/// The first of consecutive blocks of a, and of b.
struct Operand {
  const std::uint16_t* a = nullptr;
  const std::uint16_t* b = nullptr;
};

/// sums = the sum of a * b over all `operands` and the `depth` blocks of each; added to sums if `adds`.
struct TileMultiply {
  int rows = kBlock;
  const Operand* operands = nullptr;
  int count = 0;  ///< of operands; may be 0
  int depth = 1;
  std::int64_t a_at = 0, b_at = 0;  ///< elements to add to every operand's pointers
  std::int64_t a_step = 0;          ///< elements from one block of a to the next; blocks of b are contiguous
  float* sums = nullptr;
  const float* next_sums = nullptr;  ///< of the next call: fetched meanwhile
  bool adds = false;
};

/// Three neighbouring taps at a time: sums[tap] = the sum of a(x + tap - 1) * b(x) over `rows` and their
/// pixels x, without pixels outside the row; added to sums if `adds`. Each tile of `a` is loaded once for
/// three products, while multiply() loads it for two.
struct Neighbours {
  const Operand* rows = nullptr;  ///< a and b of pixel 0; each further pixel is a block of elements later
  int count = 0;
  int pixels = 0;  ///< of a row; at least 2
  std::int64_t a_at = 0, b_at = 0;
  float* sums = nullptr;             ///< [3 taps][32][32]
  const float* next_sums = nullptr;  ///< of the next call: fetched meanwhile
  bool adds = false;
};

/// Pixels [first, first + count) of a row of results, for kernels three taps wide: sums[pixel] = the sum of
/// a(pixel + tap - 1) * b(tap) over `operands`, the `depth` blocks of each, and the taps, without pixels
/// outside the row. Each tile of `a`, and of the weights, is loaded once for three or four products, while
/// multiply() loads it for two.
struct RowOfPixels {
  int rows = kBlock;                  ///< samples: 16 or 32
  const Operand* operands = nullptr;  ///< a of the row's pixel 0, b of tap 0
  int operand_count = 0;
  int depth = 1;
  int first = 0, count = 1, pixels = 1;  ///< `count` is at most kRowPixels; `pixels`: of the row
  std::int64_t a_pixel = 0, a_step = 0;  ///< elements from one pixel to the next, from one block to the next
  std::int64_t b_at = 0, b_tap = 0;      ///< elements to add to every operand's b; from one tap to the next
  float* sums = nullptr;                 ///< [count][rows][32]
};
constexpr int kRowPixels = 4;  ///< the most pixels at a time

constexpr int kStripTiles = 4;
constexpr int kTallKernel = 3,
              kLowKernel = 2;  ///< rows of taps of strips whose tiles lie one below the other

/// How the four tiles of a strip lie. Except with `flat` they are rows of results below each other, for
/// kernels three or two taps high: a tile of pixels is loaded once for all rows of results that need it, and
/// rows outside the image are skipped.
enum class StripForm {
  flat,     ///< anywhere
  tall,     ///< result t sums rows t + tap
  strided,  ///< result t sums rows 2 t + tap: windows move by two
  low,      ///< like tall, for kernels two taps high
};

/// The sums of a batch norm (kernels.h, Epilogue) over the pixels that strips write. They are computed during
/// the products, when vector units are mostly idle. Float sums of a strip are added to doubles.
struct StripStats {
  double* sums = nullptr;   ///< [channels], of x - mean; a gradient's: of d
  double* other = nullptr;  ///< [channels], of (x - mean)^2; a gradient's: of d * (src - mean)
  const float* mean = nullptr;
  bool is_gradient = false;
  // A gradient's only: bf16 arrays with the layout of the results, which begin at `product`.
  const std::uint16_t* product = nullptr;
  const std::uint16_t* src = nullptr;
  const std::uint16_t* before = nullptr;          ///< the other term, to which the result is added; or null
  const std::uint16_t* dst = nullptr;             ///< if not null, it decides the mask
  const float *scale = nullptr, *bias = nullptr;  ///< if not null, (src - mean) * scale + bias decides it
  /// Receives d. It is the result's own array, or that of the other term; in that case the result itself is
  /// not stored.
  std::uint16_t* masked = nullptr;
};

/// What a strip leaves for the next one: sums of a block of channels that are still to be written.
struct StripRest {
  const float* sums = nullptr;                   ///< [pixels][32]
  std::array<std::uint16_t*, kStripTiles> to{};  ///< the first pixel of each 16
  const std::int64_t* to_steps = nullptr;
  const float* bias = nullptr;
  int pixels = 0;   ///< number of pixels, a multiple of 16; 0: nothing is left
  int turn = 0;     ///< which of two blocks of sums is free, 0 or 1
  int channel = 0;  ///< the first channel
  const StripStats* taken = nullptr;
};

/// Memory to prefetch into the second-level cache: `lines` of it during each tile of weights, since products
/// need little memory bandwidth.
struct StripPrefetch {
  const std::byte* at = nullptr;
  int lines = 0;            ///< 0: nothing
  bool is_written = false;  ///< whether it will be written
};
constexpr int kStripAheads = 4;

/// Copies consecutive pixels of whole blocks of channels to `to` + columns[pixel]; at the destination a
/// pixel's blocks are `block_step` elements apart.
struct Scatter {
  const std::uint16_t* from = nullptr;
  std::uint16_t* to = nullptr;
  const std::int64_t* columns = nullptr;
  int pixels = 0, blocks = 1;
  std::int64_t block_step = 0;
};

/// Up to four tiles of 16 neighbouring pixels, of one image or several, times all weights:
/// to[tile][pixel][channel] = bias + the sum of a(pixel + tap) * b(tap) over taps and channels, rounded to
/// bf16. The rows of a tile are pixels, read where they are stored. Each tile of weights is used for four
/// products. While one block of channels is multiplied, the sums of the block before are written.
struct Strip {
  int tiles = kStripTiles;
  StripForm form = StripForm::flat;
  /// [kernel height][kStripTiles]: the pixels under the first tap of each tile. If not flat: the rows of
  /// pixels that four results need; null outside the image and, if strided or low, where none of `tiles`
  /// results needs them.
  const std::uint16_t* const* rows = nullptr;
  std::int64_t a_pixel = 0;  ///< elements from one row of a tile to the next
  std::int64_t a_tap = 0;    ///< ... from one tap of a row of taps to the next
  int kernel_height = 1, kernel_width = 1;
  int depth = 1;                        ///< input channels, in blocks of 32
  const std::uint16_t* b = nullptr;     ///< weights of the first tap and the first block of output channels
  std::int64_t b_tap = 0, b_block = 0;  ///< elements to the next tap, to the next output block
  int blocks = 1;                       ///< of output channels
  // The caller may exchange the loops over kernel_width and depth. These are the elements from one of `depth`
  // to the next (of a; if strided, the two by turns) and, if not flat, from one row of taps to the next.
  std::array<std::int64_t, 2> a_depth = {kBlock, kBlock};
  std::int64_t b_depth = kBlockElements, b_row = 0;
  const float* bias = nullptr;                   ///< or null
  float* sums = nullptr;                         ///< [2][64 pixels][32], for this strip and the rest
  std::array<std::uint16_t*, kStripTiles> to{};  ///< the first pixel of each tile, channel 0
  /// [16]: elements from the place of each pixel of a tile to that of the next. Must exist until the rest is
  /// written.
  const std::int64_t* to_steps = nullptr;
  StripRest* rest = nullptr;
  const StripStats* taken = nullptr;                ///< or null
  std::array<StripPrefetch, kStripAheads> ahead{};  ///< those with no lines come last
};
/// Floats of Strip::sums.
constexpr int kStripSums = 2 * kStripTiles * kHalf * kBlock;

constexpr int kPairTaps = 3;
/// Floats of the sums of one visit: [tap][16 output channels][2 halves of them][16 input channels].
constexpr int kPairSums = kPairTaps * kHalf * kBlock;

/// What one visit leaves for the next one: sums that are still to be added.
struct PairRest {
  const float* sums = nullptr;  ///< [kPairSums]
  float* to = nullptr;          ///< null: nothing is left
  bool adds = false;            ///< false: `to` is overwritten
  int turn = 0;                 ///< which of two blocks of sums is free, 0 or 1
};

/// Three neighbouring taps by 32 output and 16 input channels, where the inner dimension is pixels and pairs
/// of samples: sums = the sum of a * b(tap) over `rows` and their tiles; added to sums if `adds`. A tile of b
/// may begin at any line, so that the next tap begins at another line. While one visit is multiplied, the
/// sums of the visit before are added where they belong.
struct PairVisit {
  const Operand* rows = nullptr;
  int count = 0;                    ///< of rows; may be 0
  int tiles = 1;                    ///< of a row, contiguous
  std::int64_t a_at = 0, b_at = 0;  ///< elements to add to every row's pointers
  std::int64_t a_half = 0;          ///< elements from one half of the output channels to the other
  std::array<std::int64_t, kPairTaps> b_tap{};  ///< elements from b to each tap
  float* sums = nullptr;                        ///< [kPairSums]
  bool adds = false;
  float* near_sums = nullptr;  ///< [2][kPairSums], for this visit and the rest
  PairRest* rest = nullptr;
};

/// Neighbouring pixels of one row of the image, of up to 32 samples.
struct PixelRow {
  const std::uint16_t* values = nullptr;
  std::int64_t sample_stride = 0, pixel_stride = 0;
  int samples = 0, pixels = 0, channels = 0;
};

/// A block of sums that becomes one pixel of up to 32 samples.
struct Pixel {
  const float* sums = nullptr;
  const float* bias = nullptr;  ///< [channels], or null
  void* values = nullptr;
  std::int64_t sample_stride = 0;
  int samples = 0, channels = 0;  ///< at most 32 each
};

constexpr int kMostTaps = 25;  ///< the most taps for which pack_weights() packs whole blocks: 5x5

/// The weights from a whole block of input channels to a whole block of output channels: rows [32 output
/// channels] of [32 input channels][taps], `stride` floats apart. They become one block of b for each tap,
/// `tap_step` elements apart.
struct WeightBlock {
  const float* weights = nullptr;
  std::int64_t stride = 0;
  int taps = 1;                     ///< at most kMostTaps
  bool outs_are_rows = false;       ///< of b: d_src sums over output channels, forward over input channels
  std::uint16_t* packed = nullptr;  ///< aligned to 64 bytes
  std::int64_t tap_step = 0;
  /// Rows of the same shape and stride that are prefetched meanwhile. Not null, but any address will do:
  /// nothing is read.
  const float* next = nullptr;
};

/// The functions of one unit. The structs above describe their arguments.
struct TileKernels {
  std::string_view name;  ///< of the unit, in reports and keys
  /// Prepares the unit of the calling thread for products, and releases it.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
  void (*multiply)(const TileMultiply& args) = nullptr;
  // Null if the unit has no such kernel.
  void (*multiply_neighbours)(const Neighbours& args) = nullptr;
  void (*multiply_row)(const RowOfPixels& args) = nullptr;
  void (*multiply_strip)(const Strip& args) = nullptr;
  void (*scatter)(const Scatter& args) = nullptr;
  /// Writes what the last strip left. Call it before anything reads the results, and at the end.
  void (*finish_strip)(StripRest& rest) = nullptr;
  void (*visit_pairs)(const PairVisit& args) = nullptr;
  /// Adds what the last visit left. Call it before anything reads the sums.
  void (*finish_pairs)(PairRest& rest) = nullptr;
  /// Packs lines of b for PairVisit: [half a block of channels][pixel][pair of samples][16 channels][2], with
  /// `half_step` elements from one half to the next. The first half has the even channels of a block.
  /// Channels must be whole blocks.
  void (*pair_lines)(const PixelRow& row, int pairs, std::uint16_t* b, std::int64_t half_step) = nullptr;
  /// Packs a for PairVisit: the same lines, transposed 16 at a time: [half][16 lines][16 channels][16
  /// lines][2]. Lines must be a multiple of 16.
  void (*pair_squares)(const PixelRow& row, int pairs, std::uint16_t* a, std::int64_t half_step) = nullptr;
  /// Packs a with samples as rows: [pixel][block of channels][rows][32 channels].
  void (*gather)(const PixelRow& row, int rows, std::uint16_t* a) = nullptr;
  /// Packs a with channels as rows: [block of channels][pixel][32 channels][32 samples], with `block_step`
  /// elements from one block of channels to the next.
  void (*transpose)(const PixelRow& row, std::uint16_t* a, std::int64_t block_step) = nullptr;
  /// Packs b with pairs of samples: [block of channels][pixel][2][16 pairs][16 channels][2].
  void (*interleave)(const PixelRow& row, std::uint16_t* b, std::int64_t block_step) = nullptr;
  void (*pack_weights)(const WeightBlock& block) = nullptr;
  void (*write_f32)(const Pixel& pixel) = nullptr;
  void (*write_bf16)(const Pixel& pixel) = nullptr;
  /// sums [channels] += the row's values
  void (*add_values)(const PixelRow& row, float* sums) = nullptr;
};

/// Calls begin() now and end() when it goes out of scope.
class UnitSession {
 public:
  explicit UnitSession(const TileKernels& kernels) : kernels_(kernels) { kernels_.begin(); }
  ~UnitSession() { kernels_.end(); }
  UnitSession(const UnitSession&) = delete;
  UnitSession& operator=(const UnitSession&) = delete;

 private:
  const TileKernels& kernels_;
};

/// The table of `unit`. Call its functions only if the machine has the unit (conv/bf16/support.h).
[[nodiscard]] const TileKernels& kernels_of(Unit unit);

}  // namespace paceline::engine::cpu::tiles
