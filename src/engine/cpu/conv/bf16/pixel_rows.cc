// Convolutions by tiles whose rows are 16 neighbouring pixels of one image: forward, and d_src where the
// stride is 1.
//
// Pixels are not reordered: a tile is read directly from [pixel][channel], and another tap starts at another
// address. Only the padding needs space, so rows are copied into a ring buffer with zeros at both ends:
//
//   ring [slot][left edge | pixels | right edge][channels]     row r of the image in slot r % ring; a row of
//                                                              zeros behind, for those above and below
//   packed weights                                             weight_reader.h
//
// Four tiles of pixels are computed at a time: their rows stay in the first-level cache while all weights are
// read, and each tile of weights is used four times (kernels/bf16/tiles.h, Strip). For kernels three taps
// high with stride 1 the tiles are one below the other; otherwise they follow in memory order, in one row or
// in neighbouring rows. If a row's length is not a multiple of 16, its last tile begins earlier: some pixels
// are computed twice, with the same bits.
//
// d_src is the same with the taps in reverse order.
//
// The tile unit takes 16 cycles per product, during which the vector units are nearly idle. They use the time
// to write the results of the previous strip, to take the sums that a batch norm needs (StripStats), and to
// prefetch the data of the next strip (StripPrefetch).

#include <algorithm>
#include <array>

#include "engine/cpu/conv/batch_split.h"
#include "engine/cpu/conv/bf16/algorithms.h"
#include "engine/cpu/conv/bf16/weight_reader.h"
#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/kernels/kernels.h"

namespace paceline::engine::cpu {
namespace {

using namespace tiles;

constexpr int kMostKernel = 7;
constexpr int kPartRows = 8;  ///< of a single chunk

class PixelRowsKernel final : public Bf16WeightReader {
 public:
  PixelRowsKernel(const ConvShape& shape, Direction direction, const TileKernels& kernels)
      : Bf16WeightReader(shape, direction, kernels),
        lead_(is_forward_ ? window_.padding : window_.kernel_width - 1 - window_.padding),
        tiles_of_row_((window_.to.width + kHalf - 1) / kHalf),
        is_tall_(window_.kernel_height == kTallKernel && window_.stride == 1),
        ring_(rows_between() * window_.stride + window_.kernel_height),
        columns_((window_.to.width - 1) * window_.stride + window_.kernel_width),
        copied_(std::min(window_.from.width, columns_ - lead_)),
        parts_(shape.is_alone ? std::clamp(window_.to.height / kPartRows, 1, kMostShares) : 1) {
    steps_.fill(window_.to.channels);
  }

  [[nodiscard]] std::int64_t scratchpad_bytes() const override { return sums_at() + 4 * kStripSums; }
  [[nodiscard]] int parts() const override { return parts_; }
  [[nodiscard]] std::string name() const override {
    return "own tile products " + std::string(kernels_.name) + ", strips";
  }

  void run(const Operands& o, int part) const override {
    const UnitSession session(kernels_);
    auto* ring = static_cast<std::uint16_t*>(o.scratchpad);
    std::fill_n(ring, (ring_ + 1) * row_elements(), std::uint16_t{0});
    const Range rows = range_of(window_.to.height, part, parts_);
    const TypedKernels& sums = kernels_for(isas_here().back()).bf16;
    const int channels = window_.to.channels;
    StripRest rest;
    if (o.epilogue != nullptr && sums_beside_products()) {
      compute_and_sum(o, sums, rest);
      return;
    }
    for (int n = 0; n < samples_; ++n) {
      compute(o, rows, n, rest, nullptr);
      if (o.epilogue == nullptr) continue;
      kernels_.finish_strip(rest);
      if (n == 0) begin_sums(*o.epilogue, sums, Storage::bf16, to(o), pixels(), channels);
      add_sums(*o.epilogue, sums, Storage::bf16, to(o), n * pixels(), pixels(), channels);
    }
    kernels_.finish_strip(rest);
    if (o.epilogue != nullptr) make_plain(*o.epilogue, samples_ * pixels(), channels);
  }

 private:
  [[nodiscard]] std::int64_t row_elements() const {
    return std::int64_t{1} * columns_ * window_.from.channels;
  }
  /// The most rows of `to` between the first and the last of a strip.
  [[nodiscard]] int rows_between() const {
    return is_tall_ ? kStripTiles - 1 : (kStripTiles + tiles_of_row_ - 2) / tiles_of_row_;
  }
  /// The scratchpad: [ring | row of zeros | sums].
  [[nodiscard]] std::int64_t sums_at() const { return whole_lines(2 * (ring_ + 1) * row_elements()); }

  /// Whether sums can be taken beside the products: only if no pixel is computed, and counted, twice.
  [[nodiscard]] bool sums_beside_products() const { return window_.to.width % kHalf == 0; }
  /// Computes all images, and the sums over their rows while these are written. Moments are taken around a
  /// guess of the mean, for which the first row is computed beforehand.
  void compute_and_sum(const Operands& o, const TypedKernels& kernels, StripRest& rest) const {
    const Epilogue& e = *o.epilogue;
    const int channels = window_.to.channels;
    const Range all{.begin = 0, .end = window_.to.height}, first{.begin = 0, .end = 1},
        others{.begin = 1, .end = window_.to.height};
    const bool is_gradient = e.what == Epilogue::Sums::gradient;
    if (is_gradient) {
      begin_sums(e, kernels, Storage::bf16, to(o), pixels(), channels);
    } else {
      compute(o, first, 0, rest, nullptr);
      kernels_.finish_strip(rest);
      begin_sums(e, kernels, Storage::bf16, to(o), window_.to.width, channels);
      add_sums(e, kernels, Storage::bf16, to(o), 0, window_.to.width, channels);
    }
    const StripStats taken = strip_stats(e, to(o), channels);
    for (int n = 0; n < samples_; ++n) compute(o, n == 0 && !is_gradient ? others : all, n, rest, &taken);
    kernels_.finish_strip(rest);
    make_plain(e, samples_ * pixels(), channels);
  }

  /// Computes rows `rows` of image n.
  void compute(const Operands& o, Range rows, int n, StripRest& rest, const StripStats* taken) const {
    auto* ring = static_cast<std::uint16_t*>(o.scratchpad);
    const std::uint16_t* image = from(o) + n * window_.sample_stride();
    auto* result = reinterpret_cast<std::uint16_t*>(to(o)) + n * window_.to.elements();
    std::array<const std::uint16_t*, kMostKernel * kStripTiles> under{};
    Strip strip{.form = is_tall_ ? StripForm::tall : StripForm::flat,
                .rows = under.data(),
                .a_pixel = std::int64_t{1} * window_.stride * window_.from.channels,
                .a_tap = window_.from.channels,
                .kernel_height = window_.kernel_height,
                .kernel_width = window_.kernel_width,
                .depth = in_blocks_,
                .b = static_cast<const std::uint16_t*>(o.packed),
                .b_tap = tap_elements(),
                .b_block = window_.taps() * tap_elements(),
                .blocks = out_blocks_,
                .bias = has_bias_ ? o.bias : nullptr,
                .sums = o.scratch_at<float>(sums_at()),
                .to_steps = steps_.data(),
                .rest = &rest,
                .taken = taken};
    if (window_.is_rotated) {
      strip.b += (window_.taps() - 1) * tap_elements();
      strip.b_tap = -strip.b_tap;
    }
    strip.b_row = window_.kernel_width * strip.b_tap;
    const std::int64_t visits = std::int64_t{2} * out_blocks_ * window_.taps() * in_blocks_;
    const std::int64_t read =
        std::int64_t{1} * kStripTiles * kHalf * window_.stride * window_.stride * window_.from.channels;
    std::int64_t copied = 0;  // rows of the image below this index are already copied
    const int strips = strips_of(rows);
    for (int number = 0; number < strips; ++number) {
      const Place place = place_of(rows, number);
      strip.tiles = place.tiles;
      copied = std::max<std::int64_t>(copied, place.y[0] * window_.stride - lead_);
      const std::int64_t needed = std::min<std::int64_t>(
          window_.from.height, place.last_y() * window_.stride - lead_ + window_.kernel_height);
      for (; copied < needed; ++copied) copy_row(image + copied * window_.row_stride(), slot(ring, copied));
      point_at_rows(place, ring, strip.a_pixel, under.data());
      for (std::size_t t = 0; t < kStripTiles; ++t)
        strip.to[t] =
            result + (std::int64_t{1} * place.y[t] * window_.to.width + place.x[t]) * window_.to.channels;
      fetch_next(strip, visits,
                 {.from = image + needed * window_.row_stride() + place.share * read,
                  .read = read,
                  .product = reinterpret_cast<std::uint16_t*>(to(o)),
                  .at = (n * pixels() + place.behind) * window_.to.channels,
                  .written = std::int64_t{1} * kStripTiles * kHalf * window_.to.channels});
      kernels_.multiply_strip(strip);
    }
  }

  /// The tiles of a strip: where each of them begins.
  struct Place {
    int tiles = 0;
    std::array<int, kStripTiles> y{}, x{};
    int share = 0;            ///< which share of the next rows to fetch, if several strips use the same rows
    std::int64_t behind = 0;  ///< the first pixel after this strip
    [[nodiscard]] int last_y() const { return y[static_cast<std::size_t>(tiles - 1)]; }
  };
  [[nodiscard]] int strips_of(Range rows) const {
    const auto height = static_cast<int>(rows.size());
    if (is_tall_) return (height + kStripTiles - 1) / kStripTiles * tiles_of_row_;
    return (height * tiles_of_row_ + kStripTiles - 1) / kStripTiles;
  }
  /// Four rows with one tile each, or four tiles in memory order.
  [[nodiscard]] Place place_of(Range rows, int number) const {
    const auto begin = static_cast<int>(rows.begin), height = static_cast<int>(rows.size());
    const int band = is_tall_ ? number / tiles_of_row_ * kStripTiles : 0;
    const int first = number * kStripTiles, all = height * tiles_of_row_;
    Place place{.tiles = std::min(kStripTiles, is_tall_ ? height - band : all - first)};
    if (is_tall_) place.share = number % tiles_of_row_;
    for (int t = 0; t < place.tiles; ++t) {
      const int y = is_tall_ ? band + t : (first + t) / tiles_of_row_;
      const int tile = is_tall_ ? place.share : (first + t) % tiles_of_row_;
      place.y[static_cast<std::size_t>(t)] = begin + y;
      place.x[static_cast<std::size_t>(t)] = std::min(tile * kHalf, window_.to.width - kHalf);
    }
    const int behind =
        is_tall_ ? (band + place.tiles) * tiles_of_row_ + place.share * kStripTiles : first + place.tiles;
    place.behind = begin * window_.to.width + std::int64_t{1} * behind * kHalf;
    return place;
  }

  /// Strip.rows.
  void point_at_rows(const Place& place, std::uint16_t* ring, std::int64_t a_pixel,
                     const std::uint16_t** under) const {
    if (is_tall_) {
      for (int r = 0; r < place.tiles + window_.kernel_height - 1; ++r) {
        const int row = place.y[0] - lead_ + r;
        const bool is_inside = row >= 0 && row < window_.from.height;
        under[r] = is_inside ? slot(ring, row) + place.x[0] * a_pixel : nullptr;
      }
      return;
    }
    for (std::size_t t = 0; t < static_cast<std::size_t>(place.tiles); ++t)
      for (int i = 0; i < window_.kernel_height; ++i)
        under[static_cast<std::size_t>(i * kStripTiles) + t] =
            slot(ring, std::int64_t{1} * place.y[t] * window_.stride - lead_ + i) + place.x[t] * a_pixel;
  }

  /// Where a row of the image lies, or the row of zeros.
  [[nodiscard]] std::uint16_t* slot(std::uint16_t* ring, std::int64_t row) const {
    return ring + (row < 0 || row >= window_.from.height ? ring_ : row % ring_) * row_elements();
  }
  void copy_row(const std::uint16_t* from, std::uint16_t* slot) const {
    const int channels = window_.from.channels;
    std::uint16_t* pixel = slot + std::int64_t{1} * lead_ * channels;
    if (window_.step == 1) {
      std::copy_n(from, std::int64_t{1} * copied_ * channels, pixel);
      return;
    }
    for (int x = 0; x < copied_; ++x, from += window_.pixel_stride(), pixel += channels)
      std::copy_n(from, channels, pixel);
  }

  const int lead_;  ///< columns, and rows, in front of the image
  const int tiles_of_row_;
  const bool is_tall_;                     ///< tiles one below the other
  const int ring_;                         ///< rows
  const int columns_;                      ///< of a row, with its padding
  const int copied_;                       ///< of them from the image
  const int parts_;                        ///< of its rows
  std::array<std::int64_t, kHalf> steps_;  ///< from pixel to pixel
};

std::optional<std::string> limit(const ConvShape& s, Direction direction, const TileKernels& kernels) {
  if (kernels.multiply_strip == nullptr) return "is for AMX";
  if (s.is_dense || s.padding >= s.kernel || s.kernel > kMostKernel)
    return "is for convolutions with kernels up to 7x7 and less padding";
  if (direction == Direction::backward_data && s.stride > 1) return "is for backward data with stride 1";
  const bool is_forward = direction == Direction::forward;
  if ((is_forward ? s.dst_type : s.type) != Storage::bf16) return "writes bf16";
  const int width = is_forward ? s.dst.width : s.src.width;
  const int computed = (width + kHalf - 1) / kHalf * kHalf;
  if (width < kHalf || 4 * width < 3 * computed) return "needs rows that fill three quarters of 16 pixels";
  if (s.src.channels % kBlock != 0 || s.dst.channels % kBlock != 0) return "needs multiples of 32 channels";
  if (2 * s.weights() > kMostWeightBytes) return "needs weights that fit into a near cache";
  return std::nullopt;
}

bool prefers(const ConvShape& s, Direction direction) {
  return (s.kernel > 1 && std::min(s.src.channels, s.dst.channels) >= kPreferredChannels) ||
         fills_tiles(s, direction);
}

}  // namespace

extern constexpr Bf16Algorithm kPixelRows = {
    .name = "pixel-rows",
    .limit = limit,
    .prefers = prefers,
    .preference =
        "is preferred from 64 channels up, for kernels above 1x1 or with 16 samples and small images",
    .chunk = samples_of_chunk,
    .make_reader = make_reader_of<PixelRowsKernel>};

}  // namespace paceline::engine::cpu
