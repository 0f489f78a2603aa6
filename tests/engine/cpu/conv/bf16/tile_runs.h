#pragma once

/// What the tests of single bf16 algorithms share: shapes that break kernels, and a run of an algorithm over
/// those that are its own, beside sums in double. Packing, bands, tails, bias and rounding around a unit are
/// the same code whether the unit is emulated or the machine's own.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "engine/cpu/conv/bf16/algorithms.h"
#include "engine/cpu/conv/bf16/on_unit.h"
#include "engine/cpu/conv/kernel_runs.h"

namespace paceline::engine::cpu {

inline constexpr Case kTileCases[] = {
    // 3x3, stride 1: one pixel, odd sizes, channels around a block, batches around one
    {32, 32, 1, 1, 3, 1, 1, 1},
    {16, 24, 5, 7, 3, 1, 1, 7},
    {32, 64, 4, 4, 3, 1, 1, 16},
    {33, 31, 3, 5, 3, 1, 1, 17},
    {64, 40, 6, 3, 3, 1, 1, 32},
    {40, 65, 5, 5, 3, 1, 1, 33},
    {3, 16, 9, 9, 3, 1, 1, 7},
    {1, 1, 2, 2, 3, 1, 1, 65},
    {16, 32, 6, 6, 3, 1, 0, 7},
    {24, 16, 5, 4, 3, 1, 2, 3},
    // several bands, of samples a block and a few
    {65, 3, 24, 14, 3, 1, 1, 33},
    {3, 65, 23, 15, 3, 1, 1, 34},
    // several parts: of d_weight; of rows, of channels and of both, where the chunk is alone
    {20, 150, 4, 3, 3, 1, 1, 5},
    {24, 40, 45, 4, 3, 1, 1, 7},
    {33, 290, 5, 4, 3, 1, 1, 9},
    {260, 257, 30, 2, 3, 2, 1, 3},
    // parts whose bands read a row more than those of the whole image: of src, of d_dst
    {16, 8, 58, 25, 3, 2, 1, 2},
    {5, 225, 30, 26, 2, 2, 0, 1},
    // strides, other kernels
    {16, 32, 9, 9, 3, 2, 1, 16},
    {40, 24, 8, 8, 3, 2, 1, 7},
    {24, 40, 7, 7, 1, 2, 0, 33},
    {33, 20, 6, 5, 1, 1, 0, 16},
    {20, 12, 6, 5, 5, 1, 2, 2},
    {3, 24, 15, 14, 7, 2, 3, 17},
    {8, 8, 10, 10, 2, 3, 0, 4},
    {8, 40, 8, 9, 1, 3, 1, 5},
    // few channels, unfolded (wgrad_im2col): several bands, copies of 2 to 4 chunks and of more, windows
    // beyond the image
    {3, 40, 40, 41, 3, 1, 1, 4},
    {4, 33, 30, 29, 7, 2, 3, 11},
    {7, 20, 12, 9, 7, 1, 5, 3},
    {8, 24, 12, 13, 9, 1, 4, 2},
    {2, 16, 3, 4, 2, 1, 4, 3},
    // whole images that do not fit into a band, or only for some numbers of threads
    {350, 40, 8, 8, 3, 1, 1, 33},
    {330, 128, 8, 8, 3, 1, 1, 40},
    {250, 290, 4, 4, 3, 1, 1, 129},  // and parts of 256 output channels and of the rest
    {512, 40, 7, 7, 0, 1, 0, 40},
    // strips (pixel_rows): rows of one tile, of more, and of pixels that are computed twice;
    // parts, strides, kernels of all sizes, edges of all widths
    {32, 64, 6, 16, 3, 1, 1, 3},
    {64, 32, 7, 28, 3, 1, 1, 2},
    {32, 96, 3, 61, 3, 1, 1, 1},
    {96, 32, 1, 25, 3, 1, 1, 2},
    {32, 64, 7, 45, 3, 1, 1, 2},
    {32, 32, 41, 16, 3, 1, 1, 2},
    {32, 32, 20, 40, 3, 1, 0, 1},
    {32, 32, 9, 60, 3, 2, 1, 1},
    {32, 32, 9, 64, 7, 2, 3, 1},
    {32, 32, 9, 47, 2, 3, 1, 1},
    {64, 32, 6, 32, 1, 2, 0, 2},
    {32, 32, 6, 32, 2, 1, 1, 1},
    {32, 32, 5, 30, 5, 1, 2, 2},
    {32, 32, 5, 48, 3, 1, 2, 1},
    {64, 32, 20, 18, 3, 1, 0, 2},
    {32, 32, 5, 17, 2, 1, 0, 1},
    {32, 32, 4, 14, 3, 1, 2, 2},
    // short rows (packed_images): whole groups of images and others, bands of four rows and others, several
    // parts, edges of
    // all widths, three tiles of a row, either direction alone
    {32, 64, 8, 8, 3, 1, 1, 1},
    {64, 32, 8, 8, 3, 1, 1, 7},
    {96, 64, 8, 8, 3, 1, 1, 2},
    {32, 32, 8, 8, 3, 1, 1, 33},
    {32, 64, 4, 4, 3, 1, 1, 1},
    {64, 64, 4, 4, 3, 1, 1, 7},
    {32, 32, 5, 8, 3, 1, 1, 3},
    {32, 32, 1, 8, 3, 1, 1, 4},
    {64, 32, 7, 12, 3, 1, 1, 6},
    {32, 32, 9, 10, 3, 1, 0, 3},
    {32, 32, 3, 6, 3, 1, 2, 3},
    {32, 64, 9, 8, 3, 1, 2, 2},
    {32, 64, 6, 12, 3, 1, 0, 5},
    // windows that move by two: one image and several, whole groups and others, one band of four rows and
    // several, of results and of d_src, two tiles of a row
    {32, 64, 9, 32, 3, 2, 1, 3},
    {64, 32, 16, 32, 3, 2, 1, 1},
    {32, 32, 1, 32, 3, 2, 1, 2},
    {32, 96, 18, 64, 3, 2, 1, 2},
    {96, 32, 8, 16, 3, 2, 1, 7},
    {32, 64, 16, 16, 3, 2, 1, 16},
    {64, 64, 7, 16, 3, 2, 1, 33},
    {128, 32, 10, 24, 3, 2, 1, 9},
    {32, 128, 8, 8, 3, 2, 1, 7},
    {64, 32, 2, 8, 3, 2, 1, 4},
    {32, 160, 5, 8, 3, 2, 1, 10},
    {32, 32, 12, 8, 3, 2, 1, 1},
    {32, 32, 1, 16, 3, 2, 1, 3},
    {32, 256, 9, 16, 3, 2, 1, 3},
    // ... and as many channels as leave one pixel to write beside each row of a tall strip
    {128, 32, 4, 16, 3, 1, 1, 1},
    {160, 32, 6, 8, 3, 1, 1, 2},
    {32, 128, 5, 16, 3, 1, 1, 1},
    // pairs of samples (wgrad_pixel_k): one to sixteen pairs in a pixel, several groups of
    // samples in a band and several bands of rows; strides with columns that are left out, all edges
    {32, 64, 9, 16, 3, 1, 1, 1},
    {64, 32, 40, 8, 3, 1, 1, 7},
    {32, 32, 5, 24, 3, 1, 0, 16},
    {64, 96, 17, 4, 3, 1, 2, 33},
    {32, 32, 3, 37, 3, 1, 1, 34},
    {32, 64, 14, 14, 3, 1, 1, 17},
    {64, 64, 8, 8, 3, 2, 1, 21},
    {32, 32, 7, 15, 3, 2, 1, 2},
    {32, 160, 8, 16, 3, 2, 0, 5},
    {32, 32, 4, 50, 3, 3, 1, 3},
    {32, 32, 1, 1, 3, 2, 1, 3},
    {32, 32, 2, 11, 3, 4, 2, 9},
    // dense layers
    {64, 10, 1, 1, 0, 1, 0, 33},
    {40, 33, 3, 2, 0, 1, 0, 7},
    {512, 10, 1, 1, 0, 1, 0, 1},
};

inline constexpr Direction kAllDirections[] = {Direction::forward, Direction::backward_data,
                                               Direction::backward_weights};

inline ConvShape bf16_shape_of(const Case& c) {
  ConvShape s = shape_of(c);
  s.type = s.dst_type = Storage::bf16;
  return s;
}

inline const Bf16Algorithm& bf16_algorithm(std::string_view name) {
  const auto all = bf16_algorithms();
  const auto found = std::ranges::find(all, name, &Bf16Algorithm::name);
  if (found == all.end()) throw std::out_of_range(std::string(name));
  return **found;
}

/// Why `name` refuses the shape on `unit`; "": it does not.
inline std::string bf16_refusal(const char* name, const ConvShape& shape, Direction direction,
                                units::Unit unit = units::Unit::emulated_amx) {
  return bf16_algorithm(name).refusal(shape, direction, units::kernels_of(unit)).value_or("");
}

/// One algorithm on one unit over one shape.
class TileRun {
 public:
  TileRun(const Bf16Algorithm& algorithm, const tiles::TileKernels& kernels, const Case& c, bool has_bias)
      : algorithm_(algorithm), kernels_(kernels), s_(bf16_shape_of(c)) {
    s_.bias = has_bias;
    const auto seed = static_cast<std::uint64_t>(c.in * 1000 + c.samples);
    src_ = rounded_to_bf16(random_values(s_.samples * s_.src.elements(), seed));
    weight_ = rounded_to_bf16(random_values(s_.weights(), seed + 1));
    d_dst_ = rounded_to_bf16(random_values(s_.samples * s_.dst.elements(), seed + 2));
    bias_ = random_values(has_bias ? s_.dst.channels : 0, seed + 3);
  }

  /// Whether it computes this direction: where it is the usual one, also for results in float, and of few
  /// samples wherever it can.
  [[nodiscard]] bool wants(Direction direction) const {
    return is_own(direction) || (s_.samples <= 7 && !algorithm_.refusal(s_, direction, kernels_));
  }

  /// Whole and in parts, whose bits are the same; in four parts alone where another algorithm is usual.
  /// Returns how many kernels it compared.
  int expect_sums_in_double() {
    int compared = 0;
    const Data data{.src = src_, .weight = weight_, .d_dst = d_dst_, .bias = bias_};
    const Expected want(s_, data,
                        {.dst = wants(Direction::forward),
                         .d_src = wants(Direction::backward_data),
                         .d_weight = wants(Direction::backward_weights)});
    for (const Direction direction : kAllDirections) {
      if (!wants(direction)) continue;
      SCOPED_TRACE(name_of(direction));
      Results first;
      for (const auto& [is_alone, threads] : {std::pair{false, 1}, {true, 1}, {true, 2}, {true, 4}}) {
        if (!is_own(direction) && threads < 4) continue;
        s_.is_alone = is_alone;
        s_.threads = threads;
        if (const auto got = results(direction, Storage::bf16, data)) {
          if (first.values.empty()) first = *got;
          EXPECT_EQ(got->values, first.values) << "the same bits, in parts for " << threads << " threads";
          compare(direction, *got, want, 0x1p-8);
          ++compared;
        }
        if (direction != Direction::forward) continue;
        if (const auto got = results(direction, Storage::f32, data)) {
          compare(direction, *got, want, 0);
          ++compared;
        }
      }
    }
    return compared;
  }

 private:
  [[nodiscard]] bool is_own(Direction direction) const {
    const auto is_usual = [&](const ConvShape& shape) {
      return &usual_bf16_algorithm(shape, direction, kernels_) == &algorithm_;
    };
    ConvShape floats = s_;
    floats.dst_type = Storage::f32;
    return is_usual(s_) || (direction == Direction::forward && is_usual(floats));
  }
  [[nodiscard]] std::optional<Results> results(Direction direction, Storage written, const Data& data) const {
    ConvShape s = s_;
    s.dst_type = written;
    if (algorithm_.refusal(s, direction, kernels_)) return std::nullopt;
    return results_of(*make_kernel(algorithm_, s, direction, kernels_), s, direction, data);
  }
  /// `rounding`: of a value that is written as bf16 at most 2^-8 of it; sums in float are off by the root of
  /// their length.
  void compare(Direction direction, const Results& got, const Expected& want, double rounding) const {
    const auto of_sums = [](double length) { return (2 + 0.75 * std::sqrt(length)) * 0x1p-24; };
    const double taps = static_cast<double>(s_.weights()) / s_.src.channels / s_.dst.channels;
    if (direction == Direction::forward) {
      EXPECT_LT(relative_error(got.values, want.dst), rounding + of_sums(taps * s_.src.channels));
    } else if (direction == Direction::backward_data) {
      EXPECT_LT(relative_error(got.values, want.d_src), rounding + of_sums(taps * s_.dst.channels));
    } else {
      const double pixels = static_cast<double>(s_.samples * s_.dst_pixels());
      EXPECT_LT(relative_error(got.values, want.d_weight), of_sums(pixels));
      // d_bias is small where its terms cancel: its error is that of the terms.
      for (std::size_t k = 0; k < bias_.size(); ++k)
        EXPECT_NEAR(got.d_bias[k], want.d_bias[k], 8 * pixels * 0x1p-24) << k;
    }
  }

  const Bf16Algorithm& algorithm_;
  const tiles::TileKernels& kernels_;
  ConvShape s_;
  Values src_, weight_, d_dst_, bias_;
};

/// Whether `unit` takes case `i`. Emulated units take half a minute for all of them, and a quarter unless
/// PACELINE_LONG is set: every fourth, and one of several bands of samples. The machine's own take all.
inline bool takes_case(units::Unit unit, std::size_t i) {
  constexpr std::size_t kOfSeveralBands = 11;
  return units::hardware(unit) || std::getenv("PACELINE_LONG") != nullptr || i % 4 == 0 ||
         i == kOfSeveralBands;
}

/// Runs the algorithm over all cases that it wants and `unit` takes, and expects that it compares at least
/// `least` kernels of all cases, or a fifth of them of a quarter.
inline void expect_sums_in_double(const char* name, units::Unit unit, int least) {
  int compared = 0;
  bool is_whole = true;
  for (std::size_t i = 0; i < std::size(kTileCases); ++i) {
    const bool has_bias = i % 2 == 0;
    if (!takes_case(unit, i)) {
      is_whole = false;
      continue;
    }
    SCOPED_TRACE(text_of(kTileCases[i]) + (has_bias ? " with bias" : ""));
    TileRun run(bf16_algorithm(name), units::kernels_of(unit), kTileCases[i], has_bias);
    if (std::ranges::any_of(kAllDirections, [&](Direction direction) { return run.wants(direction); }))
      compared += run.expect_sums_in_double();
  }
  EXPECT_GE(compared, is_whole ? least : least / 5) << "kernels that were compared";
}

/// Weights and gradients are packed alike for any samples: chunks of a batch share them.
inline void expect_packed_alike(const char* name, const Case& whole, const tiles::TileKernels& kernels) {
  Case rest = whole;
  rest.samples = 2;
  for (const Direction direction : kAllDirections) {
    const auto bytes = [&](const Case& c) {
      return make_kernel(bf16_algorithm(name), bf16_shape_of(c), direction, kernels)->packed_bytes();
    };
    if (bf16_algorithm(name).refusal(bf16_shape_of(whole), direction, kernels)) continue;
    EXPECT_EQ(bytes(whole), bytes(rest)) << name_of(direction);
  }
}

}  // namespace paceline::engine::cpu
