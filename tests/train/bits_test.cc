#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "fixture.h"
#include "train/checkpoint/safetensors.h"

namespace paceline::train {
namespace {

/// What a training computes does not depend on who computes it.
class Bits : public TrainingTest {
 protected:
  /// Of ten steps, of which the last six are a resumed training's.
  std::string checkpoint_in_parts(Options options) {
    options.out = directory_ / "parts";
    options.steps = 4;
    (void)train(options);
    options.resume = options.out;
    options.steps = 10;
    return checkpoint_of(options, "parts");
  }
};

TEST_F(Bits, TwiceGivesTheSameBits) {
  for (const int workers : {1, 2}) {
    Options options = small();
    options.workers = workers;
    const std::string out = std::to_string(workers);
    EXPECT_EQ(checkpoint_of(options, out + "a"), checkpoint_of(options, out + "b")) << workers << " workers";
  }
}

TEST_F(Bits, WithShardsGivesTheSameBitsForAnyNumberOfWorkersAndThreads) {
  Options options = small();
  options.shard = 4;
  options.threads = 1;
  const std::string one = checkpoint_of(options, "one");
  for (const int workers : {1, 2, 4})
    for (const int threads : {1, 2}) {
      options.workers = workers;
      options.threads = threads;
      EXPECT_EQ(checkpoint_of(options, fmt::format("{}-{}", workers, threads)), one)
          << workers << " workers, " << threads << " threads each";
    }
}

/// Three of the seven classes have twice the images of the others.
TEST_F(Bits, BalancedClassesGiveTheSameBits) {
  Options options = small();
  options.data = "synthetic,train=96,test=40,classes=7";
  options.shard = 4;
  options.threads = 1;
  options.label_smoothing = 0.1;
  const std::string plain = checkpoint_of(options, "plain");
  for (const bool is_sampled : {false, true}) {
    options.class_weights = is_sampled ? "" : "balanced";
    options.balanced_sampler = is_sampled;
    options.workers = 1;
    const std::string one = checkpoint_of(options, fmt::format("one-{}", is_sampled));
    EXPECT_NE(one, plain) << is_sampled;
    for (const int workers : {2, 4}) {
      options.workers = workers;
      EXPECT_EQ(checkpoint_of(options, fmt::format("{}-{}", workers, is_sampled)), one)
          << workers << " workers, " << is_sampled;
    }
    EXPECT_EQ(checkpoint_in_parts(options), one) << is_sampled;
    std::filesystem::remove_all(directory_ / "parts");
  }
}

TEST_F(Bits, WithShardsAndSharedStatisticsGivesTheSameBitsForAnyNumberOfWorkersAndThreads) {
  Options options = small();
  options.shard = 4;
  options.threads = 1;
  const std::string alone = checkpoint_of(options, "alone");
  options.batch_norm = engine::BatchNormMode::synchronised;
  const std::string one = checkpoint_of(options, "one");
  EXPECT_NE(one, alone);  // statistics of 16 samples are others than those of 4
  for (const int workers : {1, 2, 4})
    for (const int threads : {1, 2}) {
      options.workers = workers;
      options.threads = threads;
      EXPECT_EQ(checkpoint_of(options, fmt::format("{}-{}", workers, threads)), one)
          << workers << " workers, " << threads << " threads each";
    }
}

/// A whitened, frozen first layer, rates, reflected crops, alternating flips, views: as in cifar10-speedrun.
Options speedrun(Options options, const std::filesystem::path& directory) {
  const auto model = directory / "white.toml";
  base::write_file(model, std::string_view(R"(
[[layer]]
op = "conv2d"
name = "white"
channels = 24
kernel = 2
init = "whiten"
weight_rate = 0
[[layer]]
op = "gelu"
[[layer]]
op = "conv2d"
name = "conv"
channels = 16
stride = 3
init = "dirac"
[[layer]]
op = "batch_norm"
name = "norm"
weight_rate = 0
bias_rate = 8
[[layer]]
op = "gelu"
[[layer]]
op = "max_pool"
kernel = 3
[[layer]]
op = "dense"
name = "head"
features = "classes"
init = "zero"
)"));
  options.model = model.string();
  options.shard = 4;
  options.threads = 1;
  options.crop_padding = 2;
  options.crop_fill = data::CropFill::reflect;
  options.flip = data::Flip::alternating;
  options.test_views = 2;
  return options;
}

TEST_F(Bits, SpeedrunGivesTheSameBitsForAnyNumberOfWorkersAndResumed) {
  Options options = speedrun(small(), directory_);
  const std::string one = checkpoint_of(options, "one");
  const auto loss = train(options).epochs.back().test_loss.value();
  for (const int workers : {2, 4}) {
    options.workers = workers;
    EXPECT_EQ(checkpoint_of(options, std::to_string(workers)), one) << workers << " workers";
    EXPECT_EQ(train(options).epochs.back().test_loss.value(), loss) << workers << " workers";
  }
  EXPECT_EQ(checkpoint_in_parts(options), one);
}

TEST_F(Bits, NormsOfSamplesGiveTheSameBits) {
  Options options = small();
  options.model = "small-norm";
  options.shard = 4;
  options.threads = 1;
  const std::string one = checkpoint_of(options, "one");
  for (const int workers : {1, 2, 4})
    for (const int threads : {1, 2}) {
      options.workers = workers;
      options.threads = threads;
      EXPECT_EQ(checkpoint_of(options, fmt::format("{}-{}", workers, threads)), one)
          << workers << " workers, " << threads << " threads each";
    }
}

TEST_F(Bits, MobileLayersGiveTheSameBits) {
  std::string model = base::read_file(std::string(PACELINE_SOURCE_DIR) + "/recipes/models/small-mobile.toml");
  const std::string last = "[[layer]]\nop = \"global_average_pool\"\nname = \"global_average_pool2\"\n";
  ASSERT_NE(model.find(last), std::string::npos);
  model.insert(model.find(last), "[[layer]]\nop = \"stochastic_depth\"\nprobability = 0.3\n");
  base::write_file(directory_ / "mobile.toml", std::string_view(model));
  Options options = small();
  options.model = (directory_ / "mobile.toml").string();
  options.shard = 4;
  options.threads = 1;
  const std::string one = checkpoint_of(options, "one");
  for (const int workers : {2, 4}) {
    options.workers = workers;
    EXPECT_EQ(checkpoint_of(options, std::to_string(workers)), one) << workers << " workers";
  }
  options.workers = 1;
  EXPECT_EQ(checkpoint_in_parts(options), one);
}

TEST_F(Bits, UnevenWindowsGiveTheSameBits) {
  Options options = small();
  options.model = std::string(PACELINE_SOURCE_DIR) + "/recipes/models/small-inception.toml";
  options.shard = 4;
  options.threads = 1;
  const std::string one = checkpoint_of(options, "one");
  for (const int workers : {2, 4}) {
    options.workers = workers;
    EXPECT_EQ(checkpoint_of(options, std::to_string(workers)), one) << workers << " workers";
  }
}

TEST_F(Bits, GivenWeightsAreThoseOfTheFile) {
  Options options = small();
  options.shard = 4;
  options.threads = 1;
  options.out = directory_ / "before";
  options.steps = 3;
  (void)train(options);
  options.weights = checkpoints_in(options.out).front().string();
  options.steps = 10;
  options.seed = 8;  // the first weights would be others
  const std::string one = checkpoint_of(options, "one");
  options.workers = 2;
  EXPECT_EQ(checkpoint_of(options, "two"), one);
  // A resumed training has its checkpoint's, and says so.
  options.resume = options.out = directory_ / "one";
  options.steps = 12;
  EXPECT_THAT(
      train(options).notes,
      testing::Contains("the weights are those of the checkpoint, not of --weights " + options.weights));
  options.resume.clear();
  options.steps = 10;
  options.weights.clear();
  EXPECT_NE(checkpoint_of(options, "none"), one);
}

// The gradient of conv1 passes through a frozen batch norm; conv2 and fc learn at rates of their own.
TEST_F(Bits, FineTuningGivesTheSameBits) {
  Options options = small();
  options.shard = 4;
  options.threads = 1;
  options.out = directory_ / "before";
  options.steps = 3;
  (void)train(options);
  const auto before = checkpoints_in(options.out).front();
  options.weights = before.string();
  options.steps = 10;
  options.freeze = "bn1,conv2.weight,fc.bias";
  options.lr_factor = "fc=5";
  for (const auto mode : {engine::BatchNormMode::local, engine::BatchNormMode::synchronised}) {
    options.workers = 1;
    options.batch_norm = mode;
    const std::string name = mode == engine::BatchNormMode::local ? "local" : "shared";
    const std::string one = checkpoint_of(options, name);
    for (const int workers : {2, 4}) {
      options.workers = workers;
      EXPECT_EQ(checkpoint_of(options, name + std::to_string(workers)), one) << workers << " workers";
    }
    const SafetensorsFile then(before), now(directory_ / name / "checkpoint-00000010.safetensors");
    for (const auto& tensor : now.tensors()) {
      const auto& old = then.find(tensor.name)->bytes;
      const bool stays =
          tensor.name.starts_with("bn1.") || tensor.name == "conv2.weight" || tensor.name == "fc.bias";
      if (!tensor.name.starts_with("optimizer.") && !tensor.name.ends_with("tracked")) {
        EXPECT_EQ(std::ranges::equal(tensor.bytes, old), stays) << tensor.name;
      }
    }
  }
  options.workers = 1;
  EXPECT_EQ(checkpoint_in_parts(options),
            base::read_file(directory_ / "shared/checkpoint-00000010.safetensors"));
  options.out = directory_ / "last";
  options.freeze = "all-but-last";
  options.lr_factor.clear();
  EXPECT_EQ(train(options).model.parameters, 2570);  // those of fc
  options.out = directory_ / "random";
  options.weights.clear();
  EXPECT_THAT(train(options).notes, testing::Contains(testing::StartsWith("--freeze without --weights")));
  options.out = directory_ / "refused";
  options.freeze = "head";
  EXPECT_THAT(refusal(options),
              testing::HasSubstr("no layer or parameter of this name; 'paceline model show"));
}

TEST_F(Bits, EveryAugmentationOptionChangesTheTraining) {
  const Options plain = small();
  const std::string usual = checkpoint_of(plain, "usual");
  const auto with = [&](const std::string& out, const auto& change) {
    Options options = plain;
    change(options);
    return checkpoint_of(options, out);
  };
  EXPECT_NE(with("crop", [](Options& o) { o.crop_padding = 1; }), usual);
  EXPECT_NE(with("fill", [](Options& o) { o.crop_fill = data::CropFill::reflect; }), usual);
  EXPECT_NE(with("flip", [](Options& o) { o.flip = data::Flip::alternating; }), usual);
  EXPECT_EQ(with("same", [](Options& o) { o.crop_padding = 4, o.flip = data::Flip::random; }), usual);
  EXPECT_EQ(with("views", [](Options& o) { o.test_views = 6; }), usual);
}

TEST_F(Bits, GivesTheSameBitsForAnyNumberOfThreads) {
  Options options = small();
  options.threads = 1;
  const std::string one = checkpoint_of(options, "one");
  for (const int threads : {2, 3}) {
    options.threads = threads;
    EXPECT_EQ(checkpoint_of(options, std::to_string(threads)), one) << threads << " threads";
  }
}

TEST_F(Bits, WithoutBatchNormGivesTheSameLossesForAnyNumberOfWorkersUpToRounding) {
  Options options = small();
  options.batch_norm = engine::BatchNormMode::synchronised;  // local statistics would differ by design
  options.log_steps = true;
  const auto one = train(options);
  options.workers = 4;
  const auto four = train(options);
  ASSERT_EQ(one.steps.size(), four.steps.size());
  for (std::size_t i = 0; i < one.steps.size(); ++i)
    EXPECT_NEAR(four.steps[i].loss, one.steps[i].loss, 1e-3 * one.steps[i].loss) << "step " << i + 1;
}

TEST_F(Bits, EvaluatesEveryTestSampleOnceForAnyNumberOfWorkers) {
  Options options = small();
  options.lr = 0;  // the first weights stay: every width evaluates the same model, but for running statistics
  options.shard = 4;
  std::vector<double> losses;
  for (const int workers : {1, 2, 4}) {
    options.workers = workers;
    losses.push_back(train(options).epochs.back().test_loss.value());
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[0], losses[2]);
}

}  // namespace
}  // namespace paceline::train
