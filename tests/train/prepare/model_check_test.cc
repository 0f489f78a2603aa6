/// What cannot be trained is said before anything is computed.

#include "train/prepare/model_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ModelCheck : public TrainingTest {
 protected:
  /// Behind a global average pool each sample has one value a channel.
  [[nodiscard]] Options pooled() {
    base::write_file(directory_ / "pooled.toml", std::string_view(R"(
[[layer]]
op = "conv2d"
channels = 4
kernel = 3
name = "conv1"
[[layer]]
op = "global_average_pool"
[[layer]]
op = "batch_norm"
name = "bn1"
[[layer]]
op = "dense"
name = "fc"
features = "classes"
)"));
    auto options = small();
    options.model = (directory_ / "pooled.toml").string();
    options.steps = 1;
    return options;
  }
};

TEST_F(ModelCheck, RefusesABatchNormOverOneValue) {
  auto options = pooled();
  EXPECT_EQ(refusal(options), "accepted");
  options.global_batch = 1;
  EXPECT_THAT(refusal(options),
              AllOf(HasSubstr("batch_norm 'bn1': a local batch of 1 gives it one value per channel"),
                    HasSubstr("take a larger batch")));
  options.global_batch = 4;
  options.workers = 4;
  EXPECT_THAT(refusal(options), HasSubstr("a local batch of 1"));
  options.batch_norm = engine::BatchNormMode::synchronised;
  EXPECT_EQ(refusal(options), "accepted") << "four values, on four workers";
  options.workers = 1;
  options.batch_norm = engine::BatchNormMode::ghost;
  options.ghost_size = 1;
  EXPECT_THAT(refusal(options), HasSubstr("--bn ghost:1"));
  options.batch_norm = engine::BatchNormMode::local;
  options.shard = 1;
  EXPECT_THAT(refusal(options), HasSubstr("--shard 1"));
  options = small();  // images of more than one pixel there
  options.global_batch = 1;
  options.steps = 1;
  EXPECT_EQ(refusal(options), "accepted");
}

TEST_F(ModelCheck, RefusesAModelWithNothingToTrain) {
  base::write_file(directory_ / "frozen.toml", std::string_view(R"(
[[layer]]
op = "dense"
name = "fc"
features = "classes"
weight_rate = 0
bias = false
)"));
  auto options = small();
  options.model = (directory_ / "frozen.toml").string();
  EXPECT_THAT(refusal(options), HasSubstr("has no weight that is trained"));
}

}  // namespace
}  // namespace paceline::train
