#include "data/formats/formats.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>
#include <type_traits>

#include "base/error.h"
#include "base/rng.h"

// Terms. The CANVAS holds the picture in light of full strength, [kSide][kSide][3], 0 .. 255. First the
// GROUND is drawn on it: a blend of four corner colours with a faint texture. Then some DISTRACTORS, small
// plain patches in the colours that objects have. Then the OBJECT: a shape filled with a texture of two
// colours. Then one more distractor, which may cover a part of the object. Last, LIGHT and noise turn the
// canvas into pixels.
//
// Units: a position is in 1/256 of a pixel ("px8"); a colour part is 0 .. 255; an angle is 0 .. 255 for a
// full turn; inside a shape, 1024 is its radius ("unit10").

namespace paceline::data {
namespace {

constexpr int kSide = 32;  ///< of the square image

using Colour = std::array<int, 3>;
using Canvas = std::array<std::int16_t, kSide * kSide * 3>;

int draw_between(base::Rng& rng, int low, int high) {  // both included
  return low + static_cast<int>(rng.below(static_cast<std::uint32_t>(high - low + 1)));
}

/// sin(2 pi angle / 256) * 16384, from a quarter of the wave in steps of 4.
int sine(int angle) {
  constexpr int kQuarter[] = {0,     1606,  3196,  4756,  6270,  7723,  9102,  10394, 11585,
                              12665, 13623, 14449, 15137, 15679, 16069, 16305, 16384};
  angle &= 255;
  const int folded = angle & 127;
  const int in_quarter = folded <= 64 ? folded : 128 - folded;
  const int low = kQuarter[in_quarter / 4];
  const int high = in_quarter == 64 ? low : kQuarter[in_quarter / 4 + 1];
  const int value = low + (high - low) * (in_quarter % 4) / 4;
  return angle < 128 ? value : -value;
}
int cosine(int angle) { return sine(angle + 64); }

// Five colours on a wheel. A scheme is two that are not neighbours: each colour is in two schemes, and the
// mean of a scheme is near grey.
constexpr Colour kWheel[5] = {{208, 62, 54}, {206, 178, 56}, {66, 172, 78}, {58, 96, 206}, {168, 74, 190}};

Colour vary(base::Rng& rng, Colour colour, int by) {
  for (auto& part : colour) part = std::clamp(part + draw_between(rng, -by, by), 0, 255);
  return colour;
}

/// Two coordinates that rotate and scale with an object or a texture; both are linear in the pixel's x and y.
struct Frame {
  int along_x, across_x;  ///< change for one pixel to the right
  int along_y, across_y;  ///< for one pixel down
  int along_0, across_0;  ///< at the centre of pixel (0, 0)
};

/// Position and scale of a frame. Random numbers are drawn inside braces, whose parts are evaluated in order.
/// The order of a call's arguments depends on the compiler, and so would the images.
struct FramePlace {
  int x, y;  ///< of the origin, px8
  int angle;
  int length;  ///< px8: this long ...
  int units;   ///< ... is so many units in the frame
};

Frame make_frame(const FramePlace& place) {
  const auto scaled = [&](int wave) {  // the change for one pixel
    return static_cast<int>(static_cast<std::int64_t>(wave) * place.units * 256 / place.length / 16384);
  };
  const int c = scaled(cosine(place.angle)), s = scaled(sine(place.angle));
  const auto at_first_pixel = [&](int per_x, int per_y) {
    return static_cast<int>((static_cast<std::int64_t>(128 - place.x) * per_x +
                             static_cast<std::int64_t>(128 - place.y) * per_y) /
                            256);
  };
  return {.along_x = c,
          .across_x = -s,
          .along_y = s,
          .across_y = c,
          .along_0 = at_first_pixel(c, s),
          .across_0 = at_first_pixel(-s, c)};
}

enum Figure { disc, square, triangle, cross, ring };

/// How far inside the shape the point (u, v) lies, unit10; negative outside. Near the edge it is a distance.
template <int kShape>
int depth(int u, int v) {
  const int abs_u = std::abs(u), abs_v = std::abs(v);
  if constexpr (kShape == disc)
    return (960 * 960 - (u * u + v * v)) >> 11;  // (R^2 - r^2) / 2R is about R - r
  if constexpr (kShape == square) return 820 - std::max(abs_u, abs_v);
  if constexpr (kShape == triangle) return 540 - std::max(v, (887 * abs_u - 512 * v) >> 10);
  if constexpr (kShape == cross)
    return std::max(std::min(310 - abs_u, 1000 - abs_v), std::min(310 - abs_v, 1000 - abs_u));
  if constexpr (kShape == ring) {
    const int square_of_radius = u * u + v * v;
    return std::min((1000 * 1000 - square_of_radius) >> 11, (square_of_radius - 520 * 520) >> 10);
  }
}

enum Texture { stripes, checks, dots, bands, halves };
constexpr int kPeriod = 1 << 12;  // of a texture, in the units of its frame

/// Which of the two colours a texture has at (p, q): 0 or 1.
template <int kTexture>
int texel(int p, int q) {
  constexpr int kHalf = kPeriod / 2;
  if constexpr (kTexture == stripes) return (p & kHalf) != 0;
  if constexpr (kTexture == checks) return ((p ^ q) & kHalf) != 0;
  if constexpr (kTexture == dots) {
    const int a = (p & (kPeriod - 1)) - kHalf, b = (q & (kPeriod - 1)) - kHalf;
    return a * a + b * b < 1250 * 1250;
  }
  if constexpr (kTexture == bands) {  // octagons around the origin
    const int a = std::abs(p), b = std::abs(q);
    return ((std::max(a, b) + (std::min(a, b) * 3 >> 3)) & kHalf) != 0;
  }
  if constexpr (kTexture == halves) return p >= 0;
}

/// Calls `body` with the number as a compile-time constant, so that the inner loops know their shape and
/// texture.
template <typename Body>
void with_constant(int value, Body body) {
  switch (value) {
    case 0:
      return body(std::integral_constant<int, 0>{});
    case 1:
      return body(std::integral_constant<int, 1>{});
    case 2:
      return body(std::integral_constant<int, 2>{});
    case 3:
      return body(std::integral_constant<int, 3>{});
    default:
      return body(std::integral_constant<int, 4>{});
  }
}

/// Draws four corner colours blended over the canvas, plus or minus a faint texture of any kind.
void draw_ground(base::Rng& rng, Canvas& canvas) {
  std::array<Colour, 4> corners;
  for (auto& corner : corners) {
    const Colour hue = kWheel[rng.below(5)];
    const int grey = draw_between(rng, 40, 200),
              strength = draw_between(rng, 40, 230);  // strength of the hue in 1/256
    for (std::size_t c = 0; c < 3; ++c) corner[c] = grey + (hue[c] - grey) * strength / 256;
  }
  const int contrast = draw_between(rng, 0, 26);
  const Frame frame = make_frame({.x = draw_between(rng, 0, 8191),
                                  .y = draw_between(rng, 0, 8191),
                                  .angle = draw_between(rng, 0, 255),
                                  .length = draw_between(rng, 4 * 256, 9 * 256),
                                  .units = kPeriod});
  with_constant(
      static_cast<int>(rng.below(4)), [&](auto texture) {  // not the texture "halves", which would be an edge
        std::int16_t* dst = canvas.data();
        for (int y = 0; y < kSide; ++y) {
          std::array<int, 3> left, step;
          for (std::size_t c = 0; c < 3; ++c) {
            left[c] = corners[0][c] * (kSide - 1 - y) + corners[2][c] * y;
            step[c] = corners[1][c] * (kSide - 1 - y) + corners[3][c] * y - left[c];
            left[c] *= kSide - 1;
          }
          int p = frame.along_0 + y * frame.along_y, q = frame.across_0 + y * frame.across_y;
          for (int x = 0; x < kSide; ++x) {
            const int shade = texel<texture()>(p, q) != 0 ? contrast : -contrast;
            for (std::size_t c = 0; c < 3; ++c)
              *dst++ =
                  static_cast<std::int16_t>((left[c] + x * step[c]) / ((kSide - 1) * (kSide - 1)) + shade);
            p += frame.along_x;
            q += frame.across_x;
          }
        }
      });
}

/// Draws a plain disc or rectangle with a radius of 2 to 4 pixels, in a colour that objects have.
void draw_distractor(base::Rng& rng, Canvas& canvas) {
  const int x = draw_between(rng, 0, kSide * 256 - 1), y = draw_between(rng, 0, kSide * 256 - 1);
  const int radius_x = draw_between(rng, 256, 3 * 256), radius_y = draw_between(rng, 256, 3 * 256);
  const bool is_disc = (rng.next_u32() & 1) != 0;
  const Colour colour = vary(rng, kWheel[rng.below(5)], 40);
  const int from_y = std::max(0, (y - radius_y) / 256), to_y = std::min(kSide - 1, (y + radius_y) / 256);
  const int from_x = std::max(0, (x - radius_x) / 256), to_x = std::min(kSide - 1, (x + radius_x) / 256);
  for (int py = from_y; py <= to_y; ++py) {
    for (int px = from_x; px <= to_x; ++px) {
      const int dx = px * 256 + 128 - x, dy = py * 256 + 128 - y;
      const bool inside = is_disc ? dx * dx + dy * dy <= radius_x * radius_x
                                  : std::abs(dx) <= radius_x && std::abs(dy) <= radius_y;
      if (!inside) continue;
      std::int16_t* dst = canvas.data() + (py * kSide + px) * 3;
      for (std::size_t c = 0; c < 3; ++c) dst[c] = static_cast<std::int16_t>(colour[c]);
    }
  }
}

void draw_object(const Cues& cues, base::Rng& rng, Canvas& canvas) {
  const int radius = draw_between(rng, 8 * 256, 12 * 256);  // px8
  const int margin = radius * 3 / 4;                        // a part of the object may lie outside
  const int x = draw_between(rng, margin, kSide * 256 - margin),
            y = draw_between(rng, margin, kSide * 256 - margin);
  const Frame shape_frame =
      make_frame({.x = x, .y = y, .angle = draw_between(rng, 0, 255), .length = radius, .units = 1024 << 10});
  const Frame texture_frame = make_frame({.x = x + draw_between(rng, -200, 200),
                                          .y = y + draw_between(rng, -200, 200),
                                          .angle = draw_between(rng, 0, 255),
                                          .length = draw_between(rng, 4 * 256 + 128, 7 * 256),
                                          .units = kPeriod});
  const bool swapped = (rng.next_u32() & 1) != 0;
  const Colour one = vary(rng, kWheel[cues.scheme], 34), other = vary(rng, kWheel[(cues.scheme + 2) % 5], 34);
  const Colour colours[2] = {swapped ? other : one, swapped ? one : other};

  const int reach = radius * 23 / 16;  // distance of a square's corner
  const int from_y = std::max(0, (y - reach) / 256), to_y = std::min(kSide - 1, (y + reach) / 256);
  const int from_x = std::max(0, (x - reach) / 256), to_x = std::min(kSide - 1, (x + reach) / 256);
  with_constant(cues.shape, [&](auto shape) {
    with_constant(cues.texture, [&](auto texture) {
      for (int py = from_y; py <= to_y; ++py) {
        int u = shape_frame.along_0 + py * shape_frame.along_y + from_x * shape_frame.along_x;
        int v = shape_frame.across_0 + py * shape_frame.across_y + from_x * shape_frame.across_x;
        int p = texture_frame.along_0 + py * texture_frame.along_y + from_x * texture_frame.along_x;
        int q = texture_frame.across_0 + py * texture_frame.across_y + from_x * texture_frame.across_x;
        std::int16_t* dst = canvas.data() + (py * kSide + from_x) * 3;
        for (int px = from_x; px <= to_x; ++px, dst += 3) {
          const int distance = depth<shape()>(u >> 10, v >> 10) * radius >> 10;  // px8
          const int cover = std::clamp(distance + 128, 0, 256);                  // of the pixel, in 1/256
          const Colour& colour = colours[texel<texture()>(p, q)];
          for (std::size_t c = 0; c < 3; ++c)
            dst[c] = static_cast<std::int16_t>(dst[c] + ((colour[c] - dst[c]) * cover >> 8));
          u += shape_frame.along_x;
          v += shape_frame.across_x;
          p += texture_frame.along_x;
          q += texture_frame.across_x;
        }
      }
    });
  });
}

/// The next 64 bits of a splitmix64 sequence (Steele, Lea & Flood, OOPSLA 2014): a Philox call per pixel
/// would be most of the cost of an image.
std::uint64_t splitmix(std::uint64_t& state) {
  std::uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// pixels = light * canvas + offset + noise. The light has a colour: each channel has its own strength. The
/// noise of a value is the difference of two uniform bytes, a triangular distribution with standard deviation
/// 104 before it is scaled.
void expose(base::Rng& rng, const Canvas& canvas, std::span<std::uint8_t> pixels) {
  const int light = draw_between(rng, 150, 290);  // 1/256
  std::array<int, 3> lights;
  for (auto& part : lights) part = light * draw_between(rng, 190, 256) / 256;
  const int offset = draw_between(rng, -12, 24);
  const int noise = draw_between(rng, 20, 64);  // 1/256 of the triangle: standard deviation 8 to 26 levels
  std::uint64_t state = rng.next_u64();
  for (std::size_t i = 0; i < canvas.size(); i += 3) {
    const std::uint64_t word = splitmix(state);
    for (std::size_t c = 0; c < 3; ++c) {
      const int grain =
          static_cast<int>(word >> (16 * c) & 255) - static_cast<int>(word >> (16 * c + 8) & 255);
      const int value = (canvas[i + c] * lights[c] + grain * noise) / 256 + offset;
      pixels[i + c] = static_cast<std::uint8_t>(std::clamp(value, 0, 255));
    }
  }
}

/// Draws an object with `cues`, its surroundings and noise; everything else is random, from `rng`. In integer
/// arithmetic: the same bits with every compiler and instruction set.
///
/// Shapes   pixels uint8 [kSide][kSide][3]
void draw_synthetic(const Cues& cues, base::Rng& rng, std::span<std::uint8_t> pixels) {
  Canvas canvas;
  draw_ground(rng, canvas);
  for (int count = draw_between(rng, 2, 4); count > 0; --count) draw_distractor(rng, canvas);
  draw_object(cues, rng, canvas);
  draw_distractor(rng, canvas);
  expose(rng, canvas, pixels);
}

constexpr int kClasses = 10;
constexpr std::uint32_t kFalseCueOf16 = 2;  // in 2 of 16 images one cue is drawn at random instead

/// The label of `index`: each block of ten consecutive samples contains every class once, in its own random
/// order.
int label_of(std::int64_t index, base::Rng& rng) {
  constexpr std::uint32_t kSteps[] = {1, 3, 7, 9};  // prime to 10
  const std::uint32_t word = rng.next_u32();
  const std::uint32_t step = kSteps[word & 3];
  return static_cast<int>((static_cast<std::uint32_t>(index % kClasses) * step + (word >> 2) % kClasses) %
                          kClasses);
}

enum class SyntheticSplit : std::uint64_t { train = 0, test = 1 };

/// What a spec asks for beside the numbers of images.
struct SyntheticForm {
  std::uint64_t seed = 0;
  int side = kSide;        ///< of an image; other than kSide: each pixel is the drawn one at its place
  int classes = kClasses;  ///< fewer: some share a label; more: some labels share a picture
  std::chrono::microseconds delay = {};
  /// The label of image `index`, whose picture is that of one of the ten classes.
  [[nodiscard]] std::int32_t label(int picture, std::int64_t index) const {
    if (classes <= kClasses) return picture % classes;
    const int label =
        picture + kClasses * static_cast<int>(index / kClasses % ((classes + kClasses - 1) / kClasses));
    return label < classes ? label : picture;
  }
};

class SyntheticDataset final : public Dataset {
 public:
  SyntheticDataset(std::int64_t size, SyntheticSplit split, const SyntheticForm& form)
      : size_(size), split_(split), form_(form) {}

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] ImageFormat format() const override {
    return {.height = form_.side, .width = form_.side, .channels = 3};
  }

  [[nodiscard]] std::int64_t stored_bytes(std::int64_t) const override { return 0; }
  [[nodiscard]] bool reads_from_memory() const override { return form_.delay.count() == 0; }

  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    base::expects(index >= 0 && index < size_, "0 <= index < size");
    base::expects(static_cast<std::int64_t>(pixels.size()) == format().bytes(), "pixels hold one image");
    if (form_.delay.count() > 0) std::this_thread::sleep_for(form_.delay);
    // Streams: 2 * split for the order of labels, 2 * split + 1 for the images, so that all four are
    // independent.
    const auto split = static_cast<std::uint64_t>(split_);
    base::Rng order(form_.seed, base::Purpose::synthetic, static_cast<std::uint64_t>(index / kClasses),
                    2 * split);
    const int picture = label_of(index, order);
    base::Rng rng(form_.seed, base::Purpose::synthetic, static_cast<std::uint64_t>(index), 2 * split + 1);
    Cues cues = cues_of_class(picture);
    const std::uint32_t word = rng.next_u32();
    if (word % 16 < kFalseCueOf16) {
      int* const all[] = {&cues.shape, &cues.texture, &cues.scheme};
      *all[(word >> 4) % 3] = static_cast<int>((word >> 8) % 5);
    }
    if (form_.side == kSide) {
      draw_synthetic(cues, rng, pixels);
    } else {
      std::array<std::uint8_t, kSide * kSide * 3> drawn;
      draw_synthetic(cues, rng, drawn);
      spread(drawn, pixels);
    }
    return form_.label(picture, index);
  }

 private:
  void spread(std::span<const std::uint8_t> drawn, std::span<std::uint8_t> pixels) const {
    auto to = pixels.begin();
    for (int y = 0; y < form_.side; ++y)
      for (int x = 0; x < form_.side; ++x) {
        const auto at = static_cast<std::size_t>(y * kSide / form_.side * kSide + x * kSide / form_.side) * 3;
        to = std::copy_n(drawn.begin() + static_cast<std::ptrdiff_t>(at), 3, to);
      }
  }

  std::int64_t size_;
  SyntheticSplit split_;
  SyntheticForm form_;
};

}  // namespace

Cues cues_of_class(int label) {
  base::expects(label >= 0 && label < kClasses, "0 <= label < 10");
  // Classes i and 5 + i share a shape; no two share two cues (a test goes through all pairs).
  const int i = label % 5, second = label / 5;
  return {.shape = i, .texture = (3 * i + 2 * second) % 5, .scheme = (2 * i + second) % 5};
}

Source open_synthetic(const Spec& spec) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const std::int64_t train = integer_option(spec, "train", 50'000, 1, kMost);
  const std::int64_t test = integer_option(spec, "test", 10'000, 1, kMost);
  const SyntheticForm form{
      .seed = static_cast<std::uint64_t>(
          integer_option(spec, "seed", 0, 0, std::numeric_limits<std::int64_t>::max())),
      .side = static_cast<int>(integer_option(spec, "size", kSide, 8, 1024)),
      .classes = static_cast<int>(integer_option(spec, "classes", kClasses, 2, 100'000)),
      .delay = std::chrono::microseconds(integer_option(spec, "delay-us", 0, 0, 10'000'000))};
  Source source;
  source.description = fmt::format(
      "synthetic data (drawn, not photographed; seed {}): {} training images, {} test images, {}x{}x3",
      form.seed, train, test, form.side, form.side);
  if (form.classes > kClasses)
    source.description += fmt::format(", {} labels for 10 kinds of pictures", form.classes);
  if (form.delay.count() > 0)
    source.description += fmt::format(", EMULATED slow storage: {} us an image", form.delay.count());
  source.synthetic = true;
  source.train = std::make_unique<SyntheticDataset>(train, SyntheticSplit::train, form);
  source.test = std::make_unique<SyntheticDataset>(test, SyntheticSplit::test, form);
  constexpr const char* kShapes[] = {"disc", "square", "triangle", "cross", "ring"};
  constexpr const char* kTextures[] = {"striped", "checked", "dotted", "banded", "halved"};
  constexpr const char* kSchemes[] = {"red-yellow", "yellow-green", "green-blue", "blue-violet",
                                      "violet-red"};
  for (int label = 0; label < form.classes; ++label) {
    const Cues cues = cues_of_class(label % kClasses);
    source.class_names.push_back(
        fmt::format("{} {} {}", kTextures[cues.texture], kSchemes[cues.scheme], kShapes[cues.shape]) +
        (label < kClasses ? "" : fmt::format(" {}", label / kClasses + 1)));
  }
  source.mean = {0.408f, 0.362f, 0.364f};  // measured over the training images of seed 0; a test checks them
  source.stddev = {0.178f, 0.153f, 0.174f};
  source.crop_padding = form.side / 8;
  source.flip = Flip::random;
  return source;
}

}  // namespace paceline::data
