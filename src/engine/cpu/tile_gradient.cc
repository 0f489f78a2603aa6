// d_weight by tiles: for every tap, the sum over pixels of src (transposed) times d_dst, with the batch as
// the inner length of the tiles. The batch is where no shift between the two operands can ever break a pair,
// and no image is too small.
//
// Over a band of rows, packed like forward's:
//   a [ring row][pixel][block of C][32 channels][32 samples]        src
//   b [row][pixel][block of K'][2][16 pairs of samples][16][2]      d_dst, the K' channels of a part
//   sums [tap][block of C][block of K][32][32]                      the packed gradient
//
// Parts are ranges of output channels: each packs src anew, so they are wide.

#include "engine/cpu/tile_gradient.h"

#include <algorithm>

#include "engine/cpu/memory.h"
#include "engine/cpu/tile_window.h"

namespace paceline::engine::cpu {
namespace {

using namespace tiles;

constexpr std::int64_t kBandBytes = 1 << 20;  ///< of both operands, in 2 MB of cache
constexpr int kPartBlocks = 4;                ///< of 32 output channels

class TileGradientKernel final : public ProductKernel {
 public:
  TileGradientKernel(const ProductShape& shape, const TileKernels& kernels)
      : s_(shape),
        kernels_(kernels),
        window_(tile_window(shape, Direction::d_weight)),
        in_blocks_(blocks_of(shape.src.channels)),
        out_blocks_(blocks_of(shape.dst.channels)),
        band_(window_.band(2 * src_row_elements(), 2 * dst_row_elements(), kBandBytes)),
        ring_(window_.ring(band_)) {}

  [[nodiscard]] std::int64_t packed_bytes() const override {
    return std::int64_t{4} * window_.taps() * in_blocks_ * out_blocks_ * kBlockElements;
  }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override {
    return operands_at() + whole_lines(static_cast<std::int64_t>(sizeof(Operand)) * band_ * window_.to.width);
  }

  void pack(const float*, void*) const override {}  // forward's and d_src's alone
  void unpack(base::ThreadPool& pool, const float* packed, float* d_weights) const override {
    const int in = s_.src.channels, out = s_.dst.channels, taps = window_.taps();
    pool.run(out, [&](int k, int) {
      float* to = d_weights + std::int64_t{1} * k * in * taps;
      for (int c = 0; c < in; ++c)
        for (int tap = 0; tap < taps; ++tap)
          *to++ = packed[block_at(tap, c / kBlock, k / kBlock) + c % kBlock * kBlock + k % kBlock];
    });
  }

  [[nodiscard]] int parts() const override { return (out_blocks_ + kPartBlocks - 1) / kPartBlocks; }

  void run(const Operands& o, int part) const override {
    const Session session(kernels_);
    const Part blocks{.begin = part * kPartBlocks, .end = std::min(out_blocks_, (part + 1) * kPartBlocks)};
    if (s_.bias) std::fill_n(o.d_bias + channels(blocks).begin, channels(blocks).size(), 0.0f);
    bool adds = false;
    for (int first = 0; first < s_.samples; first += kBlock) {
      const int samples = std::min(kBlock, s_.samples - first);
      std::int64_t packed = 0;
      for (int y = 0; y < window_.to.height; y += band_) {
        const Part band{.begin = y, .end = std::min(y + band_, window_.to.height)};
        packed = pack_band(o, blocks, band, first, samples, packed);
        multiply_band(o, blocks, band, adds);
        adds = true;
      }
    }
  }

  [[nodiscard]] std::string name() const override {
    return "own tile products " + std::string(name_of(kernels_.unit));
  }

 private:
  /// Output channels of some blocks of them.
  [[nodiscard]] Part channels(Part blocks) const {
    return {.begin = blocks.begin * kBlock,
            .end = std::min<std::int64_t>(blocks.end * kBlock, s_.dst.channels)};
  }
  [[nodiscard]] std::int64_t block_at(int tap, int in_block, int out_block) const {
    return ((std::int64_t{1} * tap * in_blocks_ + in_block) * out_blocks_ + out_block) * kBlockElements;
  }
  [[nodiscard]] std::int64_t src_row_elements() const {
    return std::int64_t{1} * window_.from.width * in_blocks_ * kBlockElements;
  }
  [[nodiscard]] std::int64_t dst_row_elements() const {  // of a part
    return std::int64_t{1} * window_.to.width * std::min(kPartBlocks, out_blocks_) * kBlockElements;
  }

  // The scratchpad: [ring of src | band of d_dst | operands of a tap].
  [[nodiscard]] std::int64_t dst_at() const { return 2 * ring_ * src_row_elements(); }
  [[nodiscard]] std::int64_t operands_at() const { return dst_at() + 2 * band_ * dst_row_elements(); }

  /// Packs what the band reads, but for the rows of src below `packed`; returns the row behind them.
  std::int64_t pack_band(const Operands& o, Part blocks, Part band, int first, int samples,
                         std::int64_t packed) const {
    auto* scratch = static_cast<std::byte*>(o.scratchpad);
    auto* a = reinterpret_cast<std::uint16_t*>(scratch);
    auto* b = reinterpret_cast<std::uint16_t*>(scratch + dst_at());
    const auto* src = static_cast<const std::uint16_t*>(o.src) + first * window_.sample_stride();
    const auto* d_dst = static_cast<const std::uint16_t*>(o.d_dst) + first * s_.dst.elements();
    const Part read = window_.rows_read(band);
    for (packed = std::max(packed, read.begin); packed < read.end; ++packed)
      kernels_.transpose({.values = src + packed * window_.row_stride(),
                          .sample_stride = window_.sample_stride(),
                          .pixel_stride = window_.pixel_stride(),
                          .samples = samples,
                          .pixels = window_.from.width,
                          .channels = s_.src.channels},
                         a + packed % ring_ * src_row_elements());
    const Part wanted = channels(blocks);
    for (std::int64_t y = band.begin; y < band.end; ++y) {
      const PixelRow row{.values = d_dst + y * s_.dst.width * s_.dst.channels + wanted.begin,
                         .sample_stride = s_.dst.elements(),
                         .pixel_stride = s_.dst.channels,
                         .samples = samples,
                         .pixels = s_.dst.width,
                         .channels = static_cast<int>(wanted.size())};
      kernels_.interleave(row, b + (y - band.begin) * s_.dst.width * blocks.size() * kBlockElements);
      if (s_.bias) kernels_.add_values(row, o.d_bias + wanted.begin);
    }
    return packed;
  }

  void multiply_band(const Operands& o, Part blocks, Part band, bool adds) const {
    auto* operands = reinterpret_cast<Operand*>(static_cast<std::byte*>(o.scratchpad) + operands_at());
    for (int tap = 0; tap < window_.taps(); ++tap) {
      const int count = find_operands(o, blocks, band, tap, operands);
      if (count == 0 && adds) continue;
      for (int in = 0; in < in_blocks_; ++in)
        for (auto out = static_cast<int>(blocks.begin); out < blocks.end; ++out)
          kernels_.multiply({.rows = kBlock,
                             .operands = operands,
                             .count = count,
                             .a_at = std::int64_t{1} * in * kBlockElements,
                             .b_at = (out - blocks.begin) * kBlockElements,
                             .sums = o.d_weight + block_at(tap, in, out),
                             .adds = adds});
    }
  }

  /// The pixels of the band whose tap lies inside the image; returns how many.
  int find_operands(const Operands& o, Part blocks, Part band, int tap, Operand* operands) const {
    const auto* a = static_cast<const std::uint16_t*>(o.scratchpad);
    const auto* b =
        reinterpret_cast<const std::uint16_t*>(static_cast<const std::byte*>(o.scratchpad) + dst_at());
    int count = 0;
    for (auto y = static_cast<int>(band.begin); y < band.end; ++y) {
      const int row = window_.at(y, tap / window_.kernel_width, window_.from.height);
      if (row < 0) continue;
      for (int x = 0; x < window_.to.width; ++x) {
        const int column = window_.at(x, tap % window_.kernel_width, window_.from.width);
        if (column < 0) continue;
        const std::int64_t pixel = (y - band.begin) * window_.to.width + x;
        operands[count++] = {.a = a + row % ring_ * src_row_elements() +
                                  std::int64_t{1} * column * in_blocks_ * kBlockElements,
                             .b = b + pixel * blocks.size() * kBlockElements};
      }
    }
    return count;
  }

  const ProductShape s_;
  const TileKernels& kernels_;
  const TileWindow window_;
  const int in_blocks_, out_blocks_;
  const int band_, ring_;  ///< rows
};

}  // namespace

std::unique_ptr<ProductKernel> make_tile_gradient_kernel(const ProductShape& shape,
                                                         const TileKernels& kernels) {
  return std::make_unique<TileGradientKernel>(shape, kernels);
}

}  // namespace paceline::engine::cpu
