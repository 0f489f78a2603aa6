// Convolutions and dense layers as products of bf16 tiles (kernels/bf16/tiles.h): forward and d_src here,
// d_weight in wgrad_batch_k.cc and wgrad_pixel_k.cc.
//
// The samples of a batch are the rows of the tiles: 32 samples of one pixel are the rows of a block of `a`,
// their channels its inner dimension. A pixel of the result is then one sum of products over the taps inside
// the image and the blocks of channels. Taps outside the image cost nothing, strides cause no wasted work in
// d_src, and small images fill the tiles as well as large ones (docs/decisions/tiles.md). Values are stored
// [sample][pixel][channel]; rows of the image are packed band by band into a ring buffer that stays in the
// second-level cache.
//
//   a [ring row][pixel][block of channels in][32 samples][32]
//   packed weights [block of channels out][tap][block of channels in][2][16 pairs][16][2]
//
// Images with long rows are computed by pixel_rows.cc instead, and images with short rows or strides, if
// their weights fit into a near cache, by packed_images.cc.
//
// Sums are rounded once, when they are written. The sums for an epilogue (a following batch norm) are taken
// from each band while it is in the cache.

#include <algorithm>
#include <span>
#include <vector>

#include "engine/cpu/conv/bf16/algorithms.h"
#include "engine/cpu/conv/bf16/weight_reader.h"
#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/kernels/bf16/tiles.h"
#include "engine/cpu/kernels/kernels.h"

namespace paceline::engine::cpu {
namespace {

using namespace tiles;

/// Of packed rows, which share 2 MB of cache with weights and results.
constexpr std::int64_t kBandBytes = 768 << 10;
constexpr std::int64_t kGroupBytes = 320 << 10;  ///< of packed weights
// How a single chunk is divided into parts: at least so many rows, since each part also packs the rows around
// it; at least so many blocks of output channels, since each part packs the whole image.
constexpr int kPartRows = 14, kPartBlocks = 4;

class BatchRowsKernel final : public Bf16WeightReader {
 public:
  BatchRowsKernel(const ConvShape& shape, Direction direction, const TileKernels& kernels)
      : Bf16WeightReader(shape, direction, kernels),
        is_by_row_(kernels.multiply_row != nullptr && window_.kernel_width == 3 && window_.stride == 1 &&
                   window_.padding == 1 && window_.to.width > 1),
        type_(is_forward_ ? shape.dst_type : shape.type),
        sums_(type_ == Storage::f32 ? kernels_for(isas_here().back()).f32
                                    : kernels_for(isas_here().back()).bf16),
        band_(window_.band(2 * row_elements(rows_of(shape.samples)), 0, kBandBytes)),
        row_parts_(shape.is_alone ? std::clamp(window_.to.height / kPartRows, 1, kMostShares) : 1),
        block_parts_(shape.is_alone ? std::clamp(out_blocks_ / kPartBlocks, 1, kMostShares) : 1),
        ring_(window_.ring(band_, row_parts_)),
        group_(static_cast<int>(
            std::clamp<std::int64_t>(kGroupBytes / (2 * out_block_elements()), 1, out_blocks_))),
        rows_under_(under(window_.to.height, window_.kernel_height, window_.from.height)),
        columns_under_(under(window_.to.width, window_.kernel_width, window_.from.width)) {}

  [[nodiscard]] std::int64_t scratchpad_bytes() const override { return operands_at() + operand_bytes(); }

  [[nodiscard]] int parts() const override { return row_parts_ * block_parts_; }
  void run(const Operands& o, int part) const override {
    const UnitSession session(kernels_);
    const Share share{.rows = range_of(window_.to.height, part / block_parts_, row_parts_),
                      .blocks = range_of(out_blocks_, part % block_parts_, block_parts_)};
    for (int first = 0; first < samples_; first += kBlock)
      compute(o, share, first, std::min(kBlock, samples_ - first));
    if (o.epilogue != nullptr) make_plain(*o.epilogue, samples_ * pixels(), window_.to.channels);
  }

  [[nodiscard]] std::string name() const override {
    return "own tile products " + std::string(kernels_.name);
  }

 private:
  [[nodiscard]] std::int64_t out_block_elements() const { return window_.taps() * tap_elements(); }
  /// Elements of a pixel of a packed row, for this many samples.
  [[nodiscard]] std::int64_t pixel_elements(int rows) const {
    return std::int64_t{1} * in_blocks_ * rows * kBlock;
  }
  [[nodiscard]] std::int64_t row_elements(int rows) const {
    return window_.from.width * pixel_elements(rows);
  }

  // The scratchpad: [ring | a block of sums for each pixel at a time | operands].
  [[nodiscard]] std::int64_t sums_at() const { return 2 * ring_ * row_elements(rows_of(samples_)); }
  [[nodiscard]] std::int64_t operands_at() const {
    return sums_at() + std::int64_t{4} * at_a_time() * kBlockElements;
  }
  [[nodiscard]] std::int64_t operand_bytes() const {
    return whole_lines(static_cast<std::int64_t>(sizeof(Operand)) * window_.taps());
  }

  /// The rows and blocks of channels of `to` that a part computes.
  struct Share {
    Range rows, blocks;
  };

  /// Computes the share's pixels of samples [first, first + samples), at most one block of samples.
  void compute(const Operands& o, const Share& share, int first, int samples) const {
    const int rows = rows_of(samples);
    auto* ring = static_cast<std::uint16_t*>(o.scratchpad);
    const std::uint16_t* image = from(o) + first * window_.sample_stride();
    PixelRow row{.sample_stride = window_.sample_stride(),
                 .pixel_stride = window_.pixel_stride(),
                 .samples = samples,
                 .pixels = window_.from.width,
                 .channels = window_.from.channels};
    for_each_band(window_, share.rows, band_, first, samples, [&](const Band& band, Range packed) {
      for (std::int64_t from_row = packed.begin; from_row < packed.end; ++from_row) {
        row.values = image + from_row * window_.row_stride();
        kernels_.gather(row, rows, ring + from_row % ring_ * row_elements(rows));
      }
      multiply_band(o, band, share.blocks);
      if (o.epilogue != nullptr) take_band(o, band);
    });
  }

  void multiply_band(const Operands& o, const Band& band, Range wanted) const {
    const int rows = rows_of(band.samples), width = window_.to.width;
    auto* operands = o.scratch_at<Operand>(operands_at());
    for (std::int64_t block = wanted.begin; block < wanted.end; block += group_) {
      const Range blocks{.begin = block, .end = std::min(block + group_, wanted.end)};
      for (auto y = static_cast<int>(band.rows.begin); y < band.rows.end; ++y) {
        const int taps = is_by_row_ ? find_rows(o, rows, y, operands) : 0;
        for (int x = 0; x < width; x += at_a_time()) {
          const Pixels here{.y = y, .x = x, .count = std::min(at_a_time(), width - x), .blocks = blocks};
          const int count = is_by_row_ ? taps : find_operands(o, rows, y, x, operands);
          compute_pixels(o, band.first, band.samples, here, {operands, static_cast<std::size_t>(count)});
        }
      }
    }
  }

  /// Neighbouring pixels of a row, and the blocks of channels to compute for them.
  struct Pixels {
    int y = 0, x = 0, count = 1;
    Range blocks;
  };
  [[nodiscard]] int at_a_time() const { return is_by_row_ ? kRowPixels : 1; }

  /// Computes and writes these pixels.
  void compute_pixels(const Operands& o, int first, int samples, const Pixels& here,
                      std::span<const Operand> operands) const {
    const int channels = window_.to.channels, rows = rows_of(samples);
    auto* sums = o.scratch_at<float>(sums_at());
    const auto write = type_ == Storage::f32 ? kernels_.write_f32 : kernels_.write_bf16;
    const std::int64_t at =
        (first * pixels() + std::int64_t{1} * here.y * window_.to.width + here.x) * channels;
    for (auto block = static_cast<int>(here.blocks.begin); block < here.blocks.end; ++block) {
      multiply(here, block, rows, operands, sums);
      const int channel = block * kBlock;
      for (int pixel = 0; pixel < here.count; ++pixel)
        write({.sums = sums + std::int64_t{1} * pixel * rows * kBlock,
               .bias = has_bias_ ? o.bias + channel : nullptr,
               .values = to(o) + (at + pixel * channels + channel) * bytes_of(type_),
               .sample_stride = window_.to.elements(),
               .samples = samples,
               .channels = std::min(kBlock, channels - channel)});
    }
  }

  void multiply(const Pixels& here, int block, int rows, std::span<const Operand> operands,
                float* sums) const {
    const auto count = static_cast<int>(operands.size());
    const std::int64_t step = std::int64_t{1} * rows * kBlock, b_at = block * out_block_elements();
    if (!is_by_row_)
      return kernels_.multiply({.rows = rows,
                                .operands = operands.data(),
                                .count = count,
                                .depth = in_blocks_,
                                .b_at = b_at,
                                .a_step = step,
                                .sums = sums});
    kernels_.multiply_row({.rows = rows,
                           .operands = operands.data(),
                           .operand_count = count,
                           .depth = in_blocks_,
                           .first = here.x,
                           .count = here.count,
                           .pixels = window_.to.width,
                           .a_pixel = pixel_elements(rows),
                           .a_step = step,
                           .b_at = b_at,
                           // In a rotated kernel the first tap is the last in memory.
                           .b_tap = (window_.is_rotated ? -1 : 1) * tap_elements(),
                           .sums = sums});
  }

  /// Finds the rows under the taps of row y, with the weights of their first tap; returns their number.
  int find_rows(const Operands& o, int rows, int y, Operand* operands) const {
    const auto* ring = static_cast<const std::uint16_t*>(o.scratchpad);
    const auto* weights = static_cast<const std::uint16_t*>(o.packed);
    int count = 0;
    for (int i = 0; i < window_.kernel_height; ++i) {
      const int row = rows_under_[static_cast<std::size_t>(y * window_.kernel_height + i)];
      const int tap = i * window_.kernel_width + (window_.is_rotated ? window_.kernel_width - 1 : 0);
      if (row >= 0)
        operands[count++] = {.a = ring + row % ring_ * row_elements(rows),
                             .b = weights + tap * tap_elements()};
    }
    return count;
  }

  /// Finds the taps of the window at (y, x) that lie inside the image, with the weights of the first block;
  /// returns their number.
  int find_operands(const Operands& o, int rows, int y, int x, Operand* operands) const {
    const auto* ring = static_cast<const std::uint16_t*>(o.scratchpad);
    const auto* weights = static_cast<const std::uint16_t*>(o.packed);
    const int* taps_of_row = rows_under_.data() + std::ptrdiff_t{1} * y * window_.kernel_height;
    const int* taps_of_column = columns_under_.data() + std::ptrdiff_t{1} * x * window_.kernel_width;
    const std::int64_t of_row = row_elements(rows), of_pixel = pixel_elements(rows);
    const std::int64_t of_tap = tap_elements();
    int count = 0;
    for (int i = 0; i < window_.kernel_height; ++i, weights += window_.kernel_width * of_tap) {
      if (taps_of_row[i] < 0) continue;
      const std::uint16_t* row = ring + taps_of_row[i] % ring_ * of_row;
      for (int j = 0; j < window_.kernel_width; ++j)
        if (taps_of_column[j] >= 0)
          operands[count++] = {.a = row + taps_of_column[j] * of_pixel, .b = weights + j * of_tap};
    }
    return count;
  }

  /// For each of `count` windows the positions under its taps in an image of `size`; -1 outside.
  [[nodiscard]] std::vector<int> under(int count, int taps, int size) const {
    std::vector<int> found;
    for (int at = 0; at < count; ++at)
      for (int tap = 0; tap < taps; ++tap) found.push_back(window_.at(at, tap, size));
    return found;
  }

  /// Takes the sums over the rows of a band that was just written.
  void take_band(const Operands& o, const Band& band) const {
    const std::int64_t rows = band.rows.size() * window_.to.width;
    const int channels = window_.to.channels;
    for (int n = 0; n < band.samples; ++n) {
      const std::int64_t row = (band.first + n) * pixels() + band.rows.begin * window_.to.width;
      if (row == 0) begin_sums(*o.epilogue, sums_, type_, to(o), rows, channels);
      add_sums(*o.epilogue, sums_, type_, to(o), row, rows, channels);
    }
  }

  const bool is_by_row_;      ///< computes four pixels of a row at a time
  const Storage type_;        ///< of what is written
  const TypedKernels& sums_;  ///< for the epilogue
  const int band_;            ///< rows
  const int row_parts_, block_parts_;
  const int ring_;                                     ///< rows, for the bands of any part
  const int group_;                                    ///< blocks of output channels per pass over the pixels
  const std::vector<int> rows_under_, columns_under_;  ///< [row or column of `to`][tap]: of `from`, or -1
};

}  // namespace

extern constexpr Bf16Algorithm kBatchRows = {
    .name = "batch-rows",
    .prefers = fills_tiles,
    .preference =
        "is preferred from 64 channels and 16 samples up, for small images or backward data with a stride",
    .chunk = whole_block_chunk,
    .make_reader = make_reader_of<BatchRowsKernel>};

}  // namespace paceline::engine::cpu
