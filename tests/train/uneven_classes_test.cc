// Trainings on a large and a small class whose images overlap: what weights and the balanced sampler do to
// them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/rng.h"
#include "fixture.h"
#include "train/evaluate_checkpoint.h"

namespace paceline::train {
namespace {

using testing::Contains;
using testing::HasSubstr;

/// Grey images: many dark ones, few light ones. One number, the brightness, decides, and no rule tells all
/// apart.
class UnevenClasses : public TrainingTest {
 protected:
  static constexpr int kDark = 150, kLight = 10, kTested = 60;

  UnevenClasses() {
    base::Rng rng(2, base::Purpose::test);
    for (const auto& [name, mean, count] : {std::tuple{"dark", 110.0, kDark}, {"light", 140.0, kLight}})
      for (int i = 0; i < count + kTested; ++i) {
        const auto brightness = static_cast<char>(std::clamp(mean + 20.0 * rng.normal(), 0.0, 255.0));
        const auto file =
            directory_ / "set" / (i < count ? "train" : "test") / name / (std::to_string(i) + ".ppm");
        std::filesystem::create_directories(file.parent_path());
        base::write_file(file, "P6\n8 8\n255\n" + std::string(3 * 8 * 8, brightness));
      }
    base::write_file(directory_ / "brightness.toml", std::string_view(R"(
[[layer]]
op = "global_average_pool"
[[layer]]
op = "dense"
features = "classes"
)"));
    options_.model = (directory_ / "brightness.toml").string();
    options_.data = "folder:" + (directory_ / "set").string() + ",size=8";
    options_.augment = false;
    options_.steps = 400;
    options_.lr = 0.2;
    options_.evaluate_every = 0;
    options_.threads = 1;
  }

  /// Of the test images of each class the part that is right.
  struct Recalls {
    double dark = 0, light = 0;
    [[nodiscard]] double mean() const { return (dark + light) / 2; }
  };
  Recalls recalls(const std::string& out) {
    options_.out = directory_ / out;
    record_ = train(options_);
    Options evaluation = options_;
    evaluation.local_batch = std::exchange(evaluation.global_batch, 0);
    const auto result =
        evaluate_checkpoint(evaluation, {.checkpoint = options_.out}, backend_of(options_.device), {}, {});
    const auto& confusion = result.evaluation.value().confusion;
    return {static_cast<double>(confusion[0][0]) / kTested, static_cast<double>(confusion[1][1]) / kTested};
  }

  Options options_ = small();
  measure::Record record_;
};

TEST_F(UnevenClasses, AreTreatedEquallyByEitherRemedy) {
  const auto plain = recalls("plain");
  EXPECT_GT(plain.dark, 0.95);
  EXPECT_LT(plain.light, 0.4) << "fifteen dark images for each light one";
  EXPECT_FALSE(record_.data.class_weights);

  options_.class_weights = "balanced";
  const auto weighted = recalls("weighted");
  EXPECT_EQ(record_.data.class_weights, (std::vector<double>{160.0 / (2 * kDark), 160.0 / (2 * kLight)}));
  EXPECT_THAT(record_.notes,
              Contains(HasSubstr("--class-weights balanced: from 0.533 ('dark') to 8 ('light')")));

  options_.class_weights.clear();
  options_.balanced_sampler = true;
  const auto sampled = recalls("sampled");
  EXPECT_THAT(record_.notes,
              Contains(HasSubstr("an epoch has 160 draws, 80 of each of 2 classes; in it a sample of "
                                 "'light' (10) comes 8 times, one of 'dark' (150) 0.533 times")));

  for (const auto& remedied : {weighted, sampled}) {
    // The best rule takes the middle, 125, and is right for 77 % of each.
    EXPECT_NEAR(remedied.mean(), 0.77, 0.08);
    EXPECT_GT(remedied.mean(), plain.mean() + 0.08);
    EXPECT_GT(remedied.light, 0.6);
    EXPECT_LT(remedied.dark, plain.dark) << "which is what it costs";
  }
}

TEST_F(UnevenClasses, TakeTheWeightsOfAFile) {
  base::write_file(directory_ / "costs.csv", std::string_view("class,weight\nlight,15\ndark,1\n"));
  options_.steps = 20;
  options_.class_weights = "balanced";
  options_.shard = 8;
  (void)recalls("balanced");
  const auto balanced = record_.epochs.back().train_loss;
  options_.class_weights = (directory_ / "costs.csv").string();
  (void)recalls("file");
  EXPECT_NEAR(record_.epochs.back().train_loss, balanced, 1e-9) << "the same ratio, so the same training";
  base::write_file(directory_ / "costs.csv", std::string_view("class,weight\nlight,15\n"));
  options_.out.clear();
  EXPECT_THAT(refusal(options_), HasSubstr("every class needs a weight, but 'dark'"));
}

}  // namespace
}  // namespace paceline::train
