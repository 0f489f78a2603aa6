// d_weight by tiles: for every tap, the sum over pixels of src (transposed) times d_dst, with the batch as
// the inner dimension of the tiles. Along the batch no shift between the two operands can split a pair, and
// small images are no problem.
//
// Over a band: some rows of 32 samples, or whole small images of some times as many.
//   a [block of C][ring row][pixel][32 channels][32 samples]            src
//   b [block of K'][row][pixel][2][16 pairs of samples][16][2]          d_dst, the K' channels of a part
//   sums [block of C][block of K][tap][32][32]                          the packed gradient
//
// With many channels the sums do not fit into the second-level cache. So they are visited as rarely as
// possible, in memory order, while the next ones are prefetched. One block of src's channels is finished
// before the next begins, and stays in the cache until then.
//
// Parts are ranges of output channels: each packs src again, so they are wide. A single chunk has no more
// parts than there are threads, unless the limit of channels per part requires more.

#include "engine/cpu/conv/bf16/algorithms.h"

#include <algorithm>
#include <vector>

#include "engine/cpu/conv/bf16/window.h"
#include "engine/cpu/conv/transpose.h"
#include "engine/program.h"

namespace paceline::engine::cpu {
namespace {

using namespace tiles;

constexpr std::int64_t kBandBytes = 900 << 10;  ///< of both operands, which share 2 MB of cache with the sums
constexpr std::int64_t kNearBytes = 512 << 10;  ///< of sums that stay in the cache beside a band
constexpr int kBandPixels = 64;  ///< pixels of 32 samples that make a visit to the sums worthwhile
constexpr std::int64_t kWholeBytes = 1600 << 10;  ///< of both operands where a band is whole images
constexpr int kLeastPixels = 16;  ///< with fewer, visiting the sums costs more than reading distant operands
constexpr int kPartBlocks = 4;    ///< of 32 output channels
constexpr int kSmallPartBlocks = 8;  ///< for images so small that both operands stay in the cache anyway
constexpr int kSmallPixels = 16;

class WgradBatchKKernel final : public WgradKernel {
 public:
  WgradBatchKKernel(const ConvShape& shape, const TileKernels& kernels)
      : s_(shape),
        kernels_(kernels),
        window_(tile_window(shape, Direction::backward_weights)),
        in_blocks_(blocks_of(shape.src.channels)),
        out_blocks_(blocks_of(shape.dst.channels)),
        part_blocks_(
            std::min(dst_pixels() <= kSmallPixels ? kSmallPartBlocks : kPartBlocks,
                     shape.is_alone ? (out_blocks_ + shape.threads - 1) / shape.threads : out_blocks_)),
        has_neighbours_(kernels.multiply_neighbours != nullptr && window_.kernel_width == 3 &&
                        window_.stride == 1 && window_.padding == 1 && window_.to.width > 1),
        fetches_sums_(packed_bytes() > kNearBytes),
        is_whole_(dst_pixels() <= kBandPixels &&
                  (whole_bytes() <= kWholeBytes || rows_that_fit() * window_.to.width < kLeastPixels)),
        band_(is_whole_ ? window_.to.height : rows_that_fit()),
        ring_(is_whole_ ? window_.from.height : window_.ring(band_)),
        at_a_time_(is_whole_ ? std::min(whole_blocks(), blocks_of(shape.samples)) : 1) {}

  [[nodiscard]] std::int64_t packed_bytes() const override {
    return std::int64_t{4} * window_.taps() * in_blocks_ * out_blocks_ * kBlockElements;
  }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override {
    return operands_at() +
           whole_lines(static_cast<std::int64_t>(sizeof(Operand)) * window_.taps() * band_pixels());
  }

  void unpack(base::ThreadPool& pool, const float* packed, float* d_weights) const override {
    const int out = s_.dst.channels;
    if (can_transpose(row_elements(), out, d_weights))
      return transpose_rows(
          pool, row_elements(), out, [&](std::int64_t at, std::int64_t k) { return sum_of(packed, at, k); },
          d_weights);
    pool.run(out, [&](int k, int) {
      unpack_plainly(packed, {.begin = k, .end = k + 1}, {.begin = 0, .end = row_elements()},
                     d_weights + k * row_elements());
    });
  }
  [[nodiscard]] std::string tile_order() const override {
    return s_.src.channels % kBlock == 0 && s_.dst.channels % kBlock == 0 ? "tiles" : "";
  }
  void unpack_tile(const float* packed, const WeightTile& tile, float* d_rows) const override {
    const Range elements{.begin = tile.ins.begin * window_.taps(), .end = tile.ins.end * window_.taps()};
    if (!can_transpose(elements.size(), tile.outs.size(), d_rows))
      return unpack_plainly(packed, tile.outs, elements, d_rows);
    transpose_near_rows(
        elements, tile.outs, [&](std::int64_t at, std::int64_t k) { return sum_of(packed, at, k); }, d_rows);
  }

  [[nodiscard]] int parts() const override { return (out_blocks_ + part_blocks_ - 1) / part_blocks_; }

  void run(const Operands& o, int part) const override {
    const UnitSession session(kernels_);
    const Range blocks{.begin = part * part_blocks_, .end = std::min(out_blocks_, (part + 1) * part_blocks_)};
    if (s_.bias) std::fill_n(o.d_bias + channels(blocks).begin, channels(blocks).size(), 0.0f);
    bool adds = false;
    for (int first = 0; first < s_.samples; first += at_a_time_ * kBlock) {
      const int samples = std::min(at_a_time_ * kBlock, s_.samples - first);
      for_each_band(window_, {.begin = 0, .end = window_.to.height}, band_, first, samples,
                    [&](const Band& band, Range packed) {
                      pack_dst(o, blocks, band);
                      pack_src(o, band, packed);
                      multiply_band(o, blocks, band, adds);
                      adds = true;
                    });
    }
  }

  [[nodiscard]] std::string name() const override {
    return "own tile products " + std::string(kernels_.name);
  }

 private:
  /// Of the flat weights of one output.
  [[nodiscard]] std::int64_t row_elements() const {
    return std::int64_t{1} * s_.src.channels * window_.taps();
  }
  /// Address of the sum for output k, element `at` of its row.
  [[nodiscard]] const float* sum_of(const float* packed, std::int64_t at, std::int64_t k) const {
    const int taps = window_.taps();
    const auto c = static_cast<int>(at) / taps, tap = static_cast<int>(at) % taps;
    return packed + block_at(tap, c / kBlock, static_cast<int>(k) / kBlock) + c % kBlock * kBlock +
           k % kBlock;
  }
  void unpack_plainly(const float* packed, Range outs, Range elements, float* to) const {
    for (std::int64_t k = outs.begin; k < outs.end; ++k)
      for (std::int64_t at = elements.begin; at < elements.end; ++at) *to++ = *sum_of(packed, at, k);
  }
  /// Output channels of some blocks of them.
  [[nodiscard]] Range channels(Range blocks) const {
    return {.begin = blocks.begin * kBlock,
            .end = std::min<std::int64_t>(blocks.end * kBlock, s_.dst.channels)};
  }
  [[nodiscard]] std::int64_t block_at(int tap, int in_block, int out_block) const {
    return ((std::int64_t{1} * in_block * out_blocks_ + out_block) * window_.taps() + tap) * kBlockElements;
  }
  // Of one block of channels.
  [[nodiscard]] std::int64_t src_row_elements() const {
    return std::int64_t{1} * window_.from.width * kBlockElements;
  }
  [[nodiscard]] std::int64_t dst_row_elements() const {
    return std::int64_t{1} * window_.to.width * kBlockElements;
  }
  [[nodiscard]] int dst_pixels() const { return window_.to.height * window_.to.width; }
  /// Of whole images of a block of samples.
  [[nodiscard]] std::int64_t whole_bytes() const {
    return 2 * (in_blocks_ * window_.from.height * src_row_elements() +
                part_blocks_ * window_.to.height * dst_row_elements());
  }
  /// Number of blocks of samples whose whole images form a band.
  [[nodiscard]] int whole_blocks() const {
    const int least = (kLeastPixels + dst_pixels() - 1) / dst_pixels();
    return std::max(1, std::min(kBandPixels / dst_pixels(),
                                std::max(least, static_cast<int>(kWholeBytes / whole_bytes()))));
  }
  [[nodiscard]] int rows_that_fit() const {
    return window_.band(2 * in_blocks_ * src_row_elements(), 2 * part_blocks_ * dst_row_elements(),
                        kBandBytes);
  }
  [[nodiscard]] std::int64_t src_block_elements() const { return at_a_time_ * ring_ * src_row_elements(); }
  [[nodiscard]] std::int64_t dst_block_elements() const { return at_a_time_ * band_ * dst_row_elements(); }
  [[nodiscard]] std::int64_t band_pixels() const {
    return std::int64_t{1} * at_a_time_ * band_ * window_.to.width;
  }

  // The scratchpad: [src | d_dst | operands of each tap].
  [[nodiscard]] std::int64_t dst_at() const { return 2 * in_blocks_ * src_block_elements(); }
  [[nodiscard]] std::int64_t operands_at() const {
    return dst_at() + 2 * part_blocks_ * dst_block_elements();
  }
  [[nodiscard]] std::uint16_t* src_of(const Operands& o) const {
    return static_cast<std::uint16_t*>(o.scratchpad);
  }
  [[nodiscard]] std::uint16_t* dst_of(const Operands& o) const {
    return o.scratch_at<std::uint16_t>(dst_at());
  }

  /// Of a band's blocks of samples.
  [[nodiscard]] static int first_of(const Band& band, int block) { return band.first + block * kBlock; }
  [[nodiscard]] static int samples_of(const Band& band, int block) {
    return std::min(kBlock, band.samples - block * kBlock);
  }

  void pack_src(const Operands& o, const Band& band, Range rows) const {
    const auto* src = static_cast<const std::uint16_t*>(o.src);
    for (int n = 0; n < blocks_of(band.samples); ++n)
      for (std::int64_t row = rows.begin; row < rows.end; ++row)
        kernels_.transpose(
            {.values = src + first_of(band, n) * window_.sample_stride() + row * window_.row_stride(),
             .sample_stride = window_.sample_stride(),
             .pixel_stride = window_.pixel_stride(),
             .samples = samples_of(band, n),
             .pixels = window_.from.width,
             .channels = s_.src.channels},
            src_of(o) + (n * ring_ + row % ring_) * src_row_elements(), src_block_elements());
  }

  void pack_dst(const Operands& o, Range blocks, const Band& band) const {
    const Range wanted = channels(blocks);
    const auto* d_dst = static_cast<const std::uint16_t*>(o.d_dst) + wanted.begin;
    for (int n = 0; n < blocks_of(band.samples); ++n)
      for (std::int64_t y = band.rows.begin; y < band.rows.end; ++y) {
        const PixelRow row{
            .values = d_dst + first_of(band, n) * s_.dst.elements() + y * s_.dst.width * s_.dst.channels,
            .sample_stride = s_.dst.elements(),
            .pixel_stride = s_.dst.channels,
            .samples = samples_of(band, n),
            .pixels = s_.dst.width,
            .channels = static_cast<int>(wanted.size())};
        kernels_.interleave(row, dst_of(o) + (n * band_ + y - band.rows.begin) * dst_row_elements(),
                            dst_block_elements());
        if (s_.bias) kernels_.add_values(row, o.d_bias + wanted.begin);
      }
  }

  void multiply_band(const Operands& o, Range blocks, const Band& band, bool adds) const {
    auto* operands = o.scratch_at<Operand>(operands_at());
    const int step = has_neighbours_ ? window_.kernel_width : 1;  // taps at a time
    std::vector<int> counts(static_cast<std::size_t>(window_.taps()));
    const auto list = [&](int tap) { return operands + tap * band_pixels(); };
    for (int tap = 0; tap < window_.taps(); tap += step)
      counts[static_cast<std::size_t>(tap)] =
          has_neighbours_ ? find_rows(o, band, tap, list(tap)) : find_operands(o, band, tap, list(tap));
    for (int in = 0; in < in_blocks_; ++in)
      for (auto out = static_cast<int>(blocks.begin); out < blocks.end; ++out)
        for (int tap = 0; tap < window_.taps(); tap += step) {
          const int count = counts[static_cast<std::size_t>(tap)];
          if (count == 0 && adds) continue;
          const std::int64_t a_at = in * src_block_elements(),
                             b_at = (out - blocks.begin) * dst_block_elements();
          float* sums = o.d_weight + block_at(tap, in, out);
          const float* next = fetches_sums_ ? sums + step * kBlockElements : nullptr;
          if (has_neighbours_) {
            kernels_.multiply_neighbours({.rows = list(tap),
                                          .count = count,
                                          .pixels = window_.to.width,
                                          .a_at = a_at,
                                          .b_at = b_at,
                                          .sums = sums,
                                          .next_sums = next,
                                          .adds = adds});
          } else {
            kernels_.multiply({.rows = kBlock,
                               .operands = list(tap),
                               .count = count,
                               .a_at = a_at,
                               .b_at = b_at,
                               .sums = sums,
                               .next_sums = next,
                               .adds = adds});
          }
        }
  }

  /// Finds the rows of the band whose taps from `tap` on lie inside the image; returns their number.
  int find_rows(const Operands& o, const Band& band, int tap, Operand* rows) const {
    int count = 0;
    for (int n = 0; n < blocks_of(band.samples); ++n)
      for (auto y = static_cast<int>(band.rows.begin); y < band.rows.end; ++y) {
        const int row = window_.at(y, tap / window_.kernel_width, window_.from.height);
        if (row >= 0)
          rows[count++] = {.a = src_of(o) + (n * ring_ + row % ring_) * src_row_elements(),
                           .b = dst_of(o) + (n * band_ + y - band.rows.begin) * dst_row_elements()};
      }
    return count;
  }

  /// Finds the pixels of the band whose tap lies inside the image; returns their number.
  int find_operands(const Operands& o, const Band& band, int tap, Operand* operands) const {
    int count = 0;
    for (int n = 0; n < blocks_of(band.samples); ++n)
      for (auto y = static_cast<int>(band.rows.begin); y < band.rows.end; ++y) {
        const int row = window_.at(y, tap / window_.kernel_width, window_.from.height);
        if (row < 0) continue;
        for (int x = 0; x < window_.to.width; ++x) {
          const int column = window_.at(x, tap % window_.kernel_width, window_.from.width);
          if (column < 0) continue;
          operands[count++] = {
              .a = src_of(o) + (n * ring_ + row % ring_) * src_row_elements() + column * kBlockElements,
              .b = dst_of(o) + (n * band_ + y - band.rows.begin) * dst_row_elements() + x * kBlockElements};
        }
      }
    return count;
  }

  const ConvShape s_;
  const TileKernels& kernels_;
  const TileWindow window_;
  const int in_blocks_, out_blocks_;
  const int part_blocks_;      ///< of the output channels
  const bool has_neighbours_;  ///< three taps of a row of the kernel at a time
  const bool fetches_sums_;    ///< the sums are too many to stay in the cache
  const bool is_whole_;        ///< a band is whole images
  const int band_, ring_;      ///< rows
  const int at_a_time_;        ///< blocks of samples in a band
};

}  // namespace

std::unique_ptr<WgradKernel> make_wgrad_batch_k_kernel(const ConvShape& shape, const TileKernels& kernels) {
  return std::make_unique<WgradBatchKKernel>(shape, kernels);
}

extern constexpr Bf16Algorithm kWgradBatchK = {
    .name = "wgrad-batch-k",
    .prefers = fills_tiles,
    .preference = "is preferred from 64 channels and 16 samples up",
    .chunk = whole_block_chunk,
    .make_wgrad = make_wgrad_batch_k_kernel};

}  // namespace paceline::engine::cpu
