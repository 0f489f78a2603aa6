#pragma once

/// Products of bf16 tiles, and the packing around them: one source for every unit that multiplies bf16.
///
/// Vocabulary. A *block* is 32 samples or 32 channels. Tiles come in blocks of 1,024 elements, so that a
/// product reads whole lines one after the other:
///   a [rows][32]            rows of 32 bf16, of which 16 pairs are multiplied
///   b [2][16 pairs][16][2]  two halves of 16 columns; each pair of b's rows interleaved
///   sums [rows][32]         float
/// where rows is 16 or 32. Whatever a block has beyond the samples or channels there are is zero.
///
/// Only begin(), end() and the products differ between units (tiles_*.cc); they are written once, over a few
/// operations on registers (tiles.inc), and so is everything else. The emulated units compute in plain C++
/// what the documents of the instructions say, in the same shapes and orders: the tests run them anywhere.
///
/// Threads  none of its own; begin() and end() belong to the calling thread

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace paceline::engine::cpu::tiles {

enum class Unit {
  amx,              ///< AMX-BF16: tiles of 16 rows, four of sums at a time
  avx512_bf16,      ///< AVX512-BF16: 8 rows by 32 columns of sums in vector registers
  emulated_amx,     ///< the same tiles and order of sums as amx, in C++
  emulated_avx512,  ///< as avx512_bf16
};
inline constexpr std::array kEmulatedUnits = {Unit::emulated_amx, Unit::emulated_avx512};
inline constexpr std::array kHardwareUnits = {Unit::amx, Unit::avx512_bf16};
[[nodiscard]] std::string_view name_of(Unit unit);

constexpr int kBlock = 32;                       ///< samples, channels; also the inner length of a tile
constexpr int kHalf = 16;                        ///< columns of a tile, and its rows at most
constexpr int kBlockElements = kBlock * kBlock;  ///< of a whole block of a, of b, of sums

[[nodiscard]] constexpr int blocks_of(int count) { return (count + kBlock - 1) / kBlock; }
/// Rows that so many samples take: half a block where that is enough.
[[nodiscard]] constexpr int rows_of(int samples) { return samples <= kHalf ? kHalf : kBlock; }

/// Where a run of blocks of a and of b begins.
struct Operand {
  const std::uint16_t* a = nullptr;
  const std::uint16_t* b = nullptr;
};

/// sums = the sum over `operands`, and over `depth` blocks of each, of a * b; added to sums when `adds`.
struct TileMultiply {
  int rows = kBlock;
  const Operand* operands = nullptr;
  int count = 0;  ///< may be 0
  int depth = 1;
  std::int64_t a_at = 0, b_at = 0;  ///< elements behind every operand's pointers
  std::int64_t a_step = 0;          ///< elements from one block of a to the next; those of b lie together
  float* sums = nullptr;
  const float* next_sums = nullptr;  ///< of the next call: fetched meanwhile
  bool adds = false;
};

/// Three neighbouring taps at a time: sums[tap] (+)= the sum over `rows`, and over their pixels x, of
/// a(x + tap - 1) * b(x), of which what lies beside the row is left out. A tile of `a` then serves three
/// products, where multiply() reads it for two.
struct Neighbours {
  const Operand* rows = nullptr;  ///< a and b of pixel 0; those of pixel x a block of elements later each
  int count = 0;
  int pixels = 0;  ///< of a row; at least 2
  std::int64_t a_at = 0, b_at = 0;
  float* sums = nullptr;             ///< [3 taps][32][32]
  const float* next_sums = nullptr;  ///< of the next call: fetched meanwhile
  bool adds = false;
};

/// Up to four neighbouring pixels [first, first + count) of a row of results, by kernels three taps wide:
/// sums[pixel] = the sum over `rows`, over `depth` blocks of each, and over the taps, of a(pixel + tap - 1) *
/// b(tap), of which what lies beside the row is left out. A tile of `a`, and of the weights, then serves
/// three products or four, where multiply() reads it for two.
struct RowOfPixels {
  int rows = kBlock;                  ///< samples: 16 or 32
  const Operand* operands = nullptr;  ///< a of the row's pixel 0, b of tap 0
  int operand_count = 0;
  int depth = 1;
  int first = 0, count = 1, pixels = 1;  ///< of the row's `pixels`
  std::int64_t a_pixel = 0, a_step = 0;  ///< elements from pixel to pixel, from block to block
  std::int64_t b_at = 0, b_tap = 0;      ///< behind every operand's b; from tap to tap
  float* sums = nullptr;                 ///< [count][rows][32]
};
constexpr int kRowPixels = 4;  ///< at a time

constexpr int kStripTiles = 4;
constexpr int kTallKernel = 3,
              kLowKernel = 2;  ///< rows of taps of strips whose tiles lie one below the other

/// How the tiles of a strip lie. But for `flat` ones they are rows of results one below the other, by kernels
/// three taps high, or two: a tile of pixels is loaded once for all rows of results that it touches, and rows
/// outside the image are left out.
enum class StripForm {
  flat,     ///< anywhere
  tall,     ///< result t sums rows t + tap
  strided,  ///< ... 2 t + tap: windows move by two
  low,      ///< as tall ones, of kernels two taps high
};

/// What a batch norm wants of the pixels that strips write (kernels.h, Epilogue): taken beside the products,
/// while the vector units have little else to do. Float sums of a strip are added to doubles.
struct StripStats {
  double* sums = nullptr;   ///< [channels] of x - mean; of the gradient d
  double* other = nullptr;  ///< [channels] of (x - mean)^2; of d * (src - mean)
  const float* mean = nullptr;
  bool is_gradient = false;
  // A gradient's: bf16 arrays that lie as the results do, which begin at `product`.
  const std::uint16_t* product = nullptr;
  const std::uint16_t* src = nullptr;
  const std::uint16_t* before = nullptr;          ///< an earlier term, which the product is added to; or null
  const std::uint16_t* dst = nullptr;             ///< decides the mask where it is set
  const float *scale = nullptr, *bias = nullptr;  ///< ... or (src - mean) * scale + bias where these are set
  /// Receives d: the product's own place where it is the only term; that of another one is not written then.
  std::uint16_t* masked = nullptr;
};

/// What a strip leaves to the next one: sums of a block of channels that are yet to be written.
struct StripRest {
  const float* sums = nullptr;                   ///< [pixels][32]
  std::array<std::uint16_t*, kStripTiles> to{};  ///< the first of each 16 pixels
  const std::int64_t* to_steps = nullptr;
  const float* bias = nullptr;
  int pixels = 0;   ///< so many; a multiple of 16
  int turn = 0;     ///< which of two blocks of sums is free
  int channel = 0;  ///< the first
  const StripStats* taken = nullptr;
};

/// Memory that is wanted next, from `at` on: `lines` of it are fetched beside each tile of weights. The
/// second-level cache has them then, while products need little of the memory's time.
struct StripPrefetch {
  const std::byte* at = nullptr;
  int lines = 0;  ///< 0: nothing
  bool is_written = false;
};
constexpr int kStripAheads = 4;

/// Pixels of whole blocks of channels, one after the other in memory, that go to `to` + columns[pixel], their
/// blocks `block_step` elements apart.
struct Scatter {
  const std::uint16_t* from = nullptr;
  std::uint16_t* to = nullptr;
  const std::int64_t* columns = nullptr;
  int pixels = 0, blocks = 1;
  std::int64_t block_step = 0;
};

/// Up to four tiles of 16 neighbouring pixels, of one image or of several, by all weights:
/// to[tile][pixel][channel] = the sum over taps and channels of a(pixel + tap) * b(tap), bias added, rounded
/// to bf16. Pixels are the rows of the tiles, read where they lie. While one block of channels is multiplied
/// the sums of the one before are written: a tile of the weights serves four products, and nothing waits.
struct Strip {
  int tiles = kStripTiles;
  StripForm form = StripForm::flat;
  /// [kernel height][kStripTiles]: under the first tap of each. Not flat: rows of pixels, as many as four
  /// results touch; null outside the image and, strided or low, where no result of `tiles` touches them.
  const std::uint16_t* const* rows = nullptr;
  std::int64_t a_pixel = 0;  ///< elements from one row of a tile to the next
  std::int64_t a_tap = 0;    ///< ... from one tap of a row of taps to the next
  int kernel_height = 1, kernel_width = 1;
  int depth = 1;                        ///< blocks of 32 channels
  const std::uint16_t* b = nullptr;     ///< the first block's weights of the first tap
  std::int64_t b_tap = 0, b_block = 0;  ///< elements from tap to tap, from block of channels out to the next
  int blocks = 1;                       ///< of channels out
  // Loops over kernel_width and depth may change places: elements from one of `depth` to the next (of a,
  // strided, by turns), and, but for flat strips, from a row of taps to the next.
  std::array<std::int64_t, 2> a_depth = {kBlock, kBlock};
  std::int64_t b_depth = kBlockElements, b_row = 0;
  const float* bias = nullptr;                   ///< or null
  float* sums = nullptr;                         ///< [2][64 pixels][32], for this and the rest
  std::array<std::uint16_t*, kStripTiles> to{};  ///< the first pixel of each tile, channel 0
  /// [16]: elements from the place of a tile's row to the next row's; there until they are written
  const std::int64_t* to_steps = nullptr;
  StripRest* rest = nullptr;
  const StripStats* taken = nullptr;                ///< or null
  std::array<StripPrefetch, kStripAheads> ahead{};  ///< those without lines last
};
/// Floats.
constexpr int kStripSums = 2 * kStripTiles * kHalf * kBlock;

constexpr int kPairTaps = 3;
/// Floats that one visit sums: [tap][16 channels out][2 halves of them][16 channels in].
constexpr int kPairSums = kPairTaps * kHalf * kBlock;

/// What one visit of sums leaves to the next one: sums that are yet to be added.
struct PairRest {
  const float* sums = nullptr;  ///< [kPairSums]
  float* to = nullptr;          ///< or null: there is nothing left
  bool adds = false;            ///< otherwise `to` is overwritten
  int turn = 0;                 ///< which of two blocks of sums is free
};

/// Three neighbouring taps by 32 channels out and 16 channels in, where pixels and pairs of samples are the
/// inner length: sums (+)= the sum over `rows`, and over their tiles, of a * b(tap). A tile of b begins at
/// any line, for another tap at another one. While one visit is multiplied the sums of the one before are
/// added to where they belong.
struct PairVisit {
  const Operand* rows = nullptr;
  int count = 0;                    ///< may be 0
  int tiles = 1;                    ///< of a row, one after the other
  std::int64_t a_at = 0, b_at = 0;  ///< elements behind every row's pointers
  std::int64_t a_half = 0;          ///< elements from the one half of the channels out to the other
  std::array<std::int64_t, kPairTaps> b_tap{};  ///< elements behind b
  float* sums = nullptr;                        ///< [kPairSums]
  bool adds = false;
  float* near_sums = nullptr;  ///< [2][kPairSums], for this and the rest
  PairRest* rest = nullptr;
};

/// `pixels` of one row of an image, of up to 32 samples.
struct PixelRow {
  const std::uint16_t* values = nullptr;
  std::int64_t sample_stride = 0, pixel_stride = 0;
  int samples = 0, pixels = 0, channels = 0;
};

/// A block of sums, rounded into one pixel of up to 32 samples.
struct Pixel {
  const float* sums = nullptr;
  const float* bias = nullptr;  ///< [channels], or null
  void* values = nullptr;
  std::int64_t sample_stride = 0;
  int samples = 0, channels = 0;  ///< at most 32 each
};

constexpr int kMostTaps = 25;  ///< of weights that are packed by whole blocks: 5x5

/// The weights between a block of output channels and one of input channels, both whole: rows [32 output
/// channels] of [32 input channels][taps], `stride` floats apart. They become one block of b for each tap,
/// `tap_step` elements apart.
struct WeightBlock {
  const float* weights = nullptr;
  std::int64_t stride = 0;
  int taps = 1;                     ///< at most kMostTaps
  bool outs_are_rows = false;       ///< of b: d_src sums over output channels, forward over input channels
  std::uint16_t* packed = nullptr;  ///< at a multiple of 64 bytes
  std::int64_t tap_step = 0;
  /// Rows of the same shape and stride, which are fetched meanwhile: never null, but nothing is read of them.
  const float* next = nullptr;
};

struct TileKernels {
  Unit unit = Unit::emulated_amx;
  /// Prepares the calling thread's unit for multiply(), and gives it free again.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
  void (*multiply)(const TileMultiply& args) = nullptr;
  // Null where the unit has no use for them.
  void (*multiply_neighbours)(const Neighbours& args) = nullptr;
  void (*multiply_row)(const RowOfPixels& args) = nullptr;
  void (*multiply_strip)(const Strip& args) = nullptr;
  void (*scatter)(const Scatter& args) = nullptr;
  /// Writes what the last strip has left: before anybody reads the results, and before end of the work.
  void (*finish_strip)(StripRest& rest) = nullptr;
  void (*visit_pairs)(const PairVisit& args) = nullptr;
  /// Adds what the last visit has left: before anybody reads the sums.
  void (*finish_pairs)(PairRest& rest) = nullptr;
  /// -> lines of b for PairVisit, [half a block of channels][pixel][pair of samples][16 channels][2], with
  /// `half_step` elements from one half to the next. Even channels of a block are its first half. Channels
  /// are whole blocks.
  void (*pair_lines)(const PixelRow& row, int pairs, std::uint16_t* b, std::int64_t half_step) = nullptr;
  /// -> a: the same lines, turned 16 at a time: [half][16 lines][16 channels][16 lines][2]. Lines are a
  /// multiple of 16.
  void (*pair_squares)(const PixelRow& row, int pairs, std::uint16_t* a, std::int64_t half_step) = nullptr;
  /// -> a, samples as its rows: [pixel][block of channels][rows][32 channels]
  void (*gather)(const PixelRow& row, int rows, std::uint16_t* a) = nullptr;
  /// -> a, channels as its rows: [block of channels][pixel][32 channels][32 samples], with `block_step`
  /// elements from one block of channels to the next
  void (*transpose)(const PixelRow& row, std::uint16_t* a, std::int64_t block_step) = nullptr;
  /// -> b, pairs of samples: [block of channels][pixel][2][16 pairs][16 channels][2]
  void (*interleave)(const PixelRow& row, std::uint16_t* b, std::int64_t block_step) = nullptr;
  void (*pack_weights)(const WeightBlock& block) = nullptr;
  void (*write_f32)(const Pixel& pixel) = nullptr;
  void (*write_bf16)(const Pixel& pixel) = nullptr;
  /// sums [channels] += the row's values
  void (*add_values)(const PixelRow& row, float* sums) = nullptr;
};

/// Between begin() and end() of the calling thread.
class UnitSession {
 public:
  explicit UnitSession(const TileKernels& kernels) : kernels_(kernels) { kernels_.begin(); }
  ~UnitSession() { kernels_.end(); }
  UnitSession(const UnitSession&) = delete;
  UnitSession& operator=(const UnitSession&) = delete;

 private:
  const TileKernels& kernels_;
};

/// The table of `unit`; of one that this machine lacks it may only be looked at.
[[nodiscard]] const TileKernels& kernels_of(Unit unit);

}  // namespace paceline::engine::cpu::tiles
