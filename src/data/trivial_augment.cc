#include "data/trivial_augment.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace paceline::data {
namespace {

/// Equal steps from 0 to `most` in fp32. The last bits of torch.linspace depend on the processor.
double at_strength(float most, int strength) {
  return static_cast<double>(
      static_cast<float>(static_cast<double>(most) * strength / (kTrivialStrengths - 1)));
}

/// Output to source coordinates: x = xx * x + xy * y + x0, likewise y.
struct Affine {
  double xx = 1, xy = 0, x0 = 0, yx = 0, yy = 1, y0 = 0;
};

/// Pillow's affine transform: the nearest pixel, computed in 16.16 fixed point from the pixels' middles.
void transform(const ImageFormat& format, const Affine& map, std::span<const std::uint8_t> src,
               std::span<std::uint8_t> dst) {
  const auto fixed = [](double value) {
    return static_cast<std::int64_t>(std::floor(value * 65536.0 + 0.5));
  };
  const int channels = format.channels;
  const std::int64_t xx = fixed(map.xx), xy = fixed(map.xy), yx = fixed(map.yx), yy = fixed(map.yy);
  std::int64_t row_x = fixed(map.x0 + map.xx * 0.5 + map.xy * 0.5);
  std::int64_t row_y = fixed(map.y0 + map.yx * 0.5 + map.yy * 0.5);
  std::uint8_t* out = dst.data();
  for (int y = 0; y < format.height; ++y, row_x += xy, row_y += yy) {
    std::int64_t at_x = row_x, at_y = row_y;
    for (int x = 0; x < format.width; ++x, at_x += xx, at_y += yx, out += channels) {
      const std::int64_t from_x = at_x >> 16, from_y = at_y >> 16;
      if (from_x < 0 || from_x >= format.width || from_y < 0 || from_y >= format.height)
        std::fill_n(out, channels, std::uint8_t{0});
      else
        std::copy_n(src.data() + (from_y * format.width + from_x) * channels, channels, out);
    }
  }
}

/// Pillow's rotation around the middle, counter-clockwise.
Affine rotation(const ImageFormat& format, double degrees) {
  const auto rounded = [](double value) { return std::round(value * 1e15) / 1e15; };
  const double angle = -std::fmod(degrees + 360, 360) * std::numbers::pi / 180;
  const double c = rounded(std::cos(angle)), s = rounded(std::sin(angle));
  const double middle_x = format.width / 2.0, middle_y = format.height / 2.0;
  return {.xx = c,
          .xy = s,
          .x0 = c * -middle_x + s * -middle_y + middle_x,
          .yx = -s,
          .yy = c,
          .y0 = -s * -middle_x + c * -middle_y + middle_y};
}

/// Pillow's Image.blend: from `other` (factor 0) to `value` (1) and beyond, in float, cut off.
std::uint8_t blend_cut(int other, int value, float factor) {
  const float mixed = static_cast<float>(other) + factor * static_cast<float>(value - other);
  return mixed <= 0 ? 0 : mixed >= 255 ? 255 : static_cast<std::uint8_t>(mixed);
}

int grey_at(const ImageFormat& format, const std::uint8_t* pixel) {
  return format.channels == 3 ? grey_of(pixel) : *pixel;
}

/// The mean of the grey image, as Pillow's ImageEnhance.Contrast rounds it.
int mean_grey(const ImageFormat& format, std::span<const std::uint8_t> pixels) {
  std::int64_t sum = 0;
  const auto step = static_cast<std::size_t>(format.channels);
  for (std::size_t i = 0; i < pixels.size(); i += step) sum += grey_at(format, &pixels[i]);
  const auto count = static_cast<double>(pixels.size() / step);
  return static_cast<int>(static_cast<double>(sum) / count + 0.5);
}

/// Pillow's ImageFilter.SMOOTH: 13ths, the middle five times; the edge stays.
void smooth(const ImageFormat& format, std::span<const std::uint8_t> src, std::span<std::uint8_t> dst) {
  std::ranges::copy(src, dst.begin());
  const int channels = format.channels, row = format.width * channels;
  for (int y = 1; y + 1 < format.height; ++y)
    for (int i = y * row + channels; i < (y + 1) * row - channels; ++i) {
      const std::uint8_t* const at = src.data() + i;
      int sum = 4 * *at;
      for (const int down : {-row, 0, row})
        for (const int right : {-channels, 0, channels}) sum += at[down + right];
      dst[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>((2 * sum + 13) / 26);
    }
}

using Table = std::array<std::uint8_t, 256>;

/// Replaces each byte of each channel by that of table_of(histogram of the channel).
template <typename TableOf>
void look_up(const ImageFormat& format, std::span<std::uint8_t> pixels, const TableOf& table_of) {
  const auto step = static_cast<std::size_t>(format.channels);
  for (std::size_t c = 0; c < step; ++c) {
    std::array<int, 256> counts{};
    for (std::size_t i = c; i < pixels.size(); i += step) ++counts[pixels[i]];
    const Table table = table_of(counts);
    for (std::size_t i = c; i < pixels.size(); i += step) pixels[i] = table[pixels[i]];
  }
}

template <typename ByteOf>
Table table_from(const ByteOf& byte_of) {
  Table table;
  for (int value = 0; value < 256; ++value)
    table[static_cast<std::size_t>(value)] = static_cast<std::uint8_t>(std::clamp(byte_of(value), 0, 255));
  return table;
}

Table autocontrast(const std::array<int, 256>& counts) {
  int least = 0, most = 255;
  while (least < 255 && counts[static_cast<std::size_t>(least)] == 0) ++least;
  while (most > 0 && counts[static_cast<std::size_t>(most)] == 0) --most;
  if (most <= least) return table_from([](int value) { return value; });
  const double scale = 255.0 / (most - least), offset = -least * scale;
  return table_from([&](int value) { return static_cast<int>(value * scale + offset); });
}

Table equalize(const std::array<int, 256>& counts) {
  int sum = 0, last = 0, used = 0;
  for (const int count : counts)
    if (count > 0) {
      sum += count;
      last = count;
      ++used;
    }
  const int step = (sum - last) / 255;
  if (used <= 1 || step == 0) return table_from([](int value) { return value; });
  int n = step / 2;
  return table_from([&](int value) {
    const int level = n / step;
    n += counts[static_cast<std::size_t>(value)];
    return level;
  });
}

}  // namespace

TrivialChoice draw_trivial(base::Rng& rng) {
  TrivialChoice choice;
  choice.operation = static_cast<int>(rng.below(kTrivialOperations.size()));
  choice.strength = static_cast<int>(rng.below(kTrivialStrengths));
  choice.is_negative = (rng.next_u32() >> 31) != 0;
  return choice;
}

void apply_trivial(const ImageFormat& format, const TrivialChoice& choice, std::span<std::uint8_t> pixels,
                   std::span<std::uint8_t> copy) {
  base::expects(static_cast<std::int64_t>(pixels.size()) == format.bytes() && copy.size() == pixels.size(),
                "pixels and copy hold one image");
  const std::string_view name = kTrivialOperations[static_cast<std::size_t>(choice.operation)];
  const double sign = choice.is_negative ? -1 : 1;
  const auto moved = [&](const Affine& map) {
    std::ranges::copy(pixels, copy.begin());
    transform(format, map, copy, pixels);
  };
  const auto blended = [&](const auto& other_at) {
    const auto factor = static_cast<float>(1.0 + sign * at_strength(0.99f, choice.strength));
    if (factor == 1) return;
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = blend_cut(other_at(i), pixels[i], factor);
  };
  const double shear = std::tan(std::atan(sign * at_strength(0.99f, choice.strength)));
  const double shift = -sign * std::trunc(at_strength(32, choice.strength));
  const auto channels = static_cast<std::size_t>(format.channels);
  if (name == "ShearX") {
    moved({.xy = shear});
  } else if (name == "ShearY") {
    moved({.yx = shear});
  } else if (name == "TranslateX") {
    moved({.x0 = shift});
  } else if (name == "TranslateY") {
    moved({.y0 = shift});
  } else if (name == "Rotate") {
    moved(rotation(format, sign * at_strength(135, choice.strength)));
  } else if (name == "Brightness") {
    blended([](std::size_t) { return 0; });
  } else if (name == "Color") {
    std::ranges::copy(pixels, copy.begin());
    blended([&](std::size_t i) { return grey_at(format, &copy[i / channels * channels]); });
  } else if (name == "Contrast") {
    const int mean = mean_grey(format, pixels);
    blended([&](std::size_t) { return mean; });
  } else if (name == "Sharpness") {
    smooth(format, pixels, copy);
    blended([&](std::size_t i) { return static_cast<int>(copy[i]); });
  } else if (name == "Posterize") {
    const int bits = 8 - static_cast<int>(std::lround(choice.strength / 5.0));
    const int mask = ~((1 << (8 - bits)) - 1);
    for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(value & mask);
  } else if (name == "Solarize") {
    const double threshold = 255 - at_strength(255, choice.strength);
    for (std::uint8_t& value : pixels)
      if (value >= threshold) value = static_cast<std::uint8_t>(255 - value);
  } else if (name == "AutoContrast") {
    look_up(format, pixels, autocontrast);
  } else if (name == "Equalize") {
    look_up(format, pixels, equalize);
  }
}

ErasedBox draw_erased(const ImageFormat& format, base::Rng& rng) {
  const double area = static_cast<double>(format.height) * format.width;
  const double least = std::log(0.3), most = std::log(3.3);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double erased = area * (0.02 + (0.33 - 0.02) * rng.uniform_f64());
    const double ratio = std::exp(least + (most - least) * rng.uniform_f64());
    const auto height = static_cast<int>(std::lround(std::sqrt(erased * ratio)));
    const auto width = static_cast<int>(std::lround(std::sqrt(erased / ratio)));
    if (height >= format.height || width >= format.width) continue;
    return {.top = static_cast<int>(rng.below(static_cast<std::uint32_t>(format.height - height + 1))),
            .left = static_cast<int>(rng.below(static_cast<std::uint32_t>(format.width - width + 1))),
            .height = height,
            .width = width};
  }
  return {};
}

}  // namespace paceline::data
