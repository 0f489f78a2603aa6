#include "data/trivial_augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "data/augment.h"

namespace paceline::data {
namespace {

constexpr ImageFormat kFormat{.height = 40, .width = 40, .channels = 3};

std::vector<std::uint8_t> ramp() {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(kFormat.bytes()));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(1 + 7 * i % 250);
  return pixels;
}

std::vector<std::uint8_t> after(const char* operation, int strength, bool is_negative) {
  const auto found = std::ranges::find(kTrivialOperations, operation);
  auto pixels = ramp(), copy = pixels;
  apply_trivial(kFormat, {static_cast<int>(found - kTrivialOperations.begin()), strength, is_negative},
                pixels, copy);
  return pixels;
}

// tests/parity/augment.py compares every operation with torchvision; here are some that need no other
// program.
TEST(TrivialAugment, MovesAndMaps) {
  const auto image = ramp();
  EXPECT_EQ(after("Identity", 30, true), image);
  for (const char* operation : {"ShearX", "TranslateY", "Rotate", "Brightness", "Posterize", "Sharpness"})
    EXPECT_EQ(after(operation, 0, false), image) << operation << " of strength 0";
  const auto right = after("TranslateX", 30, false), left = after("TranslateX", 30, true);
  const auto at = [](const std::vector<std::uint8_t>& pixels, int y, int x) {
    return pixels[static_cast<std::size_t>((y * kFormat.width + x) * 3)];
  };
  for (int x = 0; x < kFormat.width; ++x) {
    EXPECT_EQ(at(right, 5, x), x < 32 ? 0 : at(image, 5, x - 32)) << x;
    EXPECT_EQ(at(left, 5, x), x < 8 ? at(image, 5, x + 32) : 0) << x;
  }
  const auto inverted = after("Solarize", 30, false);
  for (std::size_t i = 0; i < image.size(); ++i) ASSERT_EQ(inverted[i], 255 - image[i]);
  const auto coarse = after("Posterize", 30, false);
  for (std::size_t i = 0; i < image.size(); ++i) ASSERT_EQ(coarse[i], image[i] / 64 * 64);
}

TEST(TrivialAugment, DrawsEachOperationAlikeOften) {
  std::array<int, kTrivialOperations.size()> operations{};
  std::array<int, kTrivialStrengths> strengths{};
  int negative = 0;
  constexpr int kDraws = 14 * 31 * 40;
  for (int position = 0; position < kDraws; ++position) {
    base::Rng rng(1, base::Purpose::trivial, static_cast<std::uint64_t>(position), 2);
    const TrivialChoice choice = draw_trivial(rng);
    ++operations[static_cast<std::size_t>(choice.operation)];
    ++strengths[static_cast<std::size_t>(choice.strength)];
    negative += choice.is_negative ? 1 : 0;
  }
  // Five standard deviations.
  for (const int count : operations) EXPECT_NEAR(count, kDraws / 14, 5 * 34);
  for (const int count : strengths) EXPECT_NEAR(count, kDraws / 31, 5 * 24);
  EXPECT_NEAR(negative, kDraws / 2, 5 * 66);
}

TEST(TrivialAugment, ErasesBoxesOfTheRangesInside) {
  double area = 0;
  int least = 1000, most = 0;
  for (int position = 0; position < 2000; ++position) {
    base::Rng rng(1, base::Purpose::erase, static_cast<std::uint64_t>(position), 2);
    const ErasedBox box = draw_erased(kFormat, rng);
    ASSERT_GT(box.height, 0);
    ASSERT_GE(std::min(box.top, box.left), 0);
    ASSERT_LE(box.top + box.height, kFormat.height);
    ASSERT_LE(box.left + box.width, kFormat.width);
    const int pixels = box.height * box.width;
    area += pixels / 1600.0 / 2000;
    least = std::min(least, pixels);
    most = std::max(most, pixels);
  }
  EXPECT_GE(least, 24);  // 0.02 of 1600, rounded sides
  EXPECT_LE(most, 560);  // 0.33
  EXPECT_NEAR(area, 0.175, 0.01);
  base::Rng rng(1, base::Purpose::erase);
  EXPECT_EQ(draw_erased({.height = 1, .width = 1, .channels = 3}, rng).height, 0) << "no box is smaller";
}

TEST(TrivialAugment, ErasesToTheMeanColour) {
  class One final : public Dataset {
   public:
    [[nodiscard]] std::int64_t size() const override { return 1; }
    [[nodiscard]] ImageFormat format() const override { return kFormat; }
    std::int32_t read(std::int64_t, std::span<std::uint8_t> pixels) const override {
      std::ranges::fill(pixels, std::uint8_t{200});
      return 0;
    }
  };
  const Augment augment(kFormat, {.mean = {0.5, 0.4, 0.3}, .stddev = {0.2, 0.2, 0.2}, .erase = 0.3});
  std::vector<std::uint8_t> scratch(static_cast<std::size_t>(kFormat.bytes()));
  std::vector<float> image(scratch.size());
  int erased = 0;
  for (std::int64_t position = 0; position < 1000; ++position) {
    (void)augment.read_train(One(), 0, 1, position, scratch, image);
    const auto zeros = std::ranges::count(image, 0.0f);
    EXPECT_EQ(zeros % 3, 0);
    erased += zeros > 0 ? 1 : 0;
  }
  EXPECT_NEAR(erased, 300, 5 * 15);
}

}  // namespace
}  // namespace paceline::data
