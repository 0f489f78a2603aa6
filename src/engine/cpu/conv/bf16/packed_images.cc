// Convolutions by strips (pixel_rows.cc) of images that are packed first: kernels of 3x3, forward where rows
// are too short for tiles of 16 pixels, d_src there and where windows move by two.
//
// Two images with rows of 8 pixels, or four with rows of 4, are interleaved pixel by pixel. A tile is then
// one row of all of them, another tap starts at another address, and zeros at the ends of a row serve as
// padding, as in a long row. Such a group of images is packed at a time, by blocks of channels, so that a
// tile is 1 KB of contiguous memory:
//
//   a [block of channels][row][left edge | pixels | right edge][image][32]
//   packed weights                                                            weight_reader.h
//
// For a strip of four rows and 256 channels the pixels do not fit into the first-level cache beside the
// weights. So all taps of a block of channels are computed first, then the next block: the lines of `a` are
// fetched from the second-level cache once per half block of results. If the last group has fewer images, its
// last image is repeated, and written to the same place with the same bits.
//
// Stride 2, with padding 1. Forward, a tile has every second pixel: even columns are stored before odd ones,
// and the first and the third tap read neighbours. d_src has four kinds of pixels, each a convolution of
// d_dst with stride 1: even rows, and even columns, use only the middle tap, odd ones the other two. A strip
// has four rows of one kind, and writes every second pixel of every second row. So each tile of weights is
// used for four tiles of pixels; with strips of neighbouring rows it would be two.

#include "engine/cpu/conv/bf16/algorithms.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "engine/cpu/conv/batch_split.h"
#include "engine/cpu/conv/bf16/weight_reader.h"
#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/kernels/kernels.h"

namespace paceline::engine::cpu {
namespace {

using namespace tiles;

constexpr int kMostImages = 4;
constexpr std::int64_t kMostGroupBytes = 512 << 10;  ///< beside the weights

int images_for(int width) { return kHalf / std::gcd(kHalf, width); }

class PackedImagesKernel final : public Bf16WeightReader {
 public:
  PackedImagesKernel(const ConvShape& shape, Direction direction, const TileKernels& kernels)
      : Bf16WeightReader(shape, direction, kernels),
        is_spread_(window_.is_rotated && window_.stride > 1),
        lead_(is_forward_  ? window_.padding
              : is_spread_ ? 0
                           : window_.kernel_width - 1 - window_.padding),
        width_(is_spread_ ? window_.from.width : window_.to.width),
        images_(images_for(width_)),
        tiles_of_row_(width_ * images_ / kHalf),
        kinds_(is_spread_ ? 4 : 1),
        bands_((window_.to.height + band_rows() - 1) / band_rows()),
        groups_((samples_ + images_ - 1) / images_),
        columns_(is_spread_ ? width_ + 1 : (width_ - 1) * window_.stride + window_.kernel_width),
        parts_(shape.is_alone ? std::min(groups_ * bands_, kMostShares) : 1) {
    base::expects(columns_ - lead_ >= window_.from.width, "all pixels have a place");
    for (int x = 0; x < window_.from.width; ++x) places_.push_back(column_at(lead_ + x));
  }

  [[nodiscard]] std::int64_t scratchpad_bytes() const override { return sums_at() + 4 * kStripSums; }
  [[nodiscard]] int parts() const override { return parts_; }
  [[nodiscard]] std::string name() const override {
    return "own tile products " + std::string(kernels_.name) + ", strips of packed images";
  }

  void run(const Operands& o, int part) const override {
    const UnitSession session(kernels_);
    clear_edges(o);
    const Range bands = range_of(std::int64_t{1} * groups_ * bands_, part, parts_);
    StripStats taken;
    if (o.epilogue != nullptr) taken = strip_stats(*o.epilogue, to(o), window_.to.channels);
    const Steps last_steps = steps_of((samples_ - 1) % images_ + 1);
    StripRest rest;
    for (std::int64_t first_band = bands.begin / bands_ * bands_; first_band < bands.end;
         first_band += bands_) {
      const auto first = static_cast<int>(first_band / bands_) * images_;
      const int samples = std::min(images_, samples_ - first);
      const ImageGroup group{.first = first,
                             .samples = samples,
                             .steps = samples == images_ ? whole_steps_.data() : last_steps.data()};
      pack_group(o, group);
      const Range here{.begin = std::max<std::int64_t>(bands.begin - first_band, 0),
                       .end = std::min<std::int64_t>(bands.end - first_band, bands_)};
      if (o.epilogue == nullptr)
        compute(o, group, here, rest, nullptr);
      else
        compute_and_sum(o, group, rest, taken);
    }
    kernels_.finish_strip(rest);
    if (o.epilogue != nullptr) make_plain(*o.epilogue, samples_ * pixels(), window_.to.channels);
  }

 private:
  /// Elements from each row of a tile to the next.
  using Steps = std::array<std::int64_t, kHalf>;
  [[nodiscard]] Steps steps_of(int samples) const {
    const auto place = [&](int row) {
      return std::min(row % images_, samples - 1) * window_.to.elements() +
             row / images_ * (is_spread_ ? 2 : 1) * window_.to.channels;
    };
    Steps steps{};
    for (int row = 0; row + 1 < kHalf; ++row)
      steps[static_cast<std::size_t>(row)] = place(row + 1) - place(row);
    return steps;
  }
  /// Images side by side.
  struct ImageGroup {
    int first = 0, samples = 0;
    const std::int64_t* steps = nullptr;  ///< must live until the results left by the strips are written
  };

  using Rows = std::array<const std::uint16_t*, 2 * kStripTiles + 1>;
  // Elements of `a`: from a column to the next, ...
  [[nodiscard]] int a_column() const { return images_ * kBlock; }
  [[nodiscard]] std::int64_t a_row() const { return std::int64_t{1} * columns_ * a_column(); }
  [[nodiscard]] std::int64_t a_block() const { return window_.from.height * a_row(); }
  /// Offset of a column in its row: with stride 2 even columns come first.
  [[nodiscard]] std::int64_t column_at(int column) const {
    const bool is_apart = !is_spread_ && window_.stride > 1;
    return (is_apart ? column % 2 * ((columns_ + 1) / 2) + column / 2 : column) * a_column();
  }
  /// The scratchpad: [a | sums].
  [[nodiscard]] std::int64_t sums_at() const { return whole_lines(2 * in_blocks_ * a_block()); }
  [[nodiscard]] static std::uint16_t* a(const Operands& o) {
    return static_cast<std::uint16_t*>(o.scratchpad);
  }

  void clear_edges(const Operands& o) const {
    for (int column = 0; column < columns_; ++column) {
      if (column >= lead_ && column < lead_ + window_.from.width) continue;
      for (std::int64_t row = 0; row < std::int64_t{1} * in_blocks_ * window_.from.height; ++row)
        std::fill_n(a(o) + row * a_row() + column_at(column), a_column(), std::uint16_t{0});
    }
  }
  void pack_group(const Operands& o, const ImageGroup& group) const {
    for (int image = 0; image < images_; ++image) {
      const std::uint16_t* values =
          from(o) + (group.first + std::min(image, group.samples - 1)) * window_.sample_stride();
      for (int row = 0; row < window_.from.height; ++row)
        kernels_.scatter({.from = values + row * window_.row_stride(),
                          .to = a(o) + row * a_row() + image * kBlock,
                          .columns = places_.data(),
                          .pixels = window_.from.width,
                          .blocks = in_blocks_,
                          .block_step = a_block()});
    }
  }

  /// Computes the group and the sums over its rows. The sums are taken while the products are computed, if no
  /// image is repeated. Moments are taken around a guess of the mean, for which the first band is computed
  /// beforehand.
  void compute_and_sum(const Operands& o, const ImageGroup& group, StripRest& rest,
                       const StripStats& taken) const {
    const Epilogue& e = *o.epilogue;
    const TypedKernels& kernels = kernels_for(isas_here().back()).bf16;
    const bool is_gradient = e.what == Epilogue::Sums::gradient;
    Range bands{.begin = 0, .end = bands_};
    if (group.first == 0 && is_gradient) begin_sums(e, kernels, Storage::bf16, to(o), 0, window_.to.channels);
    if (group.first == 0 && !is_gradient) {
      const Range first{.begin = 0, .end = 1};
      compute(o, group, first, rest, nullptr);
      kernels_.finish_strip(rest);
      begin_sums(e, kernels, Storage::bf16, to(o), rows_of_bands(first).size() * window_.to.width,
                 window_.to.channels);
      sum_written(o, group, first);
      bands.begin = 1;
    }
    if (bands.size() <= 0) return;
    const bool is_beside = group.samples == images_;
    compute(o, group, bands, rest, is_beside ? &taken : nullptr);
    if (is_beside) return;
    kernels_.finish_strip(rest);
    sum_written(o, group, bands);
  }
  [[nodiscard]] Range rows_of_bands(Range bands) const {
    return {.begin = bands.begin * band_rows(),
            .end = std::min<std::int64_t>(bands.end * band_rows(), window_.to.height)};
  }
  void sum_written(const Operands& o, const ImageGroup& group, Range bands) const {
    const Range rows = rows_of_bands(bands);
    for (int n = group.first; n < group.first + group.samples; ++n)
      add_sums(*o.epilogue, kernels_for(isas_here().back()).bf16, Storage::bf16, to(o),
               n * pixels() + rows.begin * window_.to.width, rows.size() * window_.to.width,
               window_.to.channels);
  }

  /// Computes these bands of four rows of the group.
  void compute(const Operands& o, const ImageGroup& group, Range bands, StripRest& rest,
               const StripStats* taken) const {
    auto* result = reinterpret_cast<std::uint16_t*>(to(o));
    Rows under{};
    Strip strip{.form = window_.stride > 1 ? StripForm::strided : StripForm::tall,
                .rows = under.data(),
                .a_pixel = kBlock,
                // Outer loop: blocks of channels; inner loop: taps of a row.
                .a_tap = a_block(),
                .kernel_height = kTallKernel,
                .kernel_width = in_blocks_,
                .depth = window_.kernel_width,
                .b = static_cast<const std::uint16_t*>(o.packed),
                .b_tap = kBlockElements,
                .b_block = window_.taps() * tap_elements(),
                .blocks = out_blocks_,
                .a_depth = {column_at(1), column_at(2) - column_at(1)},
                .b_depth = tap_elements(),
                .b_row = window_.kernel_width * tap_elements(),
                .bias = has_bias_ ? o.bias : nullptr,
                .sums = o.scratch_at<float>(sums_at()),
                .to_steps = group.steps,
                .rest = &rest,
                .taken = taken};
    if (window_.is_rotated && !is_spread_) {
      strip.b += (window_.taps() - 1) * tap_elements();
      strip.b_depth = -strip.b_depth;
      strip.b_row = -strip.b_row;
    }
    for (auto band = static_cast<int>(bands.begin); band < bands.end; ++band)
      for (int tile = 0; tile < tiles_of_row_; ++tile)
        for (int kind = 0; kind < kinds_; ++kind) {
          // With several kinds, each has every second row and column.
          const int apart = is_spread_ ? 2 : 1, right = kind % 2, down = kind / 2;
          const int y = band * band_rows() + down, x = tile * (kHalf / images_);
          strip.tiles = std::min(kStripTiles, (window_.to.height - y + apart - 1) / apart);
          if (strip.tiles <= 0) continue;
          if (is_spread_) spread(strip, static_cast<const std::uint16_t*>(o.packed), right, down);
          point_at_rows(o, strip, is_spread_ ? y / 2 : y * window_.stride - lead_, x + right, under);
          for (int t = 0; t < strip.tiles; ++t)
            strip.to[static_cast<std::size_t>(t)] =
                result + (group.first * pixels() + std::int64_t{1} * (y + t * apart) * window_.to.width +
                          x * apart + right) *
                             window_.to.channels;
          fetch_next_group(strip, o, group, (band * tiles_of_row_ + tile) * kinds_ + kind);
          kernels_.multiply_strip(strip);
        }
  }
  /// Sets the taps for one kind of pixels of d_src with stride 2. Even rows use the middle tap; odd rows the
  /// last tap with the same row of d_dst and the first tap with the row below. Columns likewise, in reverse
  /// order: the first tap with the pixel on the right, then the last tap.
  void spread(Strip& strip, const std::uint16_t* weights, int right, int down) const {
    const int first_row = 1 + down, first_column = 1 - right;
    strip.form = down == 0 ? StripForm::flat : StripForm::low;
    strip.kernel_height = 1 + down;
    strip.depth = 1 + right;
    strip.b = weights + (first_row * window_.kernel_width + first_column) * tap_elements();
    strip.b_row = -2 * window_.kernel_width * tap_elements();
    strip.b_depth = 2 * tap_elements();
    strip.a_depth = {-a_column(), -a_column()};
  }
  [[nodiscard]] int band_rows() const { return kStripTiles * (is_spread_ ? 2 : 1); }
  /// Strip.rows; the first result's first tap reads row `first` of `from`.
  void point_at_rows(const Operands& o, const Strip& strip, int first, int column, Rows& under) const {
    const int stride = is_spread_ ? 1 : window_.stride;
    const int last = first + (strip.tiles - 1) * stride + strip.kernel_height - 1;
    under.fill(nullptr);
    for (int row = std::max(first, 0); row <= std::min(last, window_.from.height - 1); ++row)
      under[static_cast<std::size_t>(row - first)] = a(o) + row * a_row() + column * a_column();
  }

  /// Each strip prefetches its share of the data of the next group.
  void fetch_next_group(Strip& strip, const Operands& o, const ImageGroup& group, int number) const {
    constexpr std::int64_t kPixels = kStripTiles * kHalf;
    const std::int64_t visits =
        std::int64_t{2} * out_blocks_ * strip.kernel_height * strip.kernel_width * strip.depth;
    const std::int64_t from_pixels = std::int64_t{1} * window_.from.height * window_.from.width;
    const Range read = range_of(images_ * from_pixels, number, bands_ * tiles_of_row_ * kinds_);
    const std::int64_t next = group.first + images_;
    fetch_next(strip, visits,
               {.from = from(o) + (next * from_pixels + read.begin) * window_.from.channels,
                .read = read.size() * window_.from.channels,
                .product = reinterpret_cast<std::uint16_t*>(to(o)),
                .at = (next * pixels() + number * kPixels) * window_.to.channels,
                .written = kPixels * window_.to.channels});
  }

  const bool is_spread_;  ///< d_src with stride 2
  const int lead_;        ///< columns, and rows, in front of the image
  const int width_;       ///< pixels of a row that tiles have in common
  const int images_;      ///< side by side
  const int tiles_of_row_;
  const int kinds_;    ///< of pixels, which have taps of their own: spread, of even and odd rows and columns
  const int bands_;    ///< of an image, of four rows of each kind
  const int groups_;   ///< of images
  const int columns_;  ///< of a row, with its padding
  const int parts_;    ///< of the bands of all groups
  std::vector<std::int64_t> places_;  ///< [pixel]: after the begin of its row
  const Steps whole_steps_ = steps_of(images_);
};

std::optional<std::string> limit(const ConvShape& s, Direction direction, const TileKernels& kernels) {
  if (kernels.multiply_strip == nullptr) return "is for AMX";
  if (images_side_by_side(s, direction) > 0) return std::nullopt;
  return "is for 3x3 convolutions with stride 1 or 2 whose rows of 16 pixels are 2 or 4 images, in multiples "
         "of 32 channels that fit a near cache";
}

bool prefers(const ConvShape& s, Direction direction) {
  return (s.samples >= images_side_by_side(s, direction) &&
          std::min(s.src.channels, s.dst.channels) >= kPreferredChannels) ||
         fills_tiles(s, direction);
}

int chunk(const ConvShape& batch, Direction direction) {
  const int images = images_side_by_side(batch, direction), usual = samples_of_chunk(batch, direction);
  return std::min((usual + images - 1) / images * images, batch.samples);
}

}  // namespace

int images_side_by_side(const ConvShape& s, Direction direction) {
  if (s.is_dense || s.kernel != kTallKernel || s.stride > 2 || s.padding >= s.kernel ||
      direction == Direction::backward_weights)
    return 0;
  const bool is_forward = direction == Direction::forward;
  // With a stride the columns of src are as many even ones as odd ones.
  if (s.stride == 2 && (s.padding != 1 || s.src.width % 2 != 0)) return 0;
  const int width = is_forward || s.stride == 2 ? s.dst.width : s.src.width;
  const graph::Shape& from = is_forward ? s.src : s.dst;
  const bool fits = (is_forward ? s.dst_type : s.type) == Storage::bf16 &&
                    (width < kHalf || (s.stride == 2 && !is_forward)) && images_for(width) <= kMostImages &&
                    s.src.channels % kBlock == 0 && s.dst.channels % kBlock == 0 &&
                    2 * s.weights() <= kMostWeightBytes &&
                    2 * images_for(width) * from.elements() <= kMostGroupBytes;
  return fits ? images_for(width) : 0;
}

extern constexpr Bf16Algorithm kPackedImages = {
    .name = "packed-images",
    .limit = limit,
    .prefers = prefers,
    .preference = "is preferred from 64 channels up, with images enough for 16 pixels",
    .chunk = chunk,
    .make_reader = make_reader_of<PackedImagesKernel>};

}  // namespace paceline::engine::cpu
