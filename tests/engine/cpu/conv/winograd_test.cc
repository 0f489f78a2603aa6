// Winograd's parts in each instruction set's table that this machine runs.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/kernel_runs.h"
#include "engine/cpu/conv/winograd_runs.h"
#include "engine/cpu/conv/winograd_tiles.h"
#include "engine/cpu/kernels/transpose/transpose.h"
#include "engine/cpu/kernels/winograd/winograd.h"

namespace paceline::engine::cpu::winograd {
namespace {

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

/// Three taps at six points: 0, +-5/8, +-3/2 and infinity, one operation after the other as the vectors round
/// them.
void filter_row(const float g[3], float u[6]) {
  const float a = 0.625f, b = 1.5f;
  const float a2 = a * a, b2 = b * b, n0 = a2 * b2, na = 2 * a2 * (a2 - b2), nb = 2 * b2 * (b2 - a2);
  const float even_a = 1 / na * std::fma(a2, g[2], g[0]), even_b = 1 / nb * std::fma(b2, g[2], g[0]);
  const float all[] = {1 / n0 * g[0],
                       std::fma(a / na, g[1], even_a),
                       std::fma(-a / na, g[1], even_a),
                       std::fma(b / nb, g[1], even_b),
                       std::fma(-b / nb, g[1], even_b),
                       g[2]};
  std::ranges::copy(all, u);
}

TEST(WinogradTables, FiltersAreThePlainTransformsBits) {
  for_tables([](const WinogradKernels& table) {
    constexpr int kTap = 9;
    for (const std::int64_t lane_stride : {9, 27, 144})
      for (const bool rotated : {false, true}) {
        // Nothing behind the last filter: the buffer ends there.
        const Values taps = random_values(15 * lane_stride + kTap, static_cast<std::uint64_t>(lane_stride));
        constexpr std::int64_t kStride = 32;
        base::Buffer room((kMatrices * kStride + 16) * sizeof(float));  // whole lines
        const auto u = room.as<float>();
        std::ranges::fill(u, kNothing);
        table.f32.stride1.transform_filters(taps.data(), lane_stride, rotated, false, u.data(), kStride);
        end_streams();
        for (int lane = 0; lane < 16; ++lane) {
          float t[3][6];
          for (int row = 0; row < 3; ++row) {
            float g[3];
            for (int i = 0; i < 3; ++i)
              g[i] = taps[static_cast<std::size_t>(lane * lane_stride +
                                                   (rotated ? 8 - 3 * row - i : 3 * row + i))];
            filter_row(g, t[row]);
          }
          for (int j = 0; j < 6; ++j) {
            const float column[3] = {t[0][j], t[1][j], t[2][j]};
            float want[6];
            filter_row(column, want);
            for (int i = 0; i < 6; ++i) {
              const float got = u[static_cast<std::size_t>((i * 6 + j) * kStride + lane)];
              EXPECT_EQ(bits_of(got), bits_of(want[i]))
                  << "lane " << lane << " position " << i << "," << j << " rotated " << rotated;
            }
          }
        }
        EXPECT_EQ(u[16], kNothing);  // between two positions
        EXPECT_EQ(u[kMatrices * kStride], kNothing);
      }
  });
}

TEST(WinogradTables, OutputsStayInsideTheImage) {
  for_sides([](const Sides& sides) {
    const Side& side = sides.f32;
    for (const Output& o : outputs()) {
      Values out = o.plain(side);
      o.for_pixels(side, [&](std::size_t at, std::size_t) {
        EXPECT_NE(out[at], kNothing);
        out[at] = kNothing;
      });
      EXPECT_EQ(out, o.untouched());
    }
  });
}

TEST(WinogradTables, MomentsAreThoseOfWhatIsWritten) {
  for_sides([](const Sides& sides) {
    const Side& side = sides.f32;
    for (const Output& o : outputs()) {
      const Values plain = o.plain(side);
      Values out = o.untouched(), shift = o.shift;
      Sums sums(o.image.channels);
      const Epilogue epilogue{
          .what = Epilogue::Sums::moments, .sums = sums.got.data(), .shift = shift.data()};
      side.transform_output(o.m.data(), o.stride, nullptr, out.data(), o.image, Output::kSample, o.y, o.x,
                            &epilogue);
      EXPECT_EQ(out, plain);
      o.for_pixels(side, [&](std::size_t at, std::size_t c) {
        const double d = static_cast<double>(plain[at]) - static_cast<double>(o.shift[c]);
        sums.add(c, d);
        sums.add(static_cast<std::size_t>(o.image.channels) + c, d * d);
      });
      sums.compare();
    }
  });
}

TEST(WinogradTables, GradientsPassTheMaskAndAreSummed) {
  for_sides([](const Sides& sides) {
    const Side& side = sides.f32;
    for (const Output& o : outputs())
      for (const Mask mask : {Mask::none, Mask::from_src, Mask::from_dst})
        for (const bool second : {false, true}) {
          const Values plain = o.plain(side);
          Values masked = o.untouched(), nothing = o.untouched();
          Sums sums(o.image.channels);
          Epilogue epilogue{.what = Epilogue::Sums::gradient, .sums = sums.got.data()};
          epilogue.gradient.src = o.src.data();
          epilogue.gradient.dst = o.dst.data();
          epilogue.gradient.d_dst = o.first.data();
          epilogue.gradient.d_dst2 = second ? nothing.data() : nullptr;
          epilogue.gradient.d_masked = masked.data();
          epilogue.gradient.mask = mask;
          epilogue.gradient.params.mean = o.mean.data();
          epilogue.gradient.params.scale = o.scale.data();
          epilogue.gradient.params.bias = o.bias.data();
          side.transform_output(o.m.data(), o.stride, nullptr, nothing.data(), o.image, Output::kSample, o.y,
                                o.x, &epilogue);
          EXPECT_EQ(nothing, o.untouched()) << "dst is not written";
          Values want = o.untouched();
          o.for_pixels(side, [&](std::size_t at, std::size_t c) {
            const float centred = o.src[at] - o.mean[c];
            const volatile float scaled = centred * o.scale[c];  // rounded, as the forward pass did
            const float y = mask == Mask::from_src   ? scaled + o.bias[c]
                            : mask == Mask::from_dst ? o.dst[at]
                                                     : 1;
            want[at] = y <= 0 ? 0 : plain[at] + (second ? o.first[at] : 0);
            sums.add(c, static_cast<double>(want[at]));
            sums.add(static_cast<std::size_t>(o.image.channels) + c,
                     static_cast<double>(want[at]) * static_cast<double>(centred));
          });
          EXPECT_EQ(masked, want);
          sums.compare();
        }
  });
}

TEST(WinogradTables, ProductsAreTheSumsInTheirOrder) {
  for_tables([](const WinogradKernels& table) {
    for (const int rows : {1, 5, 6, 7, 12, 13, 36})
      for (const int columns : {16, 32, 48})
        for (const int inner : {1, 3, 17})
          for (const bool adds : {false, true})
            for (const bool a_is_turned : {false, true}) {
              const Values a = random_values(rows * inner, 1), b = random_values(inner * 64, 2);
              Values c = random_values(rows * columns + 1, 3), want = c;
              table.multiply({.rows = rows,
                              .columns = columns,
                              .inner = inner,
                              .a = a.data(),
                              .a_row = a_is_turned ? 1 : inner,
                              .a_inner = a_is_turned ? rows : 1,
                              .b = b.data(),
                              .b_inner = kPanel,
                              .b_panel = inner * kPanel,
                              .c = c.data(),
                              .c_row = columns,
                              .adds = adds});
              for (int r = 0; r < rows; ++r)
                for (int j = 0; j < columns; ++j) {
                  float& sum = want[static_cast<std::size_t>(r * columns + j)];
                  if (!adds) sum = 0;
                  for (int i = 0; i < inner; ++i)
                    sum = std::fma(
                        a[static_cast<std::size_t>(a_is_turned ? i * rows + r : r * inner + i)],
                        b[static_cast<std::size_t>(j / kPanel * inner * kPanel + i * kPanel + j % kPanel)],
                        sum);
                }
              EXPECT_EQ(c, want) << rows << "x" << columns << ", " << inner << (adds ? " added" : "");
            }
  });
}

TEST(WinogradTables, TablesGiveTheSameBits) {
  const auto tables = kernels_here();
  if (tables.size() < 2) GTEST_SKIP() << "one table alone runs on this processor";
  const ImageView image{7, 13, 48};
  const Values values = random_values(7 * 13 * 48, 1), sums = random_values(kMatrices * 16, 2),
               filters = random_values(9 * 16, 3);
  std::vector<Values> results;
  for (const auto* table : tables) {
    Values& all = results.emplace_back();
    const auto keep = [&](std::span<const float> part) { all.insert(all.end(), part.begin(), part.end()); };
    for (const Transforms* of_stride : {&table->f32.stride1, &table->f32.stride2}) {
      const auto positions = static_cast<std::size_t>(of_stride->positions * of_stride->positions);
      for (const auto& [y, x] : {std::pair{-1, -1}, {0, 1}, {3, 7}}) {
        Values v(positions * 48), z(positions * 32);
        for (const Side* side : {&of_stride->forward, &of_stride->backward}) {
          side->transform_input(values.data(), image, y, x, v.data(), 48);
          keep(v);
        }
        of_stride->transform_gradient(values.data(), image, 16, 32, std::max(y, 0), std::max(x, 0), z.data(),
                                      32, nullptr);
        keep(z);
      }
      Values taps(9 * 16);
      of_stride->transform_filter_gradients(sums.data(), 16, taps.data(), 16);
      keep(taps);
      for (const bool rotated : {false, true}) {
        base::Buffer room(kMatrices * 16 * sizeof(float));
        of_stride->transform_filters(filters.data(), 9, rotated, false, room.as<float>().data(), 16);
        end_streams();
        keep(room.as<float>());
      }
      for (const Output& o : outputs())
        for (const Side* side : {&of_stride->forward, &of_stride->backward}) keep(o.plain(*side));
    }
  }
  for (const Values& of_table : results) EXPECT_EQ(of_table, results.front());
}

/// 81 products for a tile: those of the matrix in the middle of both directions serve 16, of one direction 4.
TEST(WinogradTables, WithStrideTwoPositionsShareWeights) {
  int used[kMatrices] = {};
  for (int p = 0; p < kMostPositions; ++p) ++used[matrix_of(p, 9)];
  for (int m = 0; m < kMatrices; ++m) {
    const int down = m / kPoints == kPoints - 1 ? 4 : 1, across = m % kPoints == kPoints - 1 ? 4 : 1;
    EXPECT_EQ(used[m], down * across) << m;
  }
  for (int p = 0; p < kMatrices; ++p) EXPECT_EQ(matrix_of(p, kPoints), p);
}

}  // namespace
}  // namespace paceline::engine::cpu::winograd

namespace paceline::engine::cpu {

// Winograd in the algorithm's own kernels, of every instruction set that is here: precisions, bias, and how a
// batch is cut. That all shapes in fp32 are right is kernel_test.cc's, the tables' loops are
// winograd_test.cc's.

namespace {

/// The same sums of bf16 numbers: d_weight is as exact as in fp32, values are rounded once more, to 8 bits.
/// Float copies are not, but multiplied by rounded weights all the same.
TEST(WinogradKernel, MultipliesBf16StoredOrCopied) {
  int computed = 0;
  for (const Case& c : kKernelCases)
    for (const bool copied : {false, true}) {
      ConvShape s = shape_of(c);
      s.in_blocks = copied;
      s.type = s.dst_type = copied ? Storage::f32 : Storage::bf16;
      if (find_algorithm("winograd")->refusal({.shape = s})) continue;
      SCOPED_TRACE(text_of(c) + (copied ? ", copied" : ""));
      const Values src = rounded_to_bf16(random_values(s.samples * s.src.elements(), 1)),
                   weight = random_values(s.weights(), 2), rounded = rounded_to_bf16(weight),
                   d_dst = rounded_to_bf16(random_values(s.samples * s.dst.elements(), 3));
      const Expected want(s, {.src = src, .weight = rounded, .d_dst = d_dst});
      for (const auto* table : winograd::kernels_here()) {
        SCOPED_TRACE(name_of(table->isa));
        const auto error = [&](Direction direction, const std::vector<double>& expected) {
          const auto kernel = make_winograd(s, direction, *table);
          const auto got = results_of(*kernel, s, direction, {.src = src, .weight = weight, .d_dst = d_dst});
          return relative_error(got.values, expected);
        };
        // A rounding to 8 bits moves a number by 2^-10 of its power of two on average, 2^-9 at most.
        const auto limit = [&](std::int64_t length) {
          return (12 + 1.5 * std::sqrt(static_cast<double>(length))) * 0x1p-24;
        };
        EXPECT_LT(error(Direction::forward, want.dst), copied ? limit(9 * s.src.channels) : 0x1p-9);
        EXPECT_LT(error(Direction::backward_data, want.d_src), copied ? limit(9 * s.dst.channels) : 0x1p-9);
        EXPECT_LT(error(Direction::backward_weights, want.d_weight), limit(s.samples * s.dst_pixels()));
        ++computed;
      }
    }
  EXPECT_EQ(computed, 2 * 19 * static_cast<int>(winograd::kernels_here().size()));
}

TEST(WinogradKernel, AddsABiasAndSumsItsGradient) {
  int computed = 0;
  for (const Case& c : kKernelCases)
    for (const Storage storage : {Storage::f32, Storage::bf16}) {
      ConvShape s = shape_of(c);
      s.bias = true;
      s.type = s.dst_type = storage;
      if (find_algorithm("winograd")->refusal({.shape = s})) continue;
      SCOPED_TRACE(text_of(c));
      const auto values = [&](std::int64_t count, std::uint64_t seed) {
        return rounded_to_bf16(random_values(count, seed));
      };
      const Values src = values(s.samples * s.src.elements(), 1), weight = values(s.weights(), 2),
                   d_dst = values(s.samples * s.dst.elements(), 3), bias = random_values(s.dst.channels, 4);
      const Data data{.src = src, .weight = weight, .d_dst = d_dst, .bias = bias};
      const Expected want(s, data);
      const double root = std::sqrt(static_cast<double>(9 * s.src.channels));
      for (const auto* table : winograd::kernels_here()) {
        SCOPED_TRACE(name_of(table->isa));
        const auto results = [&](Direction direction) {
          return results_of(*make_winograd(s, direction, *table), s, direction, data);
        };
        EXPECT_LT(relative_error(results(Direction::forward).values, want.dst),
                  storage == Storage::bf16 ? 0x1p-9 : (12 + 1.5 * root) * 0x1p-24);
        EXPECT_LT(relative_error(results(Direction::backward_weights).d_bias, want.d_bias), 0x1p-22);
        ++computed;
      }
    }
  EXPECT_EQ(computed, 2 * 19 * static_cast<int>(winograd::kernels_here().size()));
}

TEST(WinogradKernel, CutsABatchIntoAnEvenNumberOfEqualPieces) {
  const auto samples = [](int batch, Direction direction) {
    return find_algorithm("winograd")->chunk(shape_of({256, 256, 8, 8, 3, 1, 1, batch}), direction);
  };
  // At most 24 samples, 96 tiles, read the weights together.
  for (const auto& [batch, want] :
       {std::pair{1, 1}, {16, 8}, {24, 12}, {25, 13}, {32, 16}, {64, 16}, {65, 17}, {128, 22}, {129, 22}}) {
    EXPECT_EQ(samples(batch, Direction::forward), want) << batch;
    EXPECT_EQ(samples(batch, Direction::backward_data), want) << batch;
  }
  EXPECT_EQ(samples(128, Direction::backward_weights), 32);  // whose chunks each sum up a copy of the weights
}

}  // namespace
}  // namespace paceline::engine::cpu
