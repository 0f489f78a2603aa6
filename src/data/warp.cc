#include "data/warp.h"

#include <algorithm>
#include <cmath>
#include <numbers>

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

}  // namespace paceline::data
