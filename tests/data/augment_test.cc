#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "data/augment.h"
#include "fakes.h"

namespace paceline::data {
namespace {

constexpr ImageFormat kFormat{.height = 6, .width = 5, .channels = 3};

/// Pixel value that tells the place: never 0, which is the padding.
std::vector<std::uint8_t> numbered_pixels(const ImageFormat& format) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(format.bytes()));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(1 + i);
  return pixels;
}

/// mean 0 and stddev 1 / 255: the normalised value is the byte itself, up to rounding.
AugmentOptions bytes_as_they_are(int padding, bool flip, int channels = 3) {
  const auto count = static_cast<std::size_t>(channels);
  return {.crop_padding = padding,
          .flip = flip ? Flip::random : Flip::none,
          .mean = std::vector<float>(count, 0.0f),
          .stddev = std::vector<float>(count, 1.0f / 255.0f)};
}

struct View {
  int shift_y, shift_x;
  bool mirrored;
  bool reflects = false;
  auto operator<=>(const View&) const = default;
};

/// 3 2 1 [0 1 2 3] 2 1 0: PyTorch's mode="reflect".
int reflected(int i, int size) {
  const int period = 2 * size - 2;
  const int at = ((i % period) + period) % period;
  return at < size ? at : period - at;
}

std::vector<int> seen_through(const View& view, const std::vector<std::uint8_t>& pixels,
                              const ImageFormat& format) {
  std::vector<int> seen;
  for (int y = 0; y < format.height; ++y)
    for (int x = 0; x < format.width; ++x)
      for (int c = 0; c < format.channels; ++c) {
        const int column = view.mirrored ? format.width - 1 - x : x;
        int src_y = y + view.shift_y, src_x = column + view.shift_x;
        if (view.reflects) src_y = reflected(src_y, format.height), src_x = reflected(src_x, format.width);
        const bool inside = src_y >= 0 && src_y < format.height && src_x >= 0 && src_x < format.width;
        seen.push_back(
            inside ? pixels[static_cast<std::size_t>((src_y * format.width + src_x) * format.channels + c)]
                   : 0);
      }
  return seen;
}

std::vector<int> rounded(const std::vector<float>& values) {
  std::vector<int> result;
  for (const float value : values) result.push_back(static_cast<int>(value + 0.5f));
  return result;
}

TEST(Augment, NormalisesByTheFormula) {
  const Augment augment({.height = 1, .width = 256, .channels = 2},
                        {.mean = {0.5f, 0.1f}, .stddev = {0.25f, 0.3f}});
  std::vector<std::uint8_t> pixels;
  for (int value = 0; value < 256; ++value) pixels.insert(pixels.end(), 2, static_cast<std::uint8_t>(value));
  std::vector<float> dst(512);
  augment.evaluate(pixels, dst);
  for (int value = 0; value < 256; ++value) {
    const auto at = static_cast<std::size_t>(2 * value);
    EXPECT_NEAR(dst[at], (value / 255.0 - 0.5) / 0.25, 3e-7);
    EXPECT_NEAR(dst[at + 1], (value / 255.0 - 0.1) / 0.3, 3e-6);  // 0.1f and 0.3f are not 0.1 and 0.3
  }
}

TEST(Augment, TrainsOnTheSameAsItEvaluatesWithoutCropAndFlip) {
  const Augment augment(kFormat, bytes_as_they_are(0, false));
  const auto pixels = numbered_pixels(kFormat);
  std::vector<float> trained(pixels.size()), evaluated(pixels.size());
  augment.show(pixels, augment.draw(0, 3, 14), trained);
  augment.evaluate(pixels, evaluated);
  EXPECT_EQ(trained, evaluated);
}

// Every result is one of the views that crop and flip allow, each view comes, and about equally often.
// Padding as wide as the image too: then a crop may see nothing but padding.
TEST(Augment, GivesEveryCropAndFlipWithEqualChanceAndNothingElse) {
  for (const bool reflects : {false, true})
    for (const int channels : {1, 2, 3})
      for (const bool flip : {false, true})
        for (const int padding : {0, 1, 4, 6}) {
          const ImageFormat format{.height = 6, .width = 5, .channels = channels};
          if (reflects && padding == 6) continue;  // a reflection reaches less than an image far
          AugmentOptions options = bytes_as_they_are(padding, flip, channels);
          if (reflects) options.crop_fill = CropFill::reflect;
          const Augment augment(format, options);
          const auto pixels = numbered_pixels(format);
          std::map<std::vector<int>, double> chance;
          const double views = (2 * padding + 1) * (2 * padding + 1) * (flip ? 2 : 1);
          for (int y = -padding; y <= padding; ++y)
            for (int x = -padding; x <= padding; ++x)
              for (const bool mirrored : {false, true})
                if (!mirrored || flip)
                  chance[seen_through({y, x, mirrored, reflects}, pixels, format)] += 1 / views;
          std::map<std::vector<int>, int> count;
          std::vector<float> dst(pixels.size());
          constexpr int kDraws = 20000;
          for (int position = 0; position < kDraws; ++position) {
            augment.show(pixels, augment.draw(7, 0, position), dst);
            const auto seen = rounded(dst);
            ASSERT_TRUE(chance.contains(seen)) << "padding " << padding << " position " << position;
            ++count[seen];
          }
          for (const auto& [seen, probability] : chance) {
            const double expected = kDraws * probability;
            EXPECT_NEAR(count[seen], expected, 6 * std::sqrt(expected))
                << "padding " << padding << " flip " << flip;
          }
        }
}

TEST(Augment, AlternatingFlipsShowEachImageMirroredEveryOtherEpoch) {
  AugmentOptions options = bytes_as_they_are(0, false);
  options.flip = Flip::alternating;
  const Augment augment(kFormat, options);
  const auto pixels = numbered_pixels(kFormat);
  const auto is_mirrored = [&](std::int64_t index, std::int64_t epoch, std::int64_t position) {
    std::vector<float> dst(pixels.size());
    augment.show(pixels, augment.draw(index, epoch, position), dst);
    const auto seen = rounded(dst);
    EXPECT_TRUE(seen == seen_through({0, 0, false}, pixels, kFormat) ||
                seen == seen_through({0, 0, true}, pixels, kFormat));
    return seen == seen_through({0, 0, true}, pixels, kFormat);
  };
  int first = 0;
  for (std::int64_t index = 0; index < 1000; ++index) {
    const bool at_first = is_mirrored(index, 0, 5 * index);
    first += at_first;
    for (std::int64_t epoch = 1; epoch < 4; ++epoch)
      EXPECT_EQ(is_mirrored(index, epoch, index + epoch), at_first != (epoch % 2 == 1));
  }
  EXPECT_NEAR(first, 500, 6 * std::sqrt(250.0));
}

TEST(Augment, EvaluationViewsAreMirroredAndMovedByAPixel) {
  const Augment augment(kFormat, bytes_as_they_are(2, true));
  const auto pixels = numbered_pixels(kFormat);
  const View views[] = {{0, 0, false, true}, {0, 0, true, true},    {1, 1, false, true},
                        {1, 1, true, true},  {-1, -1, false, true}, {-1, -1, true, true}};
  for (int view = 0; view < kMostViews; ++view) {
    std::vector<float> dst(pixels.size());
    augment.show(pixels, Augment::view_draw(0, view), dst);
    EXPECT_EQ(rounded(dst), seen_through(views[view], pixels, kFormat)) << view;
  }
}

TEST(Augment, IsAFunctionOfSeedEpochAndPosition) {
  const auto pixels = numbered_pixels(kFormat);
  const auto at = [&](std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
    const Augment augment = full_augment(kFormat, seed);
    std::vector<float> dst(pixels.size());
    augment.show(pixels, augment.draw(7, epoch, position), dst);
    return dst;
  };
  EXPECT_EQ(at(1, 2, 3), at(1, 2, 3));
  // 50 views: over 200 places two independent sequences agree in 4 on average.
  const auto agreeing = [&](auto first, auto second) {
    int equal = 0;
    for (std::int64_t i = 0; i < 200; ++i) equal += first(i) == second(i);
    return equal;
  };
  EXPECT_LT(agreeing([&](auto i) { return at(0, 0, i); }, [&](auto i) { return at(0, 1, i); }), 20);
  EXPECT_LT(agreeing([&](auto i) { return at(0, 0, i); }, [&](auto i) { return at(1, 0, i); }), 20);
  EXPECT_LT(agreeing([&](auto i) { return at(0, 0, i); }, [&](auto i) { return at(0, 0, i + 1); }), 20);
  EXPECT_LT(agreeing([&](auto i) { return at(0, 1, i); }, [&](auto i) { return at(1, 0, i); }), 20);
}

Augment cropping(const ImageFormat& format, double least) {
  return {format, {.mean = {0, 0, 0}, .stddev = {1, 1, 1}, .seed = 3, .crop_area = least}};
}

// Areas and proportions keep to their ranges, reach both ends, and every place that fits comes.
TEST(Augment, DrawsPartsOfTheAreaAndProportionsAsked) {
  for (const auto& [height, width] : {std::pair{100, 100}, {60, 200}, {331, 77}})
    for (const double least : {0.08, 0.5}) {
      const Augment augment = cropping({.height = 32, .width = 32, .channels = 3}, least);
      double smallest = 1, largest = 0, flattest = 9, widest = 0;
      for (int position = 0; position < 3000; ++position) {
        const Box box = augment.part(height, width, 0, position);
        ASSERT_GE(box.top, 0);
        ASSERT_GE(box.left, 0);
        ASSERT_LE(box.top + box.height, height + 1e-9);
        ASSERT_LE(box.left + box.width, width + 1e-9);
        smallest = std::min(smallest, box.height * box.width / (height * width));
        largest = std::max(largest, box.height * box.width / (height * width));
        flattest = std::min(flattest, box.width / box.height);
        widest = std::max(widest, box.width / box.height);
      }
      const double rounding = 0.06;  // sides are whole pixels
      EXPECT_GT(flattest, 3.0 / 4 * (1 - rounding));
      EXPECT_LT(widest, 4.0 / 3 * (1 + rounding));
      if (height != width) continue;  // a long image has no large parts of such proportions
      EXPECT_NEAR(smallest, least, 0.02);
      EXPECT_GT(largest, 0.95);
    }
}

TEST(Augment, ChangesColoursWithinTheFactorAndNothingElse) {
  const ImageFormat format{.height = 4, .width = 4, .channels = 3};
  const Augment augment(format, {.mean = {0, 0, 0}, .stddev = {1, 1, 1}, .seed = 3, .jitter = 0.4});
  double darkest = 255, brightest = 0;
  for (int position = 0; position < 2000; ++position) {
    std::vector<std::uint8_t> plain(48, 100);  // grey: contrast and saturation cannot change it
    augment.jitter(plain, 0, position);
    EXPECT_THAT(plain, testing::Each(plain.front()));
    darkest = std::min<double>(darkest, plain.front());
    brightest = std::max<double>(brightest, plain.front());
  }
  EXPECT_NEAR(darkest, 60, 2);
  EXPECT_NEAR(brightest, 140, 2);

  std::vector<std::uint8_t> one(48), other(48);
  for (std::size_t i = 0; i < 48; ++i) one[i] = other[i] = static_cast<std::uint8_t>(5 * i);
  augment.jitter(one, 1, 5);
  augment.jitter(other, 1, 5);
  EXPECT_EQ(one, other);
  augment.jitter(other, 1, 6);
  EXPECT_NE(one, other);
}

}  // namespace

namespace {

constexpr ImageFormat kTwoChannels{.height = 5, .width = 5, .channels = 2};

std::vector<std::uint8_t> numbered() {
  std::vector<std::uint8_t> pixels(50);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(5 * i);
  return pixels;
}

std::vector<std::uint8_t> warped(const WarpMap& map) {
  std::vector<std::uint8_t> dst(50);
  warp(kTwoChannels, map, numbered(), dst);
  return dst;
}

std::uint8_t at(const std::vector<std::uint8_t>& pixels, int y, int x) {
  return pixels[static_cast<std::size_t>((y * 5 + x) * 2)];
}

TEST(Warp, OfNothingIsTheImage) { EXPECT_EQ(warped({}), numbered()); }

TEST(Warp, ShiftsByWholePixelsWithTheEdgesOwnBeyondIt) {
  const auto image = numbered(), moved = warped({.y = 1, .x = -2});
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 5; ++x)
      EXPECT_EQ(at(moved, y, x), at(image, std::min(y + 1, 4), std::max(x - 2, 0))) << y << ' ' << x;
}

TEST(Warp, StandsBetweenPixelsByTheirDistances) {
  const auto image = numbered(), moved = warped({.x = 0.25});
  EXPECT_EQ(at(moved, 2, 1), std::lround(0.75 * at(image, 2, 1) + 0.25 * at(image, 2, 2)));
  const auto down = warped({.y = 0.5, .x = 0.5});
  EXPECT_EQ(at(down, 1, 1),
            std::lround((at(image, 1, 1) + at(image, 1, 2) + at(image, 2, 1) + at(image, 2, 2)) / 4.0));
}

TEST(Warp, AQuarterTurnTurnsTheImage) {
  const auto image = numbered(), turned = warped({.yy = 0, .yx = -1, .xy = 1, .xx = 0});
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 5; ++x) EXPECT_EQ(at(turned, y, x), at(image, 4 - x, y)) << y << ' ' << x;
}

TEST(DrawWarp, StaysWithinWhatWasAskedAndReachesAllOfIt) {
  double least = 0, most = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    base::Rng rng(1, base::Purpose::warp, i);
    const WarpMap map = draw_warp({.rotate = 30}, kTwoChannels, rng);
    const double angle = std::atan2(map.xy, map.xx) * 180 / 3.14159265358979;
    least = std::min(least, angle);
    most = std::max(most, angle);
    EXPECT_NEAR(map.yy * map.xx - map.yx * map.xy, 1, 1e-12);  // a rotation
    EXPECT_EQ(map.y, 0);
  }
  EXPECT_NEAR(least, -30, 0.2);
  EXPECT_NEAR(most, 30, 0.2);
  for (std::uint64_t i = 0; i < 200; ++i) {
    base::Rng rng(1, base::Purpose::warp, i);
    const WarpMap map = draw_warp({.shift = 0.4}, kTwoChannels, rng);
    EXPECT_LE(std::abs(map.y), 2);
    EXPECT_LE(std::abs(map.x), 2);
    EXPECT_EQ(map.xx, 1);
  }
  for (std::uint64_t i = 0; i < 200; ++i) {
    base::Rng rng(1, base::Purpose::warp, i);
    const WarpMap map = draw_warp({.shear = 20}, kTwoChannels, rng);
    EXPECT_EQ(map.yy, 1);  // rows stay rows
    EXPECT_EQ(map.xy, 0);
    EXPECT_LE(std::abs(map.yx), std::sin(20 * 3.1416 / 180));
  }
}

/// The training form is a function of (seed, epoch, position), and no crop is disturbed by the warp.
TEST(Augment, WarpsAsAFunctionOfSeedEpochAndPosition) {
  const NumberedDataset dataset(8, {.height = 6, .width = 5, .channels = 3});
  AugmentOptions options{.mean = {0, 0, 0}, .stddev = {1, 1, 1}, .warp = {.rotate = 40, .shift = 0.2}};
  const Augment one(dataset.format(), options), two(dataset.format(), options);
  const auto form = [&](const Augment& augment, std::int64_t epoch, std::int64_t position) {
    std::vector<std::uint8_t> scratch(90);
    std::vector<float> dst(90);
    (void)augment.read_train(dataset, 3, epoch, position, scratch, dst);
    return dst;
  };
  EXPECT_EQ(form(one, 1, 2), form(two, 1, 2));
  EXPECT_NE(form(one, 1, 2), form(one, 2, 2));
  EXPECT_NE(form(one, 1, 2), form(one, 1, 3));
  options.warp = {};
  EXPECT_NE(form(one, 1, 2), form(Augment(dataset.format(), options), 1, 2));
}

}  // namespace
}  // namespace paceline::data
