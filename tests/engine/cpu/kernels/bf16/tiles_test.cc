// The operations on bf16 tiles of every unit, one by one: products against sums in double, packing bit by
// bit.

#include "engine/cpu/kernels/bf16/tiles.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/buffer.h"
#include "engine/cpu/conv/bf16/on_unit.h"
#include "engine/cpu/conv/kernel_runs.h"

namespace paceline::engine::cpu::tiles {
namespace {

using units::Unit;
using Bits = std::vector<std::uint16_t>;

class Tiles : public OnUnit {};
INSTANTIATE_TEST_SUITE_P(Units, Tiles, every_unit(), name_of_unit);

Bits random_bits(std::size_t count, std::uint64_t seed) {
  Bits bits;
  for (const float value : random_values(static_cast<std::int64_t>(count), seed))
    bits.push_back(base::to_bf16(value).bits);
  return bits;
}
double number(std::uint16_t bits) { return static_cast<double>(base::to_float({bits})); }

/// Element (i, j) of a block of b.
std::size_t in_b(int i, int j) {
  return static_cast<std::size_t>(((j / kHalf * kHalf + i / 2) * kHalf + j % kHalf) * 2 + i % 2);
}

/// One product of a block of a, all of whose rows are `a`, with one of b, all of whose columns are `b`, added
/// to `sum`.
float product(const TileKernels& kernels, const Bits& a, const Bits& b, float sum) {
  Bits block_a(kBlockElements), block_b(kBlockElements);
  for (int row = 0; row < kBlock; ++row)
    for (int i = 0; i < kBlock; ++i) {
      block_a[static_cast<std::size_t>(row * kBlock + i)] = a[static_cast<std::size_t>(i)];
      block_b[in_b(i, row)] = b[static_cast<std::size_t>(i)];
    }
  Values sums(kBlockElements, sum);
  const Operand operand{.a = block_a.data(), .b = block_b.data()};
  const UnitSession session(kernels);
  kernels.multiply({.operands = &operand, .count = 1, .sums = sums.data(), .adds = true});
  for (const float value : sums) {
    if (!std::isnan(sums.front())) {
      EXPECT_EQ(value, sums.front());
    } else {
      EXPECT_TRUE(std::isnan(value));
    }
  }
  return sums.front();
}
Bits pair(float first, float second) {
  Bits bits(kBlock, 0);
  bits[0] = base::to_bf16(first).bits;
  bits[1] = base::to_bf16(second).bits;
  return bits;
}

TEST_P(Tiles, MultiplyLikeSumsInDouble) {
  for (const int rows : {16, 32})
    for (const int count : {0, 1, 3})
      for (const int depth : {1, 2})
        for (const bool adds : {false, true}) {
          SCOPED_TRACE(testing::Message() << rows << " rows, " << count << " operands, depth " << depth);
          const std::int64_t a_step = rows * kBlock, at = 64;
          std::vector<Bits> a, b;
          std::vector<Operand> operands;
          for (int i = 0; i < count; ++i) {
            a.push_back(random_bits(static_cast<std::size_t>(at + depth * a_step), 10U + i));
            b.push_back(random_bits(static_cast<std::size_t>(at + depth * kBlockElements), 20U + i));
          }
          for (int i = 0; i < count; ++i)
            operands.push_back(
                {.a = a[static_cast<std::size_t>(i)].data(), .b = b[static_cast<std::size_t>(i)].data()});
          const Values before = random_values(rows * kBlock, 30);
          Values sums = adds ? before : Values(before.size(), std::numeric_limits<float>::quiet_NaN());
          sums.push_back(42);
          const UnitSession session(kernels());
          kernels().multiply({.rows = rows,
                              .operands = operands.data(),
                              .count = count,
                              .depth = depth,
                              .a_at = at,
                              .b_at = at,
                              .a_step = a_step,
                              .sums = sums.data(),
                              .adds = adds});
          EXPECT_EQ(sums.back(), 42) << "nothing is written behind the block";
          for (int row = 0; row < rows; ++row)
            for (int column = 0; column < kBlock; ++column) {
              const auto place = static_cast<std::size_t>(row * kBlock + column);
              double want = adds ? static_cast<double>(before[place]) : 0, size = std::abs(want);
              for (int o = 0; o < count; ++o)
                for (int d = 0; d < depth; ++d)
                  for (int i = 0; i < kBlock; ++i) {
                    const double term =
                        number(a[static_cast<std::size_t>(o)]
                                [static_cast<std::size_t>(at + d * a_step + row * kBlock + i)]) *
                        number(b[static_cast<std::size_t>(o)]
                                [static_cast<std::size_t>(at + d * kBlockElements) + in_b(i, column)]);
                    want += term;
                    size += std::abs(term);
                  }
              ASSERT_NEAR(static_cast<double>(sums[place]), want, 8 * 0x1p-24 * size)
                  << row << ", " << column;
            }
        }
}

// The order of sums tells the units apart: AMX sums a tile's pairs before it adds them to what there is,
// AVX512-BF16 adds every product to it. 2^24 + 1 is no float.
TEST_P(Tiles, AddInTheDocumentedOrder) {
  const bool is_amx = GetParam() == Unit::amx || GetParam() == Unit::emulated_amx;
  EXPECT_EQ(product(kernels(), pair(1, 1), pair(1, 1), 0x1p24F), is_amx ? 0x1p24F + 2 : 0x1p24F);
  // The second half of a pair first: -2^24 leaves the 1 exact; after the first half it would be lost.
  EXPECT_EQ(product(kernels(), pair(1, 0x1p12F), pair(1, -0x1p12F), 0x1p24F), 1);
}

TEST_P(Tiles, TakeDenormalsForZeroAndKeepInfinityAndNaN) {
  const float smallest = std::numeric_limits<float>::min(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(product(kernels(), pair(smallest / 2, 0), pair(1, 0), 0), 0) << "a denormal factor";
  EXPECT_EQ(product(kernels(), pair(1, 0), pair(smallest / 4, 0), 1), 1);
  EXPECT_EQ(product(kernels(), pair(smallest, 0), pair(0.5F, 0), 0), 0) << "a denormal product";
  EXPECT_EQ(product(kernels(), pair(0, 0), pair(0, 0), smallest / 2), 0) << "a denormal sum";
  EXPECT_EQ(product(kernels(), pair(smallest, 0), pair(1, 0), 0), smallest);
  EXPECT_EQ(product(kernels(), pair(inf, 0), pair(1, 0), 1), inf);
  EXPECT_TRUE(std::isnan(product(kernels(), pair(inf, 0), pair(0, 0), 1)));
  EXPECT_TRUE(
      std::isnan(product(kernels(), pair(1, 0), pair(1, 0), std::numeric_limits<float>::quiet_NaN())));
}

/// A row of an image that lies between other rows and channels.
struct Image {
  Image(int samples, int pixels, int channels)
      : row{.sample_stride = (pixels + 3) * (channels + 5),
            .pixel_stride = channels + 5,
            .samples = samples,
            .pixels = pixels,
            .channels = channels},
        bits(random_bits(static_cast<std::size_t>(samples * row.sample_stride), 7)) {
    row.values = bits.data();
  }
  /// Zero beyond the samples and channels.
  std::uint16_t at(int n, int pixel, int c) const {
    return n < row.samples && c < row.channels
               ? bits[static_cast<std::size_t>(n * row.sample_stride + pixel * row.pixel_stride + c)]
               : std::uint16_t{0};
  }
  PixelRow row;
  Bits bits;
};

TEST_P(Tiles, PackRowsOfPixels) {
  for (const int samples : {1, 7, 16, 31, 32})
    for (const int channels : {1, 3, 16, 17, 31, 32, 33, 48, 64, 70, 257, 320})
      for (const int pixels : {1, 3, 9}) {
        SCOPED_TRACE(testing::Message() << samples << " samples, " << channels << " channels");
        const Image image(samples, pixels, channels);
        const int blocks = blocks_of(channels), rows = rows_of(samples);
        const auto all = static_cast<std::size_t>(pixels * blocks * kBlockElements);
        Bits gathered(all + 1, 0x7fff), transposed(all + 1, 0x7fff), interleaved(all + 1, 0x7fff);
        kernels().gather(image.row, rows, gathered.data());
        kernels().transpose(image.row, transposed.data(), pixels * kBlockElements);
        kernels().interleave(image.row, interleaved.data(), pixels * kBlockElements);
        for (int pixel = 0; pixel < pixels; ++pixel)
          for (int c = 0; c < blocks * kBlock; ++c) {
            const int block = pixel * blocks + c / kBlock, within = c % kBlock;
            const int apart = c / kBlock * pixels + pixel;  // where blocks of channels lie apart
            for (int n = 0; n < kBlock; ++n) {
              const std::uint16_t want = image.at(n, pixel, c);
              if (n < rows) {
                ASSERT_EQ(gathered[static_cast<std::size_t>((block * rows + n) * kBlock + within)], want);
              }
              ASSERT_EQ(transposed[static_cast<std::size_t>((apart * kBlock + within) * kBlock + n)], want);
              ASSERT_EQ(interleaved[static_cast<std::size_t>(apart * kBlockElements) + in_b(n, within)],
                        want);
            }
          }
        EXPECT_EQ(gathered[static_cast<std::size_t>(pixels * blocks * rows * kBlock)], 0x7fff);
        EXPECT_EQ(transposed.back(), 0x7fff);
        EXPECT_EQ(interleaved.back(), 0x7fff);
      }
}

TEST_P(Tiles, PackPairsOfSamplesAsLinesAndTurned) {
  for (const int pairs : {1, 2, 4, 16})
    for (const int missing : {0, 1, 2 * pairs - 1})
      for (const int channels : {32, 96}) {
        SCOPED_TRACE(testing::Message() << pairs << " pairs, " << missing << " missing, " << channels);
        const int pixels = 3 * kHalf / pairs, lines = pixels * pairs, halves = channels / kHalf;
        const Image image(2 * pairs - missing, pixels, channels);
        const std::int64_t step = lines * kBlock + 64;  // from one half to the next, with room between
        Bits plain(static_cast<std::size_t>(halves * step), 0x7fff), turned = plain;
        kernels().pair_lines(image.row, pairs, plain.data(), step);
        kernels().pair_squares(image.row, pairs, turned.data(), step);
        for (int half = 0; half < halves; ++half) {
          for (int line = 0; line < lines; ++line)
            for (int i = 0; i < kHalf; ++i)
              for (int second = 0; second < 2; ++second) {
                const std::uint16_t want =
                    image.at(2 * (line % pairs) + second, line / pairs, half / 2 * kBlock + 2 * i + half % 2);
                ASSERT_EQ(plain[static_cast<std::size_t>(half * step + (line * kHalf + i) * 2 + second)],
                          want);
                const int square = line / kHalf * kHalf, row = square + i, column = line % kHalf;
                ASSERT_EQ(turned[static_cast<std::size_t>(half * step + (row * kHalf + column) * 2 + second)],
                          want);
              }
          for (const Bits& bits : {plain, turned})
            for (int i = lines * kBlock; i < step; ++i)
              ASSERT_EQ(bits[static_cast<std::size_t>(half * step + i)], 0x7fff) << "written between halves";
        }
      }
}

// However many products there are to add the visit before beside: none, few, more than its lines.
TEST_P(Tiles, AddWhatTheVisitBeforeLeft) {
  if (kernels().visit_pairs == nullptr) GTEST_SKIP() << "this unit has no use for it";
  constexpr int kLines = 2, kRows = 3, kMostTiles = 40;  // lines between taps, rows of tiles
  const std::int64_t row = (kMostTiles * kHalf + kPairTaps * kLines) * kBlock, a_half = kRows * row;
  const Bits a = random_bits(static_cast<std::size_t>(2 * a_half), 20);
  const Bits b = random_bits(static_cast<std::size_t>(kRows * row), 21);
  base::Buffer room(sizeof(float) * 4 * kPairSums);
  const auto near = room.as<float>();
  for (const int tiles : {1, 2, 11, 16, kMostTiles}) {
    for (float& value : near) value = std::numeric_limits<float>::quiet_NaN();
    float* const sums = near.data() + 2 * kPairSums;  // of two visits, beside each other
    std::array<Operand, kRows> rows;
    for (int i = 0; i < kRows; ++i)
      rows[static_cast<std::size_t>(i)] = {.a = a.data() + i * row, .b = b.data() + i * row};
    PairRest rest;
    PairVisit visit{.rows = rows.data(),
                    .tiles = tiles,
                    .a_half = a_half,
                    .b_tap = {0, kLines * kBlock, 2 * kLines * kBlock},
                    .near_sums = near.data(),
                    .rest = &rest};
    {
      const UnitSession session(kernels());
      for (const auto& [place, count, adds] :
           {std::tuple{0, kRows, false}, {1, 0, false}, {1, 1, true}, {0, 2, true}}) {
        visit.count = count;
        visit.sums = sums + place * kPairSums;
        visit.adds = adds;
        kernels().visit_pairs(visit);
      }
      kernels().finish_pairs(rest);
      kernels().finish_pairs(rest);  // nothing is left, nothing happens
    }
    const auto term = [&](int r, int tap, int k, int half, int c) {
      double sum = 0;
      for (int line = 0; line < tiles * kHalf; ++line)
        for (int second = 0; second < 2; ++second)
          sum +=
              number(
                  a[static_cast<std::size_t>(half * a_half + r * row + (line / kHalf * kHalf + k) * kBlock +
                                             line % kHalf * 2 + second)]) *
              number(b[static_cast<std::size_t>(r * row + (line + tap * kLines) * kBlock + 2 * c + second)]);
      return sum;
    };
    for (int tap = 0; tap < kPairTaps; ++tap)
      for (int half = 0; half < 2; ++half)
        for (const auto& [k, c] : {std::pair{0, 0}, {3, 15}, {15, 1}}) {
          const int at = (tap * kHalf + k) * kBlock + half * kHalf + c;
          const double first = term(0, tap, k, half, c), second = term(1, tap, k, half, c);
          EXPECT_NEAR(static_cast<double>(sums[at]), 2 * first + 2 * second + term(2, tap, k, half, c), 1e-2)
              << tiles << " tiles, tap " << tap;
          EXPECT_NEAR(static_cast<double>(sums[kPairSums + at]), first, 1e-2);
        }
  }
}

TEST_P(Tiles, PackWeightsForBothDirections) {
  for (const int taps : {1, 4, 9, kMostTaps})
    for (const bool outs_are_rows : {false, true}) {
      SCOPED_TRACE(testing::Message() << taps << " taps, outputs are rows: " << outs_are_rows);
      const std::int64_t stride = (kBlock + 3) * taps, step = 2 * kBlockElements;
      const Values weights = random_values(static_cast<std::size_t>(kBlock * stride), 10);
      base::Buffer room(2 * static_cast<std::size_t>(taps * step));  // whose lines are whole ones
      const auto packed = room.as<std::uint16_t>();
      std::ranges::fill(packed, std::uint16_t{0x7fff});
      kernels().pack_weights({.weights = weights.data(),
                              .stride = stride,
                              .taps = taps,
                              .outs_are_rows = outs_are_rows,
                              .packed = packed.data(),
                              .tap_step = step,
                              .next = weights.data()});
      for (int tap = 0; tap < taps; ++tap) {
        const auto block = static_cast<std::size_t>(tap * step);
        for (int k = 0; k < kBlock; ++k)
          for (int c = 0; c < kBlock; ++c) {
            const float want = weights[static_cast<std::size_t>(k * stride + c * taps + tap)];
            ASSERT_EQ(packed[block + (outs_are_rows ? in_b(k, c) : in_b(c, k))], base::to_bf16(want).bits);
          }
        for (int i = kBlockElements; i < step; ++i)
          ASSERT_EQ(packed[block + static_cast<std::size_t>(i)], 0x7fff) << "written beside the block";
      }
    }
}

TEST_P(Tiles, WritePixelsAndNothingBesideThem) {
  const Values sums = random_values(kBlockElements, 8), bias = random_values(kBlock, 9);
  for (const int samples : {1, 17, 32})
    for (const int channels : {1, 15, 16, 17, 31, 32})
      for (const bool has_bias : {false, true}) {
        constexpr int kStride = 45;
        Values floats(kBlock * kStride, -1);
        Bits halves(kBlock * kStride, 0x7fff);
        Pixel pixel{.sums = sums.data(),
                    .bias = has_bias ? bias.data() : nullptr,
                    .values = floats.data(),
                    .sample_stride = kStride,
                    .samples = samples,
                    .channels = channels};
        kernels().write_f32(pixel);
        pixel.values = halves.data();
        kernels().write_bf16(pixel);
        for (int n = 0; n < kBlock; ++n)
          for (int c = 0; c < kStride; ++c) {
            const auto at = static_cast<std::size_t>(n * kStride + c);
            const bool is_written = n < samples && c < channels;
            const float want = !is_written ? -1
                                           : sums[static_cast<std::size_t>(n * kBlock + c)] +
                                                 (has_bias ? bias[static_cast<std::size_t>(c)] : 0);
            ASSERT_EQ(floats[at], want);
            ASSERT_EQ(halves[at], is_written ? base::to_bf16(want).bits : 0x7fff);
          }
      }
}

TEST_P(Tiles, AddTheValuesOfARow) {
  for (const int channels : {1, 16, 33}) {
    const Image image(5, 7, channels);
    Values sums(static_cast<std::size_t>(channels) + 1, 2);
    kernels().add_values(image.row, sums.data());
    for (int c = 0; c < channels; ++c) {
      double want = 2;
      for (int n = 0; n < 5; ++n)
        for (int pixel = 0; pixel < 7; ++pixel) want += number(image.at(n, pixel, c));
      EXPECT_NEAR(static_cast<double>(sums[static_cast<std::size_t>(c)]), want, 1e-5);
    }
    EXPECT_EQ(sums.back(), 2);
  }
}

}  // namespace
}  // namespace paceline::engine::cpu::tiles
