#pragma once

/// How the tests run kernels: as host loops, on poisoned outputs, in both orders of threads, and with other
/// numbers of blocks where a kernel claims that any number gives the same bits.

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "engine/cuda/conv_problem.h"
#include "engine/cuda/kernels/host.h"
#include "engine/cuda/kernels/table.h"
#include "engine/reference/ops.h"

namespace paceline::engine::cuda {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// What a kernel writes (and reads, where it works in place).
using Output = std::span<std::byte>;
template <typename T>
Output output(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

enum class Blocks { as_the_grid_says, any };

template <typename Kernel>
void run(const Kernel& kernel, const std::vector<Output>& outputs, Blocks blocks = Blocks::as_the_grid_says) {
  std::vector<std::vector<std::byte>> before, after;
  for (const Output& out : outputs) before.emplace_back(out.begin(), out.end());
  const auto run_once = [&](const Grid& grid, HostOrder order) {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      std::memcpy(outputs[i].data(), before[i].data(), outputs[i].size());
    run_on_host(kKernelNumber<Kernel>, &kernel, grid, order);
  };
  const auto expect_same = [&](const char* what) {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      EXPECT_EQ(std::memcmp(outputs[i].data(), after[i].data(), after[i].size()), 0)
          << "output " << i << " differs " << what;
  };
  const Grid grid = kernel.grid();
  run_once(grid, HostOrder::ascending);
  for (const Output& out : outputs) after.emplace_back(out.begin(), out.end());
  if (blocks == Blocks::any) {
    for (const int count : {1, 3}) {
      Grid other = grid;
      other.blocks = count;
      run_once(other, HostOrder::ascending);
      expect_same("with another number of blocks");
    }
  }
  run_once(grid, HostOrder::descending);
  expect_same("in the other order of threads");
}

/// Values as they lie in storage T.
template <typename T>
class Stored {
 public:
  explicit Stored(std::size_t size) : values_(size) { poison(); }
  explicit Stored(std::span<const double> values) : values_(values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i) store(static_cast<float>(values[i]), values_[i]);
  }
  void poison() { std::memset(values_.data(), 0xff, values_.size() * sizeof(T)); }
  [[nodiscard]] T* data() { return values_.data(); }
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] double operator[](std::size_t i) const { return static_cast<double>(load(values_[i])); }
  [[nodiscard]] Output output() { return std::as_writable_bytes(std::span(values_)); }
  [[nodiscard]] const std::vector<T>& values() const { return values_; }

 private:
  std::vector<T> values_;
};

/// What a result of this size may be off by: rounding to T once (to the neighbour of the right value), and a
/// few fp32 operations on terms of about 1, which the tests' inputs are. Below 2^-14 the neighbours in fp16
/// are 2^-24 apart.
template <typename T>
double rounding(double size) {
  constexpr double kToNeighbour = std::is_same_v<T, Bf16> ? 0x1p-8 : std::is_same_v<T, Half> ? 0x1p-11 : 0;
  return kToNeighbour * std::abs(size) + 0x1p-21 * (1 + std::abs(size));
}

/// A batch of images in logical order [N][C][H][W], and as it lies in storage T: [N][H][W][padded].
struct ImageShape {
  int samples = 0, channels = 0, height = 1, width = 1;
  [[nodiscard]] int padded() const { return padded_channels(channels); }
  [[nodiscard]] int pixels() const { return height * width; }
  [[nodiscard]] std::int64_t rows() const { return std::int64_t{samples} * pixels(); }
  [[nodiscard]] std::size_t elements() const { return static_cast<std::size_t>(rows() * channels); }
  [[nodiscard]] std::size_t stored_elements() const { return static_cast<std::size_t>(rows() * padded()); }
  [[nodiscard]] std::size_t stored_at(int n, int c, int y, int x) const {
    return static_cast<std::size_t>(((std::int64_t{n} * height + y) * width + x) * padded() + c);
  }
  /// Calls visit(logical index, stored index).
  template <typename Visit>
  void for_each(Visit visit) const {
    std::size_t i = 0;
    for (int n = 0; n < samples; ++n)
      for (int c = 0; c < channels; ++c)
        for (int y = 0; y < height; ++y)
          for (int x = 0; x < width; ++x) visit(i++, stored_at(n, c, y, x));
  }
  [[nodiscard]] graph::Shape shape() const {
    return {.channels = channels, .height = height, .width = width};
  }
};

template <typename T>
Stored<T> to_storage(const ImageShape& shape, std::span<const double> logical) {
  std::vector<double> padded(shape.stored_elements(), 0.0);
  shape.for_each([&](std::size_t i, std::size_t at) { padded[at] = logical[i]; });
  return Stored<T>(padded);
}

/// In logical order; checks that padding is 0.
template <typename T>
std::vector<double> from_storage(const ImageShape& shape, const Stored<T>& stored) {
  std::vector<double> logical(shape.elements());
  shape.for_each([&](std::size_t i, std::size_t at) { logical[i] = stored[at]; });
  for (std::size_t at = 0; at < stored.size(); ++at)
    if (static_cast<int>(at % static_cast<std::size_t>(shape.padded())) >= shape.channels) {
      EXPECT_EQ(stored[at], 0.0) << "padding at " << at;
    }
  return logical;
}

/// Normal values that T holds exactly.
template <typename T>
std::vector<double> random_values(std::mt19937& generator, std::size_t count, double mean = 0,
                                  double deviation = 1) {
  std::normal_distribution<double> draw(mean, deviation);
  std::vector<double> values(count);
  for (double& value : values) {
    T rounded;
    store(static_cast<float>(draw(generator)), rounded);
    value = static_cast<double>(load(rounded));
  }
  return values;
}

inline std::vector<float> floats(std::span<const double> values) {
  return std::vector<float>(values.begin(), values.end());
}

/// Each within rounding<T>, times `factor` where a value is a sum of many.
template <typename T>
void expect_near(std::span<const double> got, std::span<const double> expected, double factor = 1) {
  ASSERT_EQ(got.size(), expected.size());
  int wrong = 0;
  for (std::size_t i = 0; i < got.size() && wrong < 5; ++i)
    if (!(std::abs(got[i] - expected[i]) <= factor * rounding<T>(expected[i]))) {
      ADD_FAILURE() << "element " << i << ": got " << got[i] << ", expected " << expected[i];
      ++wrong;
    }
}

using Storages = ::testing::Types<float, Bf16, Half>;

}  // namespace paceline::engine::cuda
