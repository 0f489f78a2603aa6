// Which shapes each bf16 algorithm takes, how it cuts a batch, and which one is taken where nothing was
// measured.

#include "engine/cpu/conv/bf16/algorithms.h"

#include <gtest/gtest.h>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/batch_split.h"
#include "engine/cpu/conv/bf16/support.h"
#include "engine/cpu/conv/bf16/tile_runs.h"
#include "engine/cpu/conv/default_table.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {
namespace {

using units::Unit;

/// The name of the algorithm that is taken where nothing was measured.
std::string usual(const ConvShape& s, Direction direction, Unit unit = Unit::emulated_amx) {
  return usual_bf16_algorithm(s, direction, units::kernels_of(unit)).name;
}

TEST(Bf16Algorithms, AreRowsOfEveryUnitForBf16AndForMachinesWithTheUnit) {
  for (const Unit unit : {Unit::amx, Unit::avx512_bf16, Unit::emulated_amx}) {
    const auto rows = units::bf16_algorithms_on(unit);
    ASSERT_EQ(rows.size(), bf16_algorithms().size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const ConvAlgorithm& row = *rows[i];
      const Bf16Algorithm& algorithm = *bf16_algorithms()[i];
      EXPECT_EQ(row.name, std::string(units::name_of(unit)) + "-" + algorithm.name);
      EXPECT_EQ(find_algorithm(row.name) == &row, unit != Unit::emulated_amx) << "those are for tests";
      for (const Direction direction : kAllDirections) {
        ConvShape s = shape_of({64, 64, 8, 8, 3, 1, 1, 32});
        const auto refusal = [&] { return row.refusal({.shape = s, .direction = direction}); };
        s.type = s.dst_type = Storage::f32;
        EXPECT_EQ(refusal(), "is for bf16");
        s.type = s.dst_type = Storage::bf16;
        const auto unit_refuses = units::refusal_of(unit);
        EXPECT_EQ(refusal(),
                  unit_refuses ? unit_refuses : algorithm.refusal(s, direction, units::kernels_of(unit)));
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
  for (const Direction direction : kAllDirections) {
    const ConvShape s = bf16_shape_of({64, 64, 8, 8, 3, 1, 1, 32});
    EXPECT_EQ(usual_algorithm({.shape = s, .direction = direction}).family,
              units::refusal_of(Unit::amx) ? "" : "amx");
  }
}

int usual_chunk(const ConvShape& batch, Direction direction) {
  return bf16_algorithm(usual(batch, direction)).chunk(batch, direction);
}

TEST(Bf16Algorithms, TakeChunksOfWholeTilesOfSamplesButPixelRowsAnyChunk) {
  for (const int batch : {1, 7, 16, 33, 64, 128, 2000})
    for (const Direction direction : kAllDirections) {
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

/// What is taken on AMX where nothing was measured; elsewhere nothing of it.
TEST(Bf16Algorithms, AreUsualWhereTheyFillTheirTiles) {
  const bool here = !units::refusal_of(Unit::amx);
  const auto is_usual = [](const Case& c, Direction direction) {
    return usual_algorithm({.shape = bf16_shape_of(c), .direction = direction}).family == "amx";
  };
  for (const Direction direction : kAllDirections) {
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
  for (const Direction direction : kAllDirections) {
    const ConvProblem problem{.shape = s, .direction = direction};
    for (const ConvAlgorithm* row : units::bf16_algorithms_on(Unit::emulated_amx)) {
      if (row->refusal(problem)) continue;
      const double seconds = seconds_of(problem, *row);
      EXPECT_GT(seconds, 0) << row->name;
      EXPECT_LT(seconds, 60) << row->name;
    }
  }
}

}  // namespace
}  // namespace paceline::engine::cpu
