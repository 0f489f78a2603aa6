// Which shapes each bf16 algorithm takes, how it cuts a batch, and which one is taken where nothing was
// measured.

#include "engine/cpu/conv/bf16/algorithms.h"

#include <gtest/gtest.h>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/autotune.h"
#include "engine/cpu/conv/batch_split.h"
#include "engine/cpu/conv/bf16/packed_images.h"
#include "engine/cpu/conv/bf16/support.h"
#include "engine/cpu/conv/kernel_runs.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {
namespace {

using tiles::Unit;

constexpr Direction kDirections[] = {Direction::forward, Direction::backward_data,
                                     Direction::backward_weights};

ConvShape bf16_shape_of(const Case& c) {
  ConvShape s = shape_of(c);
  s.type = s.dst_type = Storage::bf16;
  return s;
}

const Bf16Algorithm& algorithm_named(std::string_view name) {
  const auto all = bf16_algorithms();
  const auto found = std::ranges::find(all, name, &Bf16Algorithm::name);
  if (found == all.end()) throw std::out_of_range(std::string(name));
  return **found;
}

bool can(const char* name, const ConvShape& s, Direction direction, Unit unit = Unit::emulated_amx) {
  return !algorithm_named(name).refusal(s, direction, tiles::kernels_of(unit));
}

/// The name of the algorithm that is taken where nothing was measured.
std::string usual(const ConvShape& s, Direction direction, Unit unit = Unit::emulated_amx) {
  return usual_bf16_algorithm(s, direction, tiles::kernels_of(unit)).name;
}

TEST(Bf16Algorithms, AreRowsOfEveryUnitForBf16AndForMachinesWithTheUnit) {
  for (const Unit unit : {Unit::amx, Unit::avx512_bf16, Unit::emulated_amx}) {
    const auto rows = bf16_algorithms_on(unit);
    ASSERT_EQ(rows.size(), bf16_algorithms().size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const ConvAlgorithm& row = *rows[i];
      const Bf16Algorithm& algorithm = *bf16_algorithms()[i];
      EXPECT_EQ(row.name, std::string(tiles::name_of(unit)) + "-" + algorithm.name);
      EXPECT_EQ(find_algorithm(row.name) == &row, unit != Unit::emulated_amx) << "those are for tests";
      for (const Direction direction : kDirections) {
        ConvShape s = shape_of({64, 64, 8, 8, 3, 1, 1, 32});
        const auto refusal = [&] { return row.refusal({.shape = s, .direction = direction}); };
        s.type = s.dst_type = Storage::f32;
        EXPECT_EQ(refusal(), "is for bf16");
        s.type = s.dst_type = Storage::bf16;
        const auto unit_refuses = tiles::refusal_of(unit);
        EXPECT_EQ(refusal(),
                  unit_refuses ? unit_refuses : algorithm.refusal(s, direction, tiles::kernels_of(unit)));
        s.type = s.dst_type = Storage::f32;
        s.in_blocks = true;
        EXPECT_EQ(refusal(), unit_refuses.value_or("multiplies bf16, and this run multiplies float copies"));
      }
    }
  }
  ConvShape s = shape_of({64, 64, 8, 8, 3, 1, 1, 32});
  s.type = s.dst_type = Storage::bf16;
  EXPECT_NE(why_not_others(*find_algorithm("onednn"), {.shape = s}, true).find("amx"), std::string::npos);
}

/// Only measuring may choose another unit's.
TEST(Bf16Algorithms, AreUsualOnAmxOnly) {
  for (const Direction direction : kDirections) {
    const ConvShape s = bf16_shape_of({64, 64, 8, 8, 3, 1, 1, 32});
    EXPECT_EQ(usual_algorithm({.shape = s, .direction = direction}).family,
              tiles::refusal_of(Unit::amx) ? "" : "amx");
  }
}

int usual_chunk(const ConvShape& batch, Direction direction) {
  return algorithm_named(usual(batch, direction)).chunk(batch, direction);
}

TEST(Bf16Algorithms, TakeChunksOfWholeTilesOfSamplesButPixelRowsAnyChunk) {
  for (const int batch : {1, 7, 16, 33, 64, 128, 2000})
    for (const Direction direction : kDirections) {
      const ConvShape small = bf16_shape_of({64, 64, 8, 8, 5, 1, 2, batch});
      const int samples = usual_chunk(small, direction);
      EXPECT_TRUE(samples == batch || (samples % tiles::kHalf == 0 && samples < batch))
          << samples << " of " << batch;
      const ConvShape wide = bf16_shape_of({64, 64, 16, 16, 3, 1, 1, batch});
      if (direction == Direction::backward_weights) continue;
      EXPECT_EQ(usual_chunk(wide, direction), samples_of_chunk(wide, direction));
      // Short rows want images side by side.
      const ConvShape narrow = bf16_shape_of({32, 32, 4, 4, 3, 1, 1, batch});
      const int usual = samples_of_chunk(narrow, direction);
      const int of_narrow = usual_chunk(narrow, direction);
      EXPECT_TRUE(of_narrow == batch || of_narrow % 4 == 0) << of_narrow << " of " << batch;
      EXPECT_TRUE(of_narrow >= usual && of_narrow < usual + 4) << of_narrow << " for " << usual;
    }
}

TEST(Bf16Algorithms, TakeStripsForLongRowsOfWholeBlocks) {
  const auto directions = [&](const Case& c) {
    std::string found;
    for (const Direction direction : kDirections)
      if (can("pixel-rows", bf16_shape_of(c), direction))
        found += direction == Direction::forward ? "f" : "s";
    return found;
  };
  EXPECT_EQ(directions({32, 64, 6, 16, 3, 1, 1, 3}), "fs");
  EXPECT_EQ(directions({32, 64, 7, 45, 3, 1, 1, 2}), "fs");  // three tiles of a row
  EXPECT_EQ(directions({32, 32, 9, 60, 3, 2, 1, 1}), "f") << "backward with a stride";
  EXPECT_EQ(directions({32, 32, 9, 64, 7, 2, 3, 1}), "f");
  EXPECT_EQ(directions({32, 32, 9, 47, 2, 3, 1, 1}), "f");
  EXPECT_EQ(directions({32, 32, 5, 17, 2, 1, 0, 1}), "f") << "17 pixels would be 32";
  EXPECT_EQ(directions({32, 32, 4, 14, 3, 1, 2, 2}), "f") << "of 14 pixels there is no tile";
  EXPECT_EQ(directions({32, 40, 6, 16, 3, 1, 1, 3}), "") << "no whole blocks";
  EXPECT_EQ(directions({32, 32, 6, 32, 9, 1, 4, 1}), "") << "too wide a kernel";
  EXPECT_EQ(directions({256, 512, 6, 16, 3, 1, 1, 3}), "") << "weights that no near cache holds";
  ConvShape wide = bf16_shape_of({32, 64, 6, 16, 3, 1, 1, 3});
  wide.dst_type = Storage::f32;
  EXPECT_FALSE(can("pixel-rows", wide, Direction::forward));
  EXPECT_FALSE(can("pixel-rows", bf16_shape_of({32, 64, 6, 16, 3, 1, 1, 3}), Direction::forward,
                   Unit::emulated_avx512));
}

TEST(Bf16Algorithms, PutImagesSideBySideWhereRowsAreShort) {
  const auto images = [&](const Case& c, Direction direction) {
    const ConvShape s = bf16_shape_of(c);
    const int found = images_side_by_side(s, direction);
    EXPECT_TRUE(found == 0 || !can("pixel-rows", s, direction)) << "either way";
    EXPECT_EQ(can("packed-images", s, direction), found > 0) << text_of(c);
    EXPECT_EQ(usual(s, direction) == "packed-images", found > 0) << text_of(c);
    return found;
  };
  constexpr auto kForward = Direction::forward, kBackward = Direction::backward_data;
  for (const Direction direction : {kForward, kBackward}) {
    EXPECT_EQ(images({256, 256, 8, 8, 3, 1, 1, 4}, direction), 2);
    EXPECT_EQ(images({256, 256, 8, 8, 3, 1, 1, 1}, direction), 2) << "any batch";
    EXPECT_EQ(images({64, 64, 4, 4, 3, 1, 1, 4}, direction), 4);
    EXPECT_EQ(images({32, 32, 5, 12, 3, 1, 1, 3}, direction), 4);
    EXPECT_EQ(images({32, 32, 8, 6, 3, 1, 1, 3}, direction), 0) << "eight images";
    EXPECT_EQ(images({32, 32, 8, 7, 3, 1, 1, 3}, direction), 0) << "sixteen images";
    EXPECT_EQ(images({32, 32, 8, 16, 3, 1, 1, 3}, direction), 0) << "long rows";
    EXPECT_EQ(images({32, 40, 8, 8, 3, 1, 1, 3}, direction), 0) << "no whole blocks";
    EXPECT_EQ(images({32, 32, 8, 8, 5, 1, 2, 3}, direction), 0) << "kernel 5";
    EXPECT_EQ(images({32, 64, 9, 16, 3, 2, 1, 3}, direction), 2);
    EXPECT_EQ(images({32, 64, 8, 8, 3, 2, 1, 3}, direction), 4);
    EXPECT_EQ(images({32, 64, 8, 15, 3, 2, 1, 3}, direction), 0) << "more even columns than odd ones";
    EXPECT_EQ(images({32, 64, 8, 18, 3, 2, 0, 3}, direction), 0) << "other taps";
    EXPECT_EQ(images({32, 32, 8, direction == kForward ? 22 : 8, 3, 3, 1, 3}, direction), 0) << "stride 3";
    EXPECT_EQ(images({512, 512, 8, 8, 3, 2, 1, 32}, direction), 0) << "weights that no near cache holds";
    EXPECT_EQ(images({512, 512, 4, 4, 3, 1, 1, 32}, direction), 0) << "weights that no near cache holds";
  }
  EXPECT_EQ(images({256, 256, 8, 8, 3, 1, 1, 4}, Direction::backward_weights), 0);
  EXPECT_EQ(images({32, 64, 32, 32, 3, 2, 1, 3}, kForward), 0) << "long rows";
  EXPECT_EQ(images({32, 64, 32, 32, 3, 2, 1, 3}, kBackward), 1)
      << "pixels of four kinds, though rows are long";
  EXPECT_EQ(images({256, 256, 160, 32, 3, 2, 1, 3}, kBackward), 0) << "an image that no near cache holds";
  EXPECT_EQ(images({32, 32, 9, 10, 3, 1, 0, 3}, kForward), 2) << "rows of results are 8 long";
  EXPECT_EQ(images({32, 32, 9, 10, 3, 1, 0, 3}, kBackward), 0);
  ConvShape floats = bf16_shape_of({64, 64, 8, 8, 3, 1, 1, 4});
  floats.dst_type = Storage::f32;
  EXPECT_EQ(images_side_by_side(floats, kForward), 0);
  EXPECT_FALSE(
      can("packed-images", bf16_shape_of({64, 64, 8, 8, 3, 1, 1, 4}), kForward, Unit::emulated_avx512));
}

TEST(Bf16Algorithms, SumGradientsOverPairsOfSamplesWhereThereArePixels) {
  const auto takes = [](const Case& c, Unit unit = Unit::emulated_amx) {
    return can("wgrad-pixel-k", bf16_shape_of(c), Direction::backward_weights, unit);
  };
  // The convolutions of ResNet-18, for small images and for large ones.
  EXPECT_TRUE(takes({64, 64, 32, 32, 3, 1, 1, 32}));
  EXPECT_TRUE(takes({128, 128, 16, 16, 3, 1, 1, 32}));
  EXPECT_TRUE(takes({64, 128, 32, 32, 3, 2, 1, 32}));
  EXPECT_TRUE(takes({256, 512, 8, 8, 3, 2, 1, 32}));
  EXPECT_TRUE(takes({256, 256, 14, 14, 3, 1, 1, 16}));
  EXPECT_TRUE(takes({256, 256, 8, 8, 3, 1, 1, 32}));
  EXPECT_FALSE(takes({512, 512, 7, 7, 3, 1, 1, 32})) << "few pixels";
  EXPECT_FALSE(takes({512, 512, 4, 4, 3, 1, 1, 32})) << "few pixels";
  EXPECT_FALSE(takes({64, 128, 32, 32, 1, 2, 0, 32})) << "one tap";
  EXPECT_FALSE(takes({64, 64, 32, 32, 5, 1, 2, 32})) << "five taps";
  EXPECT_FALSE(takes({64, 64, 32, 32, 3, 1, 3, 32})) << "padding as wide as the kernel";
  EXPECT_FALSE(takes({48, 64, 32, 32, 3, 1, 1, 32})) << "no whole blocks";
  EXPECT_FALSE(takes({64, 48, 32, 32, 3, 1, 1, 32})) << "no whole blocks";
  EXPECT_FALSE(takes({64, 64, 32, 32, 3, 1, 1, 32}, Unit::emulated_avx512));
  const auto name = [](const Case& c) { return usual(bf16_shape_of(c), Direction::backward_weights); };
  EXPECT_EQ(name({64, 64, 32, 32, 3, 1, 1, 32}), "wgrad-pixel-k");
  EXPECT_EQ(name({64, 64, 4, 4, 3, 1, 1, 32}), "wgrad-batch-k");
  EXPECT_EQ(name({3, 64, 32, 32, 3, 1, 1, 32}), "wgrad-im2col");
}

/// What is taken on AMX where nothing was measured; elsewhere nothing of it.
TEST(Bf16Algorithms, AreUsualWhereTheyFillTheirTiles) {
  const bool here = !tiles::refusal_of(Unit::amx);
  const auto is_usual = [](const Case& c, Direction direction) {
    return usual_algorithm({.shape = bf16_shape_of(c), .direction = direction}).family == "amx";
  };
  for (const Direction direction : kDirections) {
    EXPECT_EQ(is_usual({64, 64, 8, 8, 3, 1, 1, 16}, direction), here);
    EXPECT_FALSE(is_usual({32, 64, 8, 8, 3, 1, 1, 16}, direction)) << "few channels";
    EXPECT_FALSE(is_usual({64, 64, 7, 7, 3, 1, 1, 15}, direction)) << "few samples";
    EXPECT_FALSE(is_usual({64, 64, 8, 8, 3, 1, 1, 1}, direction)) << "one image has none beside it";
    EXPECT_EQ(is_usual({64, 64, 8, 8, 3, 1, 1, 2}, direction),
              here && direction != Direction::backward_weights);
    EXPECT_EQ(is_usual({64, 64, 32, 32, 3, 1, 1, 1}, direction),
              here && direction != Direction::backward_weights);
    EXPECT_EQ(is_usual({64, 128, 18, 18, 3, 2, 1, 32}, direction), here && direction != Direction::forward);
    EXPECT_EQ(is_usual({64, 64, 32, 32, 1, 2, 0, 1}, direction), false) << "1x1: a wash";
    EXPECT_EQ(is_usual({3, 64, 32, 32, 3, 1, 1, 8}, direction),
              here && direction == Direction::backward_weights);
  }
}

TEST(Bf16Algorithms, CanBeTimedLikeAllOthers) {
  ConvShape s = shape_of({40, 33, 5, 5, 3, 1, 1, 33});
  s.type = s.dst_type = Storage::bf16;
  const OneThread one_thread;
  for (const Direction direction : kDirections) {
    const ConvProblem problem{.shape = s, .direction = direction};
    for (const ConvAlgorithm* row : bf16_algorithms_on(Unit::emulated_amx)) {
      if (row->refusal(problem)) continue;
      const double seconds = seconds_of(problem, *row);
      EXPECT_GT(seconds, 0) << row->name;
      EXPECT_LT(seconds, 60) << row->name;
    }
  }
}

}  // namespace
}  // namespace paceline::engine::cpu
