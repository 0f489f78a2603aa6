// d_weight of a convolution over few channels, such as a network's first one. Tiles need 32 channels; with
// three, nine tenths of a tile would be zeros for every tap. So the values under a window are copied into one
// row, all taps one after the other ("unfolded", im2col), and the gradient is computed like that of a dense
// layer whose samples are pixels.
//
//   unfolded [pixels of a band][kernel row][kernel column][channel], filled up with zeros to whole blocks
//
// A band stays in the second-level cache. Its pixels are contiguous in d_dst, across rows and images.

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/cpu/conv/batch_split.h"
#include "engine/cpu/conv/bf16/algorithms.h"
#include "engine/cpu/kernels/kernels.h"
#include "engine/program.h"

namespace paceline::engine::cpu {
namespace {

constexpr int kFewChannels = 8;
/// Bytes of unfolded pixels; a second, packed copy shares the 2 MB of cache.
constexpr std::int64_t kBandBytes = 320 << 10;

/// Elements copied at a time, even if a run is shorter: the elements after it are overwritten later.
constexpr int kChunk = 16;
constexpr int kMostChunks = 4;

using CopyRuns = void (*)(const std::uint16_t* from, std::int64_t row_stride, int runs, int run,
                          std::uint16_t* to);

template <int chunks>
void copy_runs(const std::uint16_t* from, std::int64_t row_stride, int runs, int run, std::uint16_t* to) {
  for (int i = 0; i < runs; ++i, from += row_stride, to += run)
    for (int chunk = 0; chunk < chunks; ++chunk)
      std::memcpy(to + chunk * kChunk, from + chunk * kChunk, sizeof(*to) * kChunk);
}
constexpr CopyRuns kCopyRuns[kMostChunks] = {copy_runs<1>, copy_runs<2>, copy_runs<3>, copy_runs<4>};

class WgradIm2colKernel final : public WgradKernel {
 public:
  WgradIm2colKernel(const ConvShape& shape, const tiles::TileKernels& kernels)
      : s_(shape),
        run_(shape.kernel * shape.src.channels),
        chunks_((run_ + kChunk - 1) / kChunk),
        length_(shape.kernel * run_),
        row_(tiles::blocks_of(length_) * tiles::kBlock),
        bands_(dense(), pixels_of_band(), [&](ConvShape band, const WgradKernel*) {
          band.is_alone =
              false;  // its parts run one after the other, so more parts would only cost more packing
          return make_wgrad_batch_k_kernel(band, kernels);
        }) {}

  [[nodiscard]] std::int64_t packed_bytes() const override { return bands_.any().packed_bytes(); }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override {
    return bias_at() + whole_lines(std::int64_t{4} * s_.dst.channels);
  }

  void unpack(base::ThreadPool& pool, const float* packed, float* d_weights) const override {
    const int in = s_.src.channels, taps = s_.kernel * s_.kernel;
    std::vector<float> unfolded(static_cast<std::size_t>(std::int64_t{1} * s_.dst.channels * row_));
    bands_.any().unpack(pool, packed, unfolded.data());
    const float* row = unfolded.data();
    for (int k = 0; k < s_.dst.channels; ++k, row += row_)
      for (int c = 0; c < in; ++c)
        for (int tap = 0; tap < taps; ++tap) *d_weights++ = row[tap * in + c];
  }

  void run(const Operands& o, int) const override {
    for (int band = 0; band < bands_.count(); ++band) {
      unfold(o, bands_.first(band), bands_.size(band));
      const ConvKernel& kernel = bands_.kernel(band);
      Operands own{.src = o.scratchpad,
                   .d_dst = static_cast<const std::uint16_t*>(o.d_dst) +
                            std::int64_t{1} * bands_.first(band) * s_.dst.channels,
                   .d_weight = band == 0 ? o.d_weight : o.scratch_at<float>(sums_at()),
                   .d_bias = band == 0 ? o.d_bias : o.scratch_at<float>(bias_at()),
                   .scratchpad = o.scratch_at<std::byte>(inner_at())};
      for (int part = 0; part < kernel.parts(); ++part) kernel.run(own, part);
      if (band == 0) continue;
      own_.accumulate(own.d_weight, o.d_weight, packed_bytes() / 4);
      if (s_.bias) own_.accumulate(own.d_bias, o.d_bias, s_.dst.channels);
    }
  }

  [[nodiscard]] std::string name() const override { return bands_.any().name() + ", unfolded"; }

 private:
  [[nodiscard]] ConvShape dense() const {
    return {.is_dense = true,
            .samples = static_cast<int>(s_.samples * s_.dst_pixels()),
            .src = {row_, 1, 1},
            .dst = {s_.dst.channels, 1, 1},
            .bias = s_.bias,
            .training = s_.training,
            .type = s_.type,
            .dst_type = s_.dst_type};
  }
  [[nodiscard]] int pixels_of_band() const {
    const std::int64_t fitting = kBandBytes / (2 * row_) / tiles::kBlock * tiles::kBlock;
    return static_cast<int>(std::max<std::int64_t>(tiles::kBlock, fitting));
  }

  // The scratchpad: [a band's pixels | the dense layer's scratchpad | a band's sums | its d_bias].
  [[nodiscard]] std::int64_t inner_at() const {
    return whole_lines(std::int64_t{2} * (std::int64_t{1} * bands_.size(0) * row_ + kMostChunks * kChunk));
  }
  [[nodiscard]] std::int64_t sums_at() const { return inner_at() + whole_lines(bands_.scratchpad_bytes()); }
  [[nodiscard]] std::int64_t bias_at() const { return sums_at() + whole_lines(packed_bytes()); }

  /// Unfolds pixels [first, first + count) of d_dst, counted over all samples, into the scratchpad.
  void unfold(const Operands& o, std::int64_t first, std::int64_t count) const {
    const auto* image = static_cast<const std::uint16_t*>(o.src);
    const auto* end = image + s_.samples * s_.src.elements();
    image += first / s_.dst_pixels() * s_.src.elements();
    auto y = static_cast<int>(first % s_.dst_pixels()) / s_.dst.width;
    auto x = static_cast<int>(first % s_.dst_pixels()) % s_.dst.width;
    auto* to = o.scratch_at<std::uint16_t>(0);
    for (; count > 0; --count, to += row_) {
      unfold_pixel(image, end, y * s_.stride - s_.padding, x * s_.stride - s_.padding, to);
      if (++x < s_.dst.width) continue;
      x = 0;
      if (++y < s_.dst.height) continue;
      y = 0;
      image += s_.src.elements();
    }
  }

  void unfold_pixel(const std::uint16_t* image, const std::uint16_t* end, int top, int left,
                    std::uint16_t* to) const {
    const std::int64_t row_stride = std::int64_t{1} * s_.src.width * s_.src.channels;
    if (top >= 0 && left >= 0 && top + s_.kernel <= s_.src.height && left + s_.kernel <= s_.src.width &&
        chunks_ <= kMostChunks) {
      const auto* from = image + top * row_stride + std::int64_t{1} * left * s_.src.channels;
      if (end - from >= (s_.kernel - 1) * row_stride + std::int64_t{1} * chunks_ * kChunk) {
        kCopyRuns[chunks_ - 1](from, row_stride, s_.kernel, run_, to);
        // May write into the next row, which is filled later.
        std::memset(to + length_, 0, sizeof(*to) * tiles::kBlock);
        return;
      }
    }
    std::fill_n(to, row_, std::uint16_t{0});
    const int skipped = std::max(0, -left), columns = std::min(s_.kernel, s_.src.width - left) - skipped;
    if (columns <= 0) return;
    for (int i = std::max(0, -top); i < std::min(s_.kernel, s_.src.height - top); ++i)
      std::memcpy(to + i * run_ + skipped * s_.src.channels,
                  image + (top + i) * row_stride + std::int64_t{1} * (left + skipped) * s_.src.channels,
                  sizeof(*to) * static_cast<std::size_t>(columns * s_.src.channels));
  }

  const ConvShape s_;
  const int run_, chunks_;  ///< a kernel row's elements, and copies
  const int length_, row_;  ///< elements under a window, and in whole blocks
  const Kernels& own_ = kernels_for(isas_here().back());
  const ChunkKernels<WgradKernel> bands_;  ///< pixels as samples
};

std::optional<std::string> limit(const ConvShape& s, Direction, const tiles::TileKernels&) {
  if (s.is_dense || s.kernel == 1 || s.src.channels > kFewChannels)
    return "is for convolutions above 1x1 over at most 8 channels";
  return std::nullopt;
}

bool prefers(const ConvShape& s, Direction direction) {
  return s.dst.channels >= kPreferredChannels || fills_tiles(s, direction);
}

int chunk(const ConvShape& batch, Direction) { return chunk_of_far_gradient(batch); }

}  // namespace

extern constexpr Bf16Algorithm kWgradIm2col = {.name = "wgrad-im2col",
                                               .limit = limit,
                                               .prefers = prefers,
                                               .preference = "is preferred from 64 output channels up",
                                               .chunk = chunk,
                                               .make_wgrad = make_wgrad_of<WgradIm2colKernel>};

}  // namespace paceline::engine::cpu
