/// What cannot be trained is said before anything is computed.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/topology.h"
#include "train/fixture.h"
#include "train/prepare/prepare.h"

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
  EXPECT_THAT(refusal(options), HasSubstr("has no weight that is trained; add a layer"));
}

TEST_F(ModelCheck, RefusesPatternsThatFreezeAllOrNothing) {
  auto options = small();
  options.model = "resnet8-cifar";
  options.freeze = "*";
  EXPECT_THAT(refusal(options), HasSubstr("--freeze * freezes all: except a layer, as '*,!fc' does"));
  options.freeze = "!fc";
  EXPECT_THAT(refusal(options), HasSubstr("--freeze !fc freezes nothing"));
  options.freeze = "*,!fc";
  EXPECT_EQ(refusal(options), "accepted");
}

}  // namespace

// Trainings whose images lie on the device give the bits of those whose images the host prepares.

namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Place = graph::MemoryPlan::Place;

constexpr const char* kLine = "images of the data set";

enum class ImagesOn { device, host };

class StoredImagesOfARun : public TrainingTest {
 protected:
  [[nodiscard]] Options on_device() const {
    Options options = small();
    options.device = "cuda-on-host";
    options.steps = 20;
    return options;
  }
  static Backend backend(ImagesOn where) {
    auto backend = backend_of("cuda-on-host");
    backend.keeps_images = where == ImagesOn::device;
    return backend;
  }
  measure::Record train_on(ImagesOn where, Options options, const std::string& out, std::stop_token stop = {},
                           const Progress& progress = {}) {
    options.out = directory_ / out;
    return run(options, backend(where), stop, progress);
  }
  std::string last_checkpoint(const std::string& out) const {
    return base::read_file(directory_ / out / "checkpoint-00000020.safetensors");
  }

  /// The same training both ways: bits of the checkpoint, and every figure of every step and epoch.
  void expect_same(const std::string& name, const Options& options) {
    SCOPED_TRACE(name);
    const auto device = train_on(ImagesOn::device, options, name + "-device");
    const auto host = train_on(ImagesOn::host, options, name + "-host");
    EXPECT_EQ(device.data.images_on, "device");
    EXPECT_EQ(host.data.images_on, std::nullopt);
    EXPECT_TRUE(last_checkpoint(name + "-device") == last_checkpoint(name + "-host"));
    ASSERT_EQ(device.steps.size(), host.steps.size());
    for (std::size_t i = 0; i < host.steps.size(); ++i) EXPECT_EQ(device.steps[i].loss, host.steps[i].loss);
    ASSERT_EQ(device.epochs.size(), host.epochs.size());
    for (std::size_t i = 0; i < host.epochs.size(); ++i) {
      const auto &got = device.epochs[i], &want = host.epochs[i];
      EXPECT_EQ(got.train_loss, want.train_loss);
      EXPECT_EQ(got.train_accuracy, want.train_accuracy);
      EXPECT_EQ(got.test_loss, want.test_loss);
      EXPECT_EQ(got.test_accuracy, want.test_accuracy);
      EXPECT_EQ(got.validation_loss, want.validation_loss);
    }
    EXPECT_EQ(device.test_set->reads, host.test_set->reads);
    EXPECT_EQ(device.test_set->accuracy, host.test_set->accuracy);
  }
};

TEST_F(StoredImagesOfARun, GivesTheBitsOfTheHostsForAnyNumberOfWorkers) {
  for (const int workers : {1, 2}) {
    Options options = on_device();
    options.workers = workers;
    expect_same(fmt::format("{}-workers", workers), options);
  }
}

TEST_F(StoredImagesOfARun, GivesTheBitsOfTheHostsInBf16AndWithOtherAugmentations) {
  Options options = on_device();
  options.precision = "bf16";
  expect_same("bf16", options);
  options = on_device();
  options.augment = false;
  expect_same("plain", options);
  options = on_device();
  options.crop_fill = data::CropFill::reflect;
  options.crop_padding = 7;
  options.flip = data::Flip::alternating;
  expect_same("reflected", options);
}

TEST_F(StoredImagesOfARun, GivesTheBitsOfTheHostsWithShards) {
  for (const auto batch_norm : {engine::BatchNormMode::local, engine::BatchNormMode::synchronised})
    for (const int workers : {1, 2}) {
      Options options = on_device();
      options.shard = 4;
      options.batch_norm = batch_norm;
      options.workers = workers;
      expect_same(
          fmt::format("{}-{}", batch_norm == engine::BatchNormMode::local ? "local" : "sync", workers),
          options);
    }
}

TEST_F(StoredImagesOfARun, GivesTheFiguresOfTheHostsOnValidationAndTestSetInSeveralViews) {
  for (const int workers : {1, 2}) {
    Options options = on_device();
    options.validation_split = 0.25;
    options.test_views = data::kMostViews;
    options.workers = workers;
    expect_same(fmt::format("validated-{}", workers), options);
    options.test_set = TestSet::every;
    expect_same(fmt::format("tested-{}", workers), options);
  }
}

TEST_F(StoredImagesOfARun, GoesOnFromAStoppedRunWithTheBitsOfTheUninterruptedOne) {
  Options options = on_device();
  options.workers = 2;
  (void)train_on(ImagesOn::host, options, "whole");
  std::stop_source stop;
  Progress progress;
  progress.step = [&](std::int64_t step, std::int64_t, double, double) {
    if (step == 9) stop.request_stop();  // in the middle of an epoch
  };
  EXPECT_EQ(train_on(ImagesOn::device, options, "parts", stop.get_token(), progress).status, "interrupted");
  options.resume = directory_ / "parts";
  EXPECT_EQ(train_on(ImagesOn::device, options, "parts").status, "complete");
  EXPECT_TRUE(last_checkpoint("parts") == last_checkpoint("whole"));
}

TEST_F(StoredImagesOfARun, HasALineInTheMemoryPlanAndASentenceInTheRecord) {
  Options options = on_device();
  options.workers = 2;
  const auto record = train_on(ImagesOn::device, options, "device");
  const std::int64_t image = 32 * 32 * 3, table = 3 * 256 * 4;
  EXPECT_EQ(record.memory.plan_lines.at(kLine), 2 * (table + (96 + 20) * image)) << "each has its part of 40";
  EXPECT_THAT(record.notes,
              Contains("images: 116 of them lie on the device (0.4 MB for each worker); of each "
                       "sample the host sends 20 bytes"));
  for (const auto& rank : record.ranks) {
    EXPECT_EQ(rank.loader_threads, 0) << "what it draws, the worker draws itself";
    EXPECT_EQ(rank.loader_queue, 0);
    EXPECT_GT(rank.loader_prepare_s, 0);
  }
  const auto setup = inspect(options, backend(ImagesOn::device));
  EXPECT_THAT(setup.images, HasSubstr("lie on the device"));
  EXPECT_EQ(inspect(options, backend(ImagesOn::host)).images, "") << "engines without a choice";
  const auto host = train_on(ImagesOn::host, options, "host");
  EXPECT_EQ(host.memory.plan_lines.count(kLine), 0u);
  EXPECT_LT(record.memory.plan_lines.at("input"), host.memory.plan_lines.at("input") / 10);
  EXPECT_LT(record.memory.plan_lines.at("loader"), host.memory.plan_lines.at("loader") / 10);
}

/// A GPU's plan with so much memory that all but `missing` bytes of the images fit.
MadeUpBackend too_small(const Options& options, std::int64_t missing) {
  auto backend = backend_of("cuda-on-host");
  backend.made_up->on_plan = [](const graph::Graph& graph, const engine::CompileOptions& how) {
    auto plan = engine::plan("cuda-on-host", graph, how);
    for (auto& line : plan.lines)
      if (line.purpose != "pinned buffers" && line.purpose != "host copies of weights and optimizer state")
        line.place = Place::device;
    return plan;
  };
  const auto share = [](std::int64_t bytes) {
    return DeviceShare{.info = {.name = "a GPU", .memory_bytes = 2 * bytes, .free_memory_bytes = bytes}};
  };
  backend.made_up->on_device = [=](int) { return share(std::int64_t{1} << 40); };
  const std::int64_t wanted = inspect(options, backend).memory.device->plan_bytes;
  backend.made_up->on_device = [=](int) { return share(wanted - missing); };
  return backend;
}

TEST_F(StoredImagesOfARun, ARecordSaysIfWorkersShareGpus) {
  Options options = on_device();
  options.workers = 2;
  auto backend = too_small(options, 0);
  for (const bool is_shared : {false, true}) {
    options.out = directory_ / (is_shared ? "shared" : "each");
    backend.made_up->on_device = [=](int) {
      return DeviceShare{.info = {.name = "a GPU",
                                  .memory_bytes = std::int64_t{1} << 40,
                                  .free_memory_bytes = std::int64_t{1} << 40},
                         .workers = is_shared ? 2 : 1,
                         .is_any_shared = is_shared};
    };
    options.threads = 1;
    const auto record = run(options, backend, {}, {});
    EXPECT_EQ(record.oversubscribed, is_shared || base::usable_cores() < 2);
    EXPECT_EQ(std::ranges::count(record.notes,
                                 "workers share a GPU: times say nothing about machines with a GPU for each"),
              is_shared ? 1 : 0);
  }
}

TEST_F(StoredImagesOfARun, ThatDoesNotFitIsLeftToTheHostWhichSaysSo) {
  Options options = on_device();
  options.data = "synthetic,train=1024,test=40";
  EXPECT_THAT(inspect(options, too_small(options, 0)).images, HasSubstr("lie on the device"));
  const Backend backend = too_small(options, 1);
  const auto sentence =
      AllOf(HasSubstr("images: the host prepares them, for with 1064 of them on the device the plan "
                      "is 0.00 GB of device memory (a GPU) and 0.00 GB of it are free"));
  EXPECT_THAT(inspect(options, backend).images, sentence);
  EXPECT_EQ(inspect(options, backend).excess, "");
  options.out = directory_ / "small";
  const auto record = run(options, backend, {}, {});
  EXPECT_EQ(record.data.images_on, "host");
  EXPECT_THAT(record.notes, Contains(sentence));
  EXPECT_EQ(record.memory.device->plan_lines.count(kLine), 0u);
  EXPECT_EQ(record.ranks.front().loader_threads, options.loader_threads);
  (void)train_on(ImagesOn::device, options, "large");
  EXPECT_TRUE(last_checkpoint("small") == last_checkpoint("large"));
}

/// What the memory of a device allows is not less because images could lie there too.
TEST_F(StoredImagesOfARun, DoesNotMakeTheLargestBatchSmaller) {
  Options options = on_device();
  options.data = "synthetic,train=4096,test=40";
  options.global_batch = 0;
  options.local_batch = 64;
  Backend backend = too_small(options, 1);
  const auto with = largest_batch(options, backend);
  backend.keeps_images = false;
  EXPECT_EQ(with, largest_batch(options, backend));
  EXPECT_GT(with, 64);
}

TEST_F(StoredImagesOfARun, IsLeftToTheHostWhereCropsAndFlipsAreNotAll) {
  const auto reason = [&](const Options& options) {
    return inspect(options, backend(ImagesOn::device)).images;
  };
  Options options = on_device();
  EXPECT_THAT(reason(options), Not(HasSubstr("the host prepares")));
  options.warp.rotate = 10;
  EXPECT_THAT(reason(options), HasSubstr("the host prepares them, for --rotate, --shear and --shift"));
  options.augment = false;
  EXPECT_THAT(reason(options), Not(HasSubstr("the host prepares")));
  options = on_device();
  options.workers = 2;
  options.data_parallel = true;
  EXPECT_THAT(reason(options), HasSubstr("--parallel data-parallel"));
  EXPECT_EQ(train_on(ImagesOn::device, options, "handed-out").data.images_on, "host");
  options = on_device();
  options.data += ",delay-us=10";
  EXPECT_THAT(reason(options), HasSubstr("slow storage"));
}

TEST_F(StoredImagesOfARun, TimedWindowsKeepNoTestImages) {
  Options options = on_device();
  options.steps = 0;
  options.warmup_steps = 1;
  options.window_steps = 3;
  const auto record = run(options, backend(ImagesOn::device), {}, {});
  EXPECT_EQ(record.status, "complete");
  EXPECT_EQ(record.data.images_on, "device");
  EXPECT_EQ(record.memory.plan_lines.at(kLine), 3 * 256 * 4 + 96 * 32 * 32 * 3);
}

}  // namespace
}  // namespace paceline::train
