#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "fixture.h"
#include "train/evaluate_checkpoint.h"

namespace paceline::train {
namespace {

using testing::HasSubstr;

/// Options of today's recipes: what each must keep, on each engine.
class RecipeOptions : public TrainingTest {
 protected:
  using Choose = std::function<void(Options&)>;

  Options on(const std::string& device) const {
    Options options = small();
    options.device = device;
    options.shard = 4;
    options.threads = 1;
    return options;
  }

  /// Of ten steps, of which the last six are a resumed training's, by two workers: it stops within an epoch.
  std::string checkpoint_in_parts(Options options) {
    options.out = directory_ / "parts";
    std::filesystem::remove_all(options.out);
    options.workers = 2;
    std::stop_source stop;
    Progress progress;
    progress.step = [&](std::int64_t step, std::int64_t, double, double) {
      if (step == 4) stop.request_stop();
    };
    EXPECT_EQ(train(options, stop.get_token(), progress).status, "interrupted");
    options.resume = options.out;
    return checkpoint_of(options, "parts");
  }

  /// Its gradients are large: in fp16 they overflow at the first loss scales.
  std::string steep_model() const {
    const auto file = directory_ / "steep.toml";
    base::write_file(file, std::string_view(R"(
[[layer]]
op = "conv2d"
name = "conv1"
channels = 8
stride = 4
[[layer]]
op = "scale"
name = "steep"
initial = 64
[[layer]]
op = "relu"
[[layer]]
op = "dense"
name = "fc"
features = "classes"
)"));
    return file.string();
  }

  /// The option changes the training; 1, 2 and 4 workers, and a resumed run, then give the same bits.
  void keeps_bits(const Choose& choose,
                  const std::vector<const char*>& devices = {"cpu", "reference", "cuda-on-host"}) {
    for (const char* device : devices) {
      SCOPED_TRACE(device);
      Options options = on(device);
      const std::string before = fmt::format("{}-", device);
      const std::string without = checkpoint_of(options, before + "without");
      choose(options);
      const std::string one = checkpoint_of(options, before + "one");
      EXPECT_NE(one, without);
      for (const int workers : {2, 4}) {
        options.workers = workers;
        EXPECT_EQ(checkpoint_of(options, before + std::to_string(workers)), one) << workers << " workers";
      }
      EXPECT_EQ(checkpoint_in_parts(options), one) << "resumed";
    }
  }
};

TEST_F(RecipeOptions, ClippingKeepsBits) {
  keeps_bits([](Options& options) { options.rule.clip_norm = 0.2; });
}

TEST_F(RecipeOptions, LambKeepsBits) {
  keeps_bits([](Options& options) {
    options.rule = engine::update_rules()[static_cast<std::size_t>(engine::UpdateKind::lamb)].usual;
    options.lr = 0.01;
  });
}

TEST_F(RecipeOptions, AverageKeepsBits) {
  keeps_bits([](Options& options) { options.ema = {.decay = 0.8, .every = 3}; });
}

// The average changes nothing of the training itself, and its checkpoint is the plain one with more arrays.
TEST_F(RecipeOptions, AverageLeavesTheTraining) {
  for (const char* device : {"cpu", "cuda-on-host"}) {
    SCOPED_TRACE(device);
    Options options = on(device);
    const auto plain = train(options);
    options.ema = {.decay = 0.8, .every = 2};
    options.out = directory_ / device;
    const auto averaged = train(options);
    ASSERT_EQ(averaged.epochs.size(), plain.epochs.size());
    for (std::size_t i = 0; i < plain.epochs.size(); ++i) {
      EXPECT_EQ(averaged.epochs[i].train_loss, plain.epochs[i].train_loss);
      EXPECT_EQ(averaged.epochs[i].test_loss, plain.epochs[i].test_loss);
      EXPECT_FALSE(plain.epochs[i].ema_test_loss);
      EXPECT_NE(averaged.epochs[i].ema_test_loss.value(), averaged.epochs[i].test_loss.value());
      EXPECT_TRUE(averaged.epochs[i].ema_test_accuracy);
    }
    // evaluate() of the checkpoint finds the same figures.
    const auto evaluated = [&](bool is_averaged) {
      Options again = on(device);
      again.local_batch = averaged.local_batch;
      again.global_batch = 0;
      again.use_ema = is_averaged;
      return evaluate_checkpoint(again, {.checkpoint = options.out}, backend_of(device), {}, {})
          .evaluation->loss;
    };
    EXPECT_DOUBLE_EQ(evaluated(false), averaged.epochs.back().test_loss.value());
    EXPECT_DOUBLE_EQ(evaluated(true), averaged.epochs.back().ema_test_loss.value());
  }
}

// The best epoch on validation is tested with its trained weights and with its average, resumed or not.
TEST_F(RecipeOptions, AverageOfTheBestEpochIsTested) {
  for (const char* device : {"cpu", "cuda-on-host"}) {
    SCOPED_TRACE(device);
    Options options = on(device);
    options.validation_split = 0.34;
    options.ema = {.decay = 0.8};
    options.out = directory_ / fmt::format("whole-{}", device);
    const auto whole = train(options);
    const auto& last = whole.epochs.back();
    EXPECT_TRUE(last.ema_validation_loss);
    EXPECT_FALSE(last.ema_test_loss) << "held back";
    ASSERT_TRUE(whole.test_set->ema_loss);
    EXPECT_NE(*whole.test_set->ema_loss, *whole.test_set->loss);
    EXPECT_EQ(whole.test_set->reads, 2 * 40);
    options.out = directory_ / fmt::format("parts-{}", device);
    options.pause_after_epochs = whole.chosen->epoch;
    (void)train(options);
    options.pause_after_epochs = 0;
    options.resume = options.out;
    const auto resumed = train(options);
    EXPECT_EQ(resumed.test_set->ema_loss, whole.test_set->ema_loss);
    EXPECT_EQ(resumed.epochs.back().ema_validation_loss, last.ema_validation_loss);
  }
}

TEST_F(RecipeOptions, AverageExcludesLookahead) {
  Options options = small("first");
  options.ema.decay = 0.9;
  options.lookahead.steps = 3;
  EXPECT_THAT(refusal(options), HasSubstr("--lookahead 3 with --ema 0.9"));
  options.ema.decay = 0;
  options.lookahead.steps = 0;
  options.steps = 4;
  (void)train(options);
  options.resume = options.out;
  options.steps = 10;
  options.ema.decay = 0.9;
  EXPECT_THAT(refusal(options), HasSubstr("--ema was off in its run, but is 0.9 in this one"));
}

// At its first scale the first updates overflow, so that it changes, and a resumed training goes on with it.
TEST_F(RecipeOptions, Fp16KeepsBits) {
  const auto choose = [this](Options& options) {
    options.model = steep_model();
    options.precision = "fp16";
  };
  keeps_bits(choose, {"cuda-on-host"});
  Options options = on("cuda-on-host");
  choose(options);
  const auto record = train(options);
  ASSERT_TRUE(record.loss_scale);
  EXPECT_EQ(record.precision, "fp16");
  EXPECT_GT(record.loss_scale->left_out, 0);
  EXPECT_EQ(record.loss_scale->scale, std::ldexp(65536.0, -static_cast<int>(record.loss_scale->left_out)));
}

// A gradient that overflowed has an infinite norm, and its update is left out.
TEST_F(RecipeOptions, Fp16RecordsNormsOfUpdatesAlone) {
  Options options = on("cuda-on-host");
  options.model = steep_model();
  options.precision = "fp16";
  options.workers = 2;
  options.rule.clip_norm = 1;
  options.noise_scale = 1;
  const auto record = train(options);
  EXPECT_GT(record.loss_scale.value().left_out, 0);
  const auto& epoch = record.epochs.front();
  EXPECT_TRUE(std::isfinite(epoch.gradient_norm.value()));
  EXPECT_TRUE(std::isfinite(epoch.largest_gradient_norm.value()));
  for (const auto& values : {epoch.gradient_squares.value().small, epoch.gradient_squares.value().large})
    for (const double value : values) EXPECT_TRUE(std::isfinite(value));
}

TEST_F(RecipeOptions, Fp16IsForGpus) {
  for (const char* device : {"cpu", "reference"}) {
    Options options = on(device);
    options.precision = "fp16";
    EXPECT_THAT([&] { (void)train(options); },
                testing::ThrowsMessage<base::Error>(HasSubstr("--precision fp16 is for GPUs")));
  }
  Options options = on("cuda-on-host");
  options.precision = "fp16";
  options.shard = 0;
  options.workers = 2;
  options.data_parallel = true;
  EXPECT_THAT([&] { (void)train(options); },
              testing::ThrowsMessage<base::Error>(HasSubstr("the workers' loss scales would differ")));
}

TEST_F(RecipeOptions, TrivialAugmentKeepsBits) {
  keeps_bits([](Options& options) { options.trivial_augment = true; });
}

TEST_F(RecipeOptions, ErasingKeepsBits) {
  keeps_bits([](Options& options) { options.random_erasing = 0.5; });
}

TEST_F(RecipeOptions, MixupKeepsBits) {
  keeps_bits([](Options& options) { options.mixup = 0.4; });
}

// With all that comes before and beside it. Boundaries of workers and shards inside a pair: mix_test.cc.
TEST_F(RecipeOptions, CutmixWithMixupKeepsBits) {
  keeps_bits([](Options& options) {
    options.mixup = 0.4;
    options.cutmix = 1;
    options.trivial_augment = true;
    options.random_erasing = 0.5;
    options.label_smoothing = 0.1;
  });
}

// Shards of one sample: each pair lies in two.
TEST_F(RecipeOptions, CutmixKeepsBitsInSmallShards) {
  Options options = on("cpu");
  options.model = short_head();
  options.shard = 1;
  options.cutmix = 1;
  const auto one = checkpoint_of(options, "one");
  options.workers = 2;
  EXPECT_EQ(checkpoint_of(options, "two"), one);
  options.workers = 1;
  options.mixup = 0.2;
  EXPECT_NE(checkpoint_of(options, "both"), one);
}

TEST_F(RecipeOptions, MixingIsTheSameHandedOut) {
  for (const char* device : {"cpu", "cuda-on-host"}) {
    SCOPED_TRACE(device);
    Options options = on(device);
    options.shard = 0;
    options.model = short_head();
    options.mixup = 1;
    options.cutmix = 1;
    options.log_steps = true;
    const auto alone = train(options);
    EXPECT_THAT(alone.notes, testing::Contains(HasSubstr(
                                 "--mixup with --cutmix: the training accuracy counts the heavier label")));
    EXPECT_EQ(alone.settings.at("mixup"), "1");
    EXPECT_EQ(alone.settings.at("cutmix"), "1");
    for (const int micro_batch : {0, 1}) {  // of one image: pairs lie in two
      options.micro_batch = micro_batch;
      for (const bool is_handed_out : {false, true}) {
        if (is_handed_out && micro_batch > 0) continue;
        options.data_parallel = is_handed_out;
        options.workers = 2;
        const auto two = train(options);
        ASSERT_EQ(two.steps.size(), alone.steps.size());
        for (std::size_t i = 0; i < two.steps.size(); ++i)
          EXPECT_NEAR(two.steps[i].loss, alone.steps[i].loss, 1e-5 * alone.steps[i].loss) << "step " << i;
      }
    }
  }
}

// Evaluations see whole images: those of a training without learning do not depend on mixing.
TEST_F(RecipeOptions, MixingLeavesEvaluationsAlone) {
  for (const char* device : {"cpu", "reference", "cuda-on-host"}) {
    SCOPED_TRACE(device);
    Options options = on(device);
    options.lr = 1e-30;
    options.model = short_head();
    const auto plain = train(options);
    options.cutmix = 1;
    const auto mixed = train(options);
    EXPECT_NE(mixed.epochs.back().train_loss, plain.epochs.back().train_loss);
    EXPECT_EQ(mixed.epochs.back().test_loss, plain.epochs.back().test_loss);
    EXPECT_EQ(mixed.epochs.back().test_accuracy, plain.epochs.back().test_accuracy);
  }
}

TEST_F(RecipeOptions, MixingNeedsTwoImages) {
  Options options = on("cpu");
  options.shard = 0;
  options.data = "synthetic,train=1,test=40";
  options.model = short_head();
  options.global_batch = 1;
  options.mixup = 0.2;
  EXPECT_THAT(refusal(options), HasSubstr("--mixup mixes pairs of training images, but data 'synthetic"));
  EXPECT_THAT(refusal(options), HasSubstr("has only one; take more images, or leave it out"));
}

// The sum is formed pass by pass, whatever computes a pass.
TEST_F(RecipeOptions, MicroBatchesKeepBits) {
  for (const char* device : {"cpu", "reference", "cuda-on-host"}) {
    SCOPED_TRACE(device);
    Options options = on(device);
    options.shard = 0;
    options.micro_batch = 2;
    options.workers = 2;
    const auto whole = checkpoint_of(options, std::string(device) + "-whole");
    EXPECT_EQ(checkpoint_in_parts(options), whole) << "resumed";
    options.threads = 2;
    EXPECT_EQ(checkpoint_of(options, std::string(device) + "-threads"), whole);
    options.micro_batch = 4;
    EXPECT_NE(checkpoint_of(options, std::string(device) + "-four"), whole) << "its batch norm sees others";
  }
}

// Without batch norm a batch in parts is the batch, up to rounding; and it needs less memory.
TEST_F(RecipeOptions, MicroBatchesTrainLikeTheWhole) {
  for (const char* device : {"cpu", "reference", "cuda-on-host"}) {
    SCOPED_TRACE(device);
    Options options = on(device);
    options.shard = 0;
    options.model = short_head();
    options.log_steps = true;
    const auto whole = train(options);
    options.micro_batch = 2;
    const auto parts = train(options);
    ASSERT_EQ(parts.steps.size(), whole.steps.size());
    for (std::size_t i = 0; i < whole.steps.size(); ++i)
      EXPECT_NEAR(parts.steps[i].loss, whole.steps[i].loss, 1e-5 * whole.steps[i].loss) << "step " << i;
    const auto activations = [](const measure::Record& record) {
      const auto& lines = record.memory.device ? record.memory.device->plan_lines : record.memory.plan_lines;
      return lines.at("activations");
    };
    EXPECT_LT(activations(parts), activations(whole) / 4);
    EXPECT_THAT(parts.notes, testing::Contains(HasSubstr("8 micro-batches of 2")));
    EXPECT_EQ(parts.settings.at("micro-batch"), "2");
    EXPECT_FALSE(whole.settings.contains("micro-batch"));
  }
}

TEST_F(RecipeOptions, ClippingIsRecorded) {
  for (const char* device : {"cpu", "reference", "cuda-on-host"})
    for (const bool waits : {false, true}) {  // --on-nan skip: no queue on a device
      SCOPED_TRACE(device);
      Options options = on(device);
      options.workers = 2;
      options.log_steps = true;
      if (waits) options.on_nan = OnNan::skip;
      EXPECT_FALSE(train(options).epochs.front().gradient_norm);
      options.rule.clip_norm = 1e6;
      const auto unclipped = train(options);
      EXPECT_EQ(unclipped.settings.at("clip-norm"), "1000000");
      const auto& epoch = unclipped.epochs.front();
      EXPECT_EQ(epoch.clipped, 0);
      EXPECT_GT(epoch.gradient_norm.value(), 0.1);
      double sum = 0, largest = 0;
      std::vector<double> norms;
      for (const auto& step : unclipped.steps) norms.push_back(step.gradient_norm.value());
      for (int step = 0; step < 6; ++step) {
        sum += norms[static_cast<std::size_t>(step)];
        largest = std::max(largest, norms[static_cast<std::size_t>(step)]);
      }
      EXPECT_NEAR(*epoch.gradient_norm, sum / 6, 1e-12);
      EXPECT_EQ(epoch.largest_gradient_norm, largest);
      options.rule.clip_norm = norms.front() / 2;
      const auto clipped = train(options);
      EXPECT_EQ(clipped.steps.front().gradient_norm, norms.front()) << "before clipping";
      EXPECT_GT(clipped.epochs.front().clipped.value(), 0);
      options.shard = 0;
      const double all_reduced = train(options).steps.front().gradient_norm.value();
      options.data_parallel = true;
      EXPECT_NEAR(train(options).steps.front().gradient_norm.value(), all_reduced, 1e-5 * all_reduced);
    }
}

}  // namespace
}  // namespace paceline::train
