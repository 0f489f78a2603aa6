// Samples as rows of tiles, forward and backward data: what takes any shape on any unit.

#include <gtest/gtest.h>

#include <string>

#include "engine/cpu/conv/bf16/tile_runs.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {
namespace {

using units::Unit;

class BatchRows : public OnUnit {};
INSTANTIATE_TEST_SUITE_P(Units, BatchRows, every_unit(), name_of_unit);

TEST_P(BatchRows, ComputesLikeSumsInDouble) { expect_sums_in_double("batch-rows", GetParam(), 400); }

TEST_P(BatchRows, PacksAlikeForAnySamples) {
  expect_packed_alike("batch-rows", {40, 33, 5, 5, 3, 1, 1, 33}, kernels());
}

TEST_P(BatchRows, RefusesGradientsOfWeightsAlone) {
  for (const Case& c : kTileCases) {
    EXPECT_EQ(bf16_refusal("batch-rows", bf16_shape_of(c), Direction::forward, GetParam()), "");
    EXPECT_EQ(bf16_refusal("batch-rows", bf16_shape_of(c), Direction::backward_data, GetParam()), "");
    EXPECT_EQ(bf16_refusal("batch-rows", bf16_shape_of(c), Direction::backward_weights, GetParam()),
              "is for forward and backward data");
  }
}

}  // namespace
}  // namespace paceline::engine::cpu
