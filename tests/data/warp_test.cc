#include "data/warp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "data/augment.h"
#include "fakes.h"

namespace paceline::data {
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
