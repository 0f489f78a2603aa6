#pragma once

/// What the tests of Winograd's tables share: every table and side that runs here, tiles of outputs at the
/// edges of images, sums beside those that are expected.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/cpu/conv/kernel_runs.h"
#include "engine/cpu/conv/winograd_tiles.h"
#include "engine/cpu/kernels/winograd/winograd.h"

namespace paceline::engine::cpu::winograd {

inline void for_tables(const std::function<void(const WinogradKernels&)>& test) {
  const auto tables = kernels_here();
  if (tables.empty()) GTEST_SKIP() << "Winograd needs AVX2, which this processor does not have";
  for (const auto* table : tables) {
    SCOPED_TRACE(name_of(table->isa));
    test(*table);
  }
}

/// The same side of one table, for images in float and in bf16: they write tiles of 4x4 or of 8x8 pixels.
struct Sides {
  const Side &f32, &bf16;
};
inline void for_sides(const std::function<void(const Sides&)>& test) {
  for_tables([&](const WinogradKernels& table) {
    const std::pair<const char*, Sides> all[] = {
        {"stride 1", {table.f32.stride1.forward, table.bf16.stride1.forward}},
        {"stride 2 forward", {table.f32.stride2.forward, table.bf16.stride2.forward}},
        {"stride 2 backward", {table.f32.stride2.backward, table.bf16.stride2.backward}}};
    for (const auto& [name, sides] : all) {
      SCOPED_TRACE(name);
      test(sides);
    }
  });
}

inline constexpr int kMostPositions = 81;

inline constexpr float kNothing = 42;  ///< what lies behind a result, before and after

/// A tile of outputs at the edge of an image or inside, with what an epilogue reads of each pixel.
struct Output {
  ImageView image;
  int y, x;
  std::int64_t stride = image.channels + 16,
               values = std::int64_t{2} * image.height * image.width * image.channels;
  Values m = random_values(kMostPositions * stride, 1), src = random_values(values, 2),
         dst = random_values(values, 3), first = random_values(values, 4),
         shift = random_values(image.channels, 5), mean = random_values(image.channels, 6),
         scale = random_values(image.channels, 7), bias = random_values(image.channels, 8);

  static constexpr int kSample = 1;
  [[nodiscard]] Values untouched() const { return Values(static_cast<std::size_t>(values), kNothing); }
  [[nodiscard]] Values plain(const Side& side) const {
    Values out = untouched();
    side.transform_output(m.data(), stride, nullptr, out.data(), image, kSample, y, x, nullptr);
    return out;
  }
  void for_pixels(const Side& side, const std::function<void(std::size_t at, std::size_t c)>& visit) const {
    for (int row = y; row < std::min(y + side.written_step, image.height); ++row)
      for (int column = x; column < std::min(x + side.written_step, image.width); ++column)
        for (int c = 0; c < image.channels; ++c)
          visit(static_cast<std::size_t>(
                    ((kSample * image.height + row) * image.width + column) * image.channels + c),
                static_cast<std::size_t>(c));
  }
};

inline const std::vector<Output>& outputs() {
  static const std::vector<Output> all = {
      {{8, 8, 16}, 4, 0}, {{6, 5, 48}, 4, 4}, {{6, 9, 32}, 0, 8}, {{3, 7, 16}, 0, 0}, {{9, 17, 16}, 0, 8}};
  return all;
}

/// Sums that begin with 1 each: an epilogue's are added.
struct Sums {
  std::vector<double> got, want, size;  ///< size: what rounding errors are measured by
  explicit Sums(int channels) : got(static_cast<std::size_t>(2 * channels), 1.0), want(got), size(got) {}
  void add(std::size_t at, double value) {
    want[at] += value;
    size[at] += std::abs(value);
  }
  void compare() const {
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6 * size[i]) << i;
  }
};

}  // namespace paceline::engine::cpu::winograd

namespace paceline::engine::cpu {

/// Winograd's kernel of one direction by one table, whatever the machine would take.
inline std::unique_ptr<ConvKernel> make_winograd(const ConvShape& shape, Direction direction,
                                                 const winograd::WinogradKernels& kernels) {
  if (direction == Direction::backward_weights) return make_winograd_wgrad(shape, kernels);
  return make_winograd_reader(shape, direction, kernels);
}

}  // namespace paceline::engine::cpu
