#include "data/augment.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "base/error.h"

namespace paceline::data {
namespace {

/// Interpolation steps per pixel: enough that a byte is wrong by less than one.
constexpr int kParts = 256;

/// A coordinate between two pixels of the image: the pixels before and after it, and its distance from the
/// first in kParts.
struct Between {
  int before, behind, parts;
};

Between pixels_between(double at, int size) {
  const double inside = std::clamp(at, 0.0, static_cast<double>(size - 1));
  const int before = std::min(static_cast<int>(inside), size - 1);
  return {before, std::min(before + 1, size - 1), static_cast<int>(std::lround((inside - before) * kParts))};
}

/// dst[x][c] = table[c][src[x * step][c]] for `count` pixels; step is 1, or -1 for a mirrored row.
///
/// One load per value and no arithmetic: faster than converting and scaling without wide vectors, and the
/// same bits whatever instructions the compiler chooses.
template <int kChannels>
void normalise_row(const std::uint8_t* src, int count, int step, int channels, const float* table,
                   float* dst) {
  const int c_count = kChannels > 0 ? kChannels : channels;
  for (int x = 0; x < count; ++x) {
    for (int c = 0; c < c_count; ++c) dst[c] = table[c * 256 + src[c]];
    src += step * c_count;
    dst += c_count;
  }
}

void normalise(const std::uint8_t* src, int count, int step, int channels, const float* table, float* dst) {
  switch (channels) {
    case 1:
      return normalise_row<1>(src, count, step, channels, table, dst);
    case 3:
      return normalise_row<3>(src, count, step, channels, table, dst);
    default:
      return normalise_row<0>(src, count, step, channels, table, dst);
  }
}

/// Writes `count` pixels of padding: black in the stored image, so the normalised value of byte 0.
void fill_black(int count, int channels, const float* table, float* dst) {
  for (int x = 0; x < count; ++x)
    for (int c = 0; c < channels; ++c) *dst++ = table[c * 256];
}

// Colour factors are integers in this unit, so that every compiler gives the same bits.
constexpr int kFactorOne = 1 << 12;

/// Blends `other` and `value`: factor 1 gives `value`, 0 gives `other`, a factor above 1 goes beyond `value`.
std::uint8_t blend(int other, int value, int factor) {
  return static_cast<std::uint8_t>(
      std::clamp((other * kFactorOne + (value - other) * factor + kFactorOne / 2) >> 12, 0, 255));
}

/// Row or column `i` of an image that is mirrored at its first and last row or column.
/// Requires   size >= 2; i lies outside by less than `size`
int reflected(int i, int size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * size - 2 - i;
}

}  // namespace

WarpMap draw_warp(const WarpOptions& options, const ImageFormat& format, base::Rng& rng) {
  const auto draw = [&](double most) { return most * (2 * rng.uniform_f64() - 1); };
  const auto radians = [](double degrees) { return degrees * std::numbers::pi / 180; };
  const double angle = radians(draw(options.rotate)), shear = radians(draw(options.shear));
  const double down = draw(options.shift) * format.height, right = draw(options.shift) * format.width;
  // Rotation after shift after shear, as Keras multiplies them.
  const double c = std::cos(angle), s = std::sin(angle), sheared = -std::sin(shear), kept = std::cos(shear);
  return {.yy = c,
          .yx = c * sheared - s * kept,
          .xy = s,
          .xx = s * sheared + c * kept,
          .y = c * down - s * right,
          .x = s * down + c * right};
}

void warp(const ImageFormat& format, const WarpMap& map, std::span<const std::uint8_t> src,
          std::span<std::uint8_t> dst) {
  base::expects(static_cast<std::int64_t>(src.size()) == format.bytes() && dst.size() == src.size(),
                "src and dst hold one image");
  const double middle_y = (format.height - 1) / 2.0, middle_x = (format.width - 1) / 2.0;
  const int channels = format.channels, row = format.width * channels;
  std::uint8_t* out = dst.data();
  for (int y = 0; y < format.height; ++y)
    for (int x = 0; x < format.width; ++x) {
      const double from_y = y - middle_y, from_x = x - middle_x;
      const Between v = pixels_between(map.yy * from_y + map.yx * from_x + map.y + middle_y, format.height);
      const Between h = pixels_between(map.xy * from_y + map.xx * from_x + map.x + middle_x, format.width);
      const std::uint8_t *upper = src.data() + v.before * row, *lower = src.data() + v.behind * row;
      for (int k = 0; k < channels; ++k) {
        const int left = h.before * channels + k, right = h.behind * channels + k;
        const int above = upper[left] * (kParts - h.parts) + upper[right] * h.parts;
        const int below = lower[left] * (kParts - h.parts) + lower[right] * h.parts;
        *out++ = static_cast<std::uint8_t>(
            (above * (kParts - v.parts) + below * v.parts + kParts * kParts / 2) / (kParts * kParts));
      }
    }
}

Augment::Augment(const ImageFormat& format, AugmentOptions options)
    : format_(format), options_(std::move(options)) {
  const auto channels = static_cast<std::size_t>(format.channels);
  base::expects(format.bytes() > 0, "an image has pixels");
  base::expects(options_.crop_padding >= 0, "crop padding >= 0");
  base::expects(
      options_.crop_fill == CropFill::black || options_.crop_padding < std::min(format.height, format.width),
      "a crop reaches less than an image over its edge where it is reflected");
  base::expects(options_.mean.size() == channels && options_.stddev.size() == channels,
                "one mean and one standard deviation a channel");
  table_.resize(channels * 256);
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t value = 0; value < 256; ++value)
      table_[c * 256 + value] = static_cast<float>((static_cast<double>(value) / 255.0 - options_.mean[c]) /
                                                   static_cast<double>(options_.stddev[c]));
}

base::Rng Augment::rng(base::Purpose purpose, std::int64_t epoch, std::int64_t position) const {
  return {options_.seed, purpose, static_cast<std::uint64_t>(position), static_cast<std::uint64_t>(epoch)};
}

base::SampleDraw Augment::draw(std::int64_t index, std::int64_t epoch, std::int64_t position) const {
  base::SampleDraw draw{.index = static_cast<std::int32_t>(index),
                        .reflects = options_.crop_fill == CropFill::reflect};
  const int padding = options_.crop_padding;
  if (padding == 0 && options_.flip == Flip::none) return draw;
  base::Rng drawn = rng(base::Purpose::augment, epoch, position);
  const auto range = static_cast<std::uint32_t>(2 * padding + 1);
  draw.shift_y = static_cast<int>(drawn.below(range)) - padding;
  draw.shift_x = static_cast<int>(drawn.below(range)) - padding;
  if (options_.flip == Flip::random) {
    draw.is_mirrored = (drawn.next_u32() >> 31) != 0;
  } else if (options_.flip == Flip::alternating) {
    base::Rng first(options_.seed, base::Purpose::flip, static_cast<std::uint64_t>(index));
    draw.is_mirrored = ((first.next_u32() >> 31) != 0) != (epoch % 2 != 0);
  }
  return draw;
}

void Augment::show(std::span<const std::uint8_t> pixels, const base::SampleDraw& draw,
                   std::span<float> dst) const {
  const bool is_mirrored = draw.is_mirrored != 0, reflects = draw.reflects != 0;
  if (draw.shift_y == 0 && draw.shift_x == 0 && !is_mirrored) return evaluate(pixels, dst);
  base::expects(static_cast<std::int64_t>(pixels.size()) == format_.bytes() && dst.size() == pixels.size(),
                "pixels and dst hold one image");
  const int height = format_.height, width = format_.width, channels = format_.channels;
  const int row_values = width * channels;
  // Columns of the cropped row that come from the image, before mirroring.
  const int from = std::clamp(-draw.shift_x, 0, width);
  const int to = std::clamp(width - draw.shift_x, from, width);
  const int before = is_mirrored ? width - to : from;
  const float* table = table_.data();
  for (int y = 0; y < height; ++y) {
    float* row = dst.data() + static_cast<std::ptrdiff_t>(y) * row_values;
    const int wanted_y = y + draw.shift_y;
    const int src_y = reflects ? reflected(wanted_y, height) : wanted_y;
    if (src_y < 0 || src_y >= height) {
      fill_black(width, channels, table, row);
      continue;
    }
    const std::uint8_t* src = pixels.data() + static_cast<std::ptrdiff_t>(src_y) * row_values;
    // Fills columns [begin, end) of the output row, which lie outside the image.
    const auto fill = [&](int begin, int end) {
      if (!reflects) return fill_black(end - begin, channels, table, row + begin * channels);
      for (int x = begin; x < end; ++x) {
        const int src_x = reflected((is_mirrored ? width - 1 - x : x) + draw.shift_x, width);
        normalise(src + src_x * channels, 1, 1, channels, table, row + x * channels);
      }
    };
    fill(0, before);
    const int first_src = is_mirrored ? to - 1 + draw.shift_x : from + draw.shift_x;
    if (to > from)
      normalise(src + first_src * channels, to - from, is_mirrored ? -1 : 1, channels, table,
                row + before * channels);
    fill(before + (to - from), width);
  }
}

std::int32_t Augment::read_train(const Dataset& dataset, std::int64_t index, std::int64_t epoch,
                                 std::int64_t position, std::span<std::uint8_t> scratch,
                                 std::span<float> dst) const {
  const auto choose = [&](int height, int width) { return part(height, width, epoch, position); };
  const std::int32_t label = options_.crop_area > 0 ? dataset.read_part(index, std::cref(choose), scratch)
                                                    : dataset.read(index, scratch);
  if (options_.jitter > 0) jitter(scratch, epoch, position);
  const std::span<std::uint8_t> copy(reinterpret_cast<std::uint8_t*>(dst.data()), scratch.size());
  if (!options_.warp.is_none()) {
    std::ranges::copy(scratch, copy.begin());
    auto drawn = rng(base::Purpose::warp, epoch, position);
    warp(format_, draw_warp(options_.warp, format_, drawn), copy, scratch);
  }
  if (options_.trivial) {
    auto drawn = rng(base::Purpose::trivial, epoch, position);
    apply_trivial(format_, draw_trivial(drawn), scratch, copy);
  }
  show(scratch, draw(index, epoch, position), dst);
  if (options_.erase > 0) erase(epoch, position, dst);
  return label;
}

void Augment::erase(std::int64_t epoch, std::int64_t position, std::span<float> dst) const {
  auto drawn = rng(base::Purpose::erase, epoch, position);
  if (drawn.uniform_f64() >= options_.erase) return;
  const ErasedBox box = draw_erased(format_, drawn);
  for (int y = box.top; y < box.top + box.height; ++y)
    std::fill_n(dst.begin() + (std::ptrdiff_t{y} * format_.width + box.left) * format_.channels,
                box.width * format_.channels, 0.0f);
}

Box Augment::part(int height, int width, std::int64_t epoch, std::int64_t position) const {
  auto drawn = rng(base::Purpose::crop, epoch, position);
  const double shape = static_cast<double>(format_.width) / format_.height;
  const double least = std::log(3.0 / 4.0 * shape), most = std::log(4.0 / 3.0 * shape);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double share = options_.crop_area + (1 - options_.crop_area) * drawn.uniform_f64();
    const double area = share * height * width;
    const double ratio = std::exp(least + (most - least) * drawn.uniform_f64());
    const auto box_width = std::lround(std::sqrt(area * ratio));
    const auto box_height = std::lround(std::sqrt(area / ratio));
    if (box_width < 1 || box_width > width || box_height < 1 || box_height > height) continue;
    const auto top = drawn.below(static_cast<std::uint32_t>(height - box_height + 1));
    const auto left = drawn.below(static_cast<std::uint32_t>(width - box_width + 1));
    return {.top = static_cast<double>(top),
            .left = static_cast<double>(left),
            .height = static_cast<double>(box_height),
            .width = static_cast<double>(box_width)};
  }
  // For a very long image: the largest part of its centre with proportions in the range.
  const double ratio = std::clamp(static_cast<double>(width) / height, std::exp(least), std::exp(most));
  const double box_width = std::min<double>(width, height * ratio);
  const double box_height = std::min<double>(height, width / ratio);
  return {.top = (height - box_height) / 2,
          .left = (width - box_width) / 2,
          .height = box_height,
          .width = box_width};
}

void Augment::jitter(std::span<std::uint8_t> pixels, std::int64_t epoch, std::int64_t position) const {
  base::expects(format_.channels == 3 && pixels.size() % 3 == 0, "colours are RGB");
  auto drawn = rng(base::Purpose::jitter, epoch, position);
  const auto draw = [&] {
    return static_cast<int>(std::lround((1 + options_.jitter * (2 * drawn.uniform_f64() - 1)) * kFactorOne));
  };
  const int brightness = draw(), contrast = draw(), saturation = draw();
  std::int64_t grey = 0;
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    for (std::size_t c = 0; c < 3; ++c) pixels[i + c] = blend(0, pixels[i + c], brightness);
    grey += grey_of(&pixels[i]);
  }
  const auto count = static_cast<std::int64_t>(pixels.size() / 3);
  const int mean = static_cast<int>((grey + count / 2) / count);
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    for (std::size_t c = 0; c < 3; ++c) pixels[i + c] = blend(mean, pixels[i + c], contrast);
    const int own = grey_of(&pixels[i]);
    for (std::size_t c = 0; c < 3; ++c) pixels[i + c] = blend(own, pixels[i + c], saturation);
  }
}

void Augment::evaluate(std::span<const std::uint8_t> pixels, std::span<float> dst) const {
  base::expects(static_cast<std::int64_t>(pixels.size()) == format_.bytes() && dst.size() == pixels.size(),
                "pixels and dst hold one image");
  normalise(pixels.data(), format_.height * format_.width, 1, format_.channels, table_.data(), dst.data());
}

base::SampleDraw Augment::view_draw(std::int64_t index, int view) {
  constexpr int kShifts[] = {0, 1, -1};
  base::expects(view >= 0 && view < kMostViews, "the view exists");
  const int shift = kShifts[view / 2];
  return {.index = static_cast<std::int32_t>(index),
          .shift_y = shift,
          .shift_x = shift,
          .is_mirrored = static_cast<std::int16_t>(view % 2),
          .reflects = 1};
}

}  // namespace paceline::data
