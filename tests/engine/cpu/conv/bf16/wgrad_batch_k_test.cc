// Gradients of weights summed over samples: what takes any shape on any unit.

#include <gtest/gtest.h>

#include <string>

#include "engine/cpu/conv/bf16/tile_runs.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {
namespace {

using units::Unit;

class WgradBatchK : public OnUnit {};
INSTANTIATE_TEST_SUITE_P(Units, WgradBatchK, every_unit(), name_of_unit);

TEST_P(WgradBatchK, ComputesLikeSumsInDouble) { expect_sums_in_double("wgrad-batch-k", GetParam(), 100); }

TEST_P(WgradBatchK, PacksAlikeForAnySamples) {
  expect_packed_alike("wgrad-batch-k", {40, 33, 5, 5, 3, 1, 1, 33}, kernels());
}

TEST_P(WgradBatchK, IsForGradientsOfWeightsAlone) {
  for (const Case& c : kTileCases) {
    EXPECT_EQ(bf16_refusal("wgrad-batch-k", bf16_shape_of(c), Direction::backward_weights, GetParam()), "");
    for (const Direction direction : {Direction::forward, Direction::backward_data})
      EXPECT_EQ(bf16_refusal("wgrad-batch-k", bf16_shape_of(c), direction, GetParam()),
                "is for backward weights");
  }
}

}  // namespace
}  // namespace paceline::engine::cpu
