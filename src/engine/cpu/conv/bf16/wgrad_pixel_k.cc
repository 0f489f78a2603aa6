// d_weight of 3x3 convolutions by tiles whose inner dimension is pixels: 16 lines, each of a pair of samples.
// A line holds 16 channels of one pixel of both samples. So src is read sequentially, one image beside
// another, while wgrad_batch_k.cc gathers a pixel from 32 samples that are far apart. The next tap is the
// next line, and a tile may begin at any line: all loads are aligned and no pair is split.
//
// If the row length is not a multiple of 16, several pairs of samples are put side by side in each pixel: two
// for 8 pixels or 24, four for 4 or 12. They are a *group* of samples. With a stride s > 1, every s-th column
// of src is stored contiguously.
//
// Over a band: some rows of a group, or whole images of some groups.
//   b [half block of C][group][ring row][every stride-th column, padded][pair][16 channels][2]     src
//   a [half block of K][group][row][16 lines: pixels and pairs][16 channels][16 lines][2]           d_dst
//   sums [block of K][half block of C][kernel row][kPairSums]                            the packed gradient
//
// A half block is the even or the odd channels of a block; so samples are paired without a shuffle.

#include <algorithm>
#include <array>
#include <numeric>

#include "engine/cpu/conv/bf16/algorithms.h"
#include "engine/cpu/conv/bf16/window.h"
#include "engine/cpu/conv/transpose.h"
#include "engine/program.h"

namespace paceline::engine::cpu {
namespace {

using namespace tiles;

constexpr int kTileElements = kHalf * kBlock;
constexpr std::int64_t kBandBytes = 900 << 10;  ///< of both operands, which share 2 MB of cache with the sums
constexpr int kVisitTiles = 32;                 ///< tiles of pixels that make a visit to the sums worthwhile
/// With stride 1 and fewer pixels wgrad_batch_k.cc is faster.
constexpr int kLeastPixels = 64;

int pairs_for(int width) { return kHalf / std::gcd(kHalf, width); }

class WgradPixelKKernel final : public WgradKernel {
 public:
  WgradPixelKKernel(const ConvShape& shape, const TileKernels& kernels)
      : s_(shape),
        kernels_(kernels),
        window_(tile_window(shape, Direction::backward_weights)),
        in_halves_(2 * blocks_of(shape.src.channels)),
        out_blocks_(blocks_of(shape.dst.channels)),
        part_blocks_(shape.is_alone ? (out_blocks_ + shape.threads - 1) / shape.threads : out_blocks_),
        pairs_(pairs_for(shape.dst.width)),
        tiles_(shape.dst.width * pairs_ / kHalf),
        columns_((shape.dst.width - 1) * shape.stride + shape.kernel),
        band_(std::min(window_.band(std::int64_t{2} * in_halves_ * src_row_elements(),
                                    std::int64_t{2} * 2 * part_blocks_ * dst_row_elements(), kBandBytes),
                       std::max(1, kVisitTiles / tiles_))),
        ring_(window_.ring(band_)),
        groups_(band_ < window_.to.height
                    ? 1
                    : static_cast<int>(std::clamp<std::int64_t>(
                          std::min<std::int64_t>(kBandBytes / group_bytes(), kVisitTiles / (tiles_ * band_)),
                          1, groups_of(shape.samples)))) {}

  [[nodiscard]] std::int64_t packed_bytes() const override {
    return std::int64_t{4} * out_blocks_ * in_halves_ * s_.kernel * kPairSums;
  }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override {
    return rows_at() + whole_lines(static_cast<std::int64_t>(sizeof(Operand)) * s_.kernel * groups_ * band_);
  }

  void unpack(base::ThreadPool& pool, const float* packed, float* d_weights) const override {
    const std::int64_t row = std::int64_t{1} * s_.src.channels * window_.taps();
    pool.run(s_.dst.channels, [&](int k, int) {
      unpack_tile(packed, {.outs = {.begin = k, .end = k + 1}, .ins = {.begin = 0, .end = s_.src.channels}},
                  d_weights + k * row);
    });
  }
  [[nodiscard]] std::string tile_order() const override { return "pairs of samples"; }
  void unpack_tile(const float* packed, const WeightTile& tile, float* d_rows) const override {
    // 16 pairs of channels at a time, each with a row of 18 sums, which are in 18 lines.
    constexpr int kTaps = 3 * kPairTaps, kSums = 2 * kTaps;
    const int turned = has(Isa::avx512) ? kTransposeTile : 0;  // of them
    for (std::int64_t k = tile.outs.begin; k < tile.outs.end; ++k)
      for (std::int64_t c = tile.ins.begin; c < tile.ins.end; c += kBlock, d_rows += kHalf * kSums) {
        const float* from[kSums];
        for (int sum = 0; sum < kSums; ++sum)
          from[sum] = packed + sums_at(k / kBlock, c / kHalf + sum / kTaps, sum % kTaps / kPairTaps) +
                      sum % kPairTaps * kTileElements + k % kBlock / 2 * kBlock + k % 2 * kHalf;
        float* to[kHalf];
        for (int pair = 0; pair < kHalf; ++pair) to[pair] = d_rows + pair * kSums;
        if (turned > 0) transpose_near_tile(from, to);
        for (int pair = 0; pair < kHalf; ++pair)
          for (int sum = turned; sum < kSums; ++sum) to[pair][sum] = from[sum][pair];
      }
  }

  [[nodiscard]] int parts() const override { return (out_blocks_ + part_blocks_ - 1) / part_blocks_; }

  void run(const Operands& o, int part) const override {
    const UnitSession session(kernels_);
    const Range blocks{.begin = part * part_blocks_, .end = std::min(out_blocks_, (part + 1) * part_blocks_)};
    if (s_.bias) std::fill_n(o.d_bias + blocks.begin * kBlock, blocks.size() * kBlock, 0.0f);
    clear_edges(o);
    PairRest rest;
    bool adds = false;
    const int at_a_time = groups_ * 2 * pairs_;
    for (int first = 0; first < s_.samples; first += at_a_time) {
      for_each_band(window_, {.begin = 0, .end = window_.to.height}, band_, first,
                    std::min(at_a_time, s_.samples - first), [&](const Band& band, Range packed) {
                      pack_dst(o, blocks, band);
                      pack_src(o, band, packed);
                      multiply(o, blocks, band, adds, rest);
                      adds = true;
                    });
    }
    kernels_.finish_pairs(rest);
  }

  [[nodiscard]] std::string name() const override {
    return "own tile products " + std::string(kernels_.name) + ", pairs of samples";
  }

 private:
  [[nodiscard]] int groups_of(int samples) const { return (samples + 2 * pairs_ - 1) / (2 * pairs_); }
  /// Of half a block of channels, a row of a group; and every stride-th column of it.
  [[nodiscard]] std::int64_t phase_elements() const {
    return std::int64_t{1} * ((columns_ + s_.stride - 1) / s_.stride) * pairs_ * kBlock;
  }
  [[nodiscard]] std::int64_t src_row_elements() const { return s_.stride * phase_elements(); }
  [[nodiscard]] std::int64_t dst_row_elements() const { return std::int64_t{1} * tiles_ * kTileElements; }
  [[nodiscard]] std::int64_t group_bytes() const {
    return 2 * (in_halves_ * ring_ * src_row_elements() + 2 * part_blocks_ * band_ * dst_row_elements());
  }
  [[nodiscard]] std::int64_t src_half() const { return groups_ * ring_ * src_row_elements(); }
  [[nodiscard]] std::int64_t dst_half() const { return groups_ * band_ * dst_row_elements(); }
  [[nodiscard]] std::int64_t sums_at(std::int64_t out_block, std::int64_t in_half, int i) const {
    return ((out_block * in_halves_ + in_half) * s_.kernel + i) * kPairSums;
  }

  // The scratchpad: [src | d_dst | sums of two visits | rows under each row of taps].
  [[nodiscard]] std::int64_t dst_at() const { return 2 * in_halves_ * src_half(); }
  [[nodiscard]] std::int64_t near_at() const { return dst_at() + 2 * 2 * part_blocks_ * dst_half(); }
  [[nodiscard]] std::int64_t rows_at() const { return near_at() + 4 * 2 * kPairSums; }
  [[nodiscard]] std::uint16_t* src_slot(const Operands& o, int group, std::int64_t row) const {
    return o.scratch_at<std::uint16_t>(0) + (group * ring_ + row % ring_) * src_row_elements();
  }
  [[nodiscard]] std::uint16_t* dst_slot(const Operands& o, int group, std::int64_t row) const {
    return o.scratch_at<std::uint16_t>(dst_at()) + (group * band_ + row) * dst_row_elements();
  }

  /// From the image's columns `phase`, `phase` + stride ... counted from the padding's first, to lines.
  struct Columns {
    int first = 0;   ///< of the image
    int before = 0;  ///< of the padding
    int count = 0;
  };
  [[nodiscard]] Columns columns_of(int phase) const {
    Columns found{.before = std::max(0, (s_.padding - phase + s_.stride - 1) / s_.stride)};
    found.first = phase + found.before * s_.stride - s_.padding;
    const int end = std::min(s_.src.width, columns_ - s_.padding);
    found.count = std::max(0, (end - found.first + s_.stride - 1) / s_.stride);
    return found;
  }

  /// Writes zeros where src has no columns; once is enough.
  void clear_edges(const Operands& o) const {
    auto* row = o.scratch_at<std::uint16_t>(0);
    for (std::int64_t i = 0; i < std::int64_t{1} * in_halves_ * groups_ * ring_; ++i)
      for (int phase = 0; phase < s_.stride; ++phase, row += phase_elements()) {
        const Columns here = columns_of(phase);
        const std::int64_t of_column = std::int64_t{1} * pairs_ * kBlock;
        std::fill_n(row, here.before * of_column, std::uint16_t{0});
        std::fill(row + (here.before + here.count) * of_column, row + phase_elements(), std::uint16_t{0});
      }
  }

  void pack_src(const Operands& o, const Band& band, Range rows) const {
    const auto* src = static_cast<const std::uint16_t*>(o.src);
    for (int group = 0; group < groups_of(band.samples); ++group) {
      const int first = group * 2 * pairs_;
      for (std::int64_t row = rows.begin; row < rows.end; ++row)
        for (int phase = 0; phase < s_.stride; ++phase) {
          const Columns here = columns_of(phase);
          kernels_.pair_lines({.values = src + (band.first + first) * s_.src.elements() +
                                         (row * s_.src.width + here.first) * s_.src.channels,
                               .sample_stride = s_.src.elements(),
                               .pixel_stride = std::int64_t{1} * s_.stride * s_.src.channels,
                               .samples = std::min(2 * pairs_, band.samples - first),
                               .pixels = here.count,
                               .channels = s_.src.channels},
                              pairs_,
                              src_slot(o, group, row) + phase * phase_elements() +
                                  std::int64_t{1} * here.before * pairs_ * kBlock,
                              src_half());
        }
    }
  }

  void pack_dst(const Operands& o, Range blocks, const Band& band) const {
    const auto* d_dst = static_cast<const std::uint16_t*>(o.d_dst) + blocks.begin * kBlock;
    for (int group = 0; group < groups_of(band.samples); ++group) {
      const int first = group * 2 * pairs_;
      for (std::int64_t y = band.rows.begin; y < band.rows.end; ++y) {
        const PixelRow row{
            .values = d_dst + (band.first + first) * s_.dst.elements() + y * s_.dst.width * s_.dst.channels,
            .sample_stride = s_.dst.elements(),
            .pixel_stride = s_.dst.channels,
            .samples = std::min(2 * pairs_, band.samples - first),
            .pixels = s_.dst.width,
            .channels = static_cast<int>(blocks.size()) * kBlock};
        kernels_.pair_squares(row, pairs_, dst_slot(o, group, y - band.rows.begin), dst_half());
        if (s_.bias) kernels_.add_values(row, o.d_bias + blocks.begin * kBlock);
      }
    }
  }

  void multiply(const Operands& o, Range blocks, const Band& band, bool adds, PairRest& rest) const {
    auto* rows = o.scratch_at<Operand>(rows_at());
    const int stride = groups_ * band_;
    std::array<int, kPairTaps> counts{};
    for (int i = 0; i < s_.kernel; ++i)
      counts[static_cast<std::size_t>(i)] = find_rows(o, band, i, rows + i * stride);
    PairVisit visit{.tiles = tiles_,
                    .a_half = dst_half(),
                    .adds = adds,
                    .near_sums = o.scratch_at<float>(near_at()),
                    .rest = &rest};
    for (int j = 0; j < kPairTaps; ++j)
      visit.b_tap[static_cast<std::size_t>(j)] =
          j % s_.stride * phase_elements() + std::int64_t{1} * (j / s_.stride) * pairs_ * kBlock;
    for (auto out = blocks.begin; out < blocks.end; ++out)
      for (int in = 0; in < in_halves_; ++in)
        for (int i = 0; i < s_.kernel; ++i) {
          visit.count = counts[static_cast<std::size_t>(i)];
          if (visit.count == 0 && adds) continue;
          visit.rows = rows + i * stride;
          visit.a_at = 2 * (out - blocks.begin) * dst_half();
          visit.b_at = in * src_half();
          visit.sums = o.d_weight + sums_at(out, in, i);
          kernels_.visit_pairs(visit);
        }
  }

  /// Finds the rows of the band for which row `i` of the taps lies inside the image; returns their number.
  int find_rows(const Operands& o, const Band& band, int i, Operand* rows) const {
    int count = 0;
    for (int group = 0; group < groups_of(band.samples); ++group)
      for (auto y = static_cast<int>(band.rows.begin); y < band.rows.end; ++y) {
        const int row = window_.at(y, i, window_.from.height);
        if (row >= 0)
          rows[count++] = {.a = dst_slot(o, group, y - band.rows.begin), .b = src_slot(o, group, row)};
      }
    return count;
  }

  const ConvShape s_;
  const TileKernels& kernels_;
  const TileWindow window_;
  const int in_halves_, out_blocks_;  ///< of channels
  const int part_blocks_;             ///< of the output channels
  const int pairs_;                   ///< of a group of samples
  const int tiles_;                   ///< of a row of a group
  const int columns_;                 ///< of src, with its edges
  const int band_, ring_;             ///< rows
  const int groups_;                  ///< in a band
};

std::optional<std::string> limit(const ConvShape& s, Direction, const TileKernels& kernels) {
  if (kernels.visit_pairs == nullptr) return "is for AMX";
  if (s.is_dense || s.kernel != kPairTaps || s.padding >= s.kernel) return "is for 3x3 convolutions";
  if (s.src.channels % kBlock != 0 || s.dst.channels % kBlock != 0) return "needs multiples of 32 channels";
  if (s.stride == 1 && s.dst_pixels() < kLeastPixels) return "needs more pixels, or a stride";
  return std::nullopt;
}

}  // namespace

extern constexpr Bf16Algorithm kWgradPixelK = {
    .name = "wgrad-pixel-k",
    .limit = limit,
    .prefers = fills_tiles,
    .preference = "is preferred from 64 channels and 16 samples up",
    .chunk = whole_block_chunk,
    .make_wgrad = make_wgrad_of<WgradPixelKKernel>};

}  // namespace paceline::engine::cpu
