#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include "base/error.h"
#include "data/augment.h"
#include "fixture.h"
#include "measure/environment.h"
#include "train/checkpoint/checkpoint.h"
#include "train/slow_disk.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Run : public TrainingTest {};

TEST_F(Run, LearnsAndLeavesOneEpochRecordAnEpoch) {
  Options options = small();
  options.steps = 0;
  options.epochs = 3;
  const auto record = train(options);
  EXPECT_EQ(record.status, "complete");
  ASSERT_EQ(record.epochs.size(), 3u);
  EXPECT_EQ(record.epochs[2].updates, 18);
  EXPECT_LT(record.epochs[2].train_loss, record.epochs[0].train_loss);
  EXPECT_EQ(record.steps.size(), 18u);
}

TEST_F(Run, RefusesMoreViewsThanTheEngineTakesAtOnce) {
  Options options = small();
  options.shard = 4;
  options.test_views = 6;
  EXPECT_THAT(refusal(options),
              HasSubstr("evaluates each test image in 6 forms at once, but the shard is only 4"));
}

TEST_F(Run, ClosesTheLedgerOfEveryRankWithinOnePerCent) {
  Options options = small();
  options.workers = 3;
  options.global_batch = 24;
  options.window_steps = 12;
  options.warmup_steps = 2;
  const auto record = train(options);
  ASSERT_EQ(record.ranks.size(), 3u);
  EXPECT_EQ(record.window.steps, 12);
  for (const auto& rank : record.ranks) {
    const double sum = std::accumulate(rank.phases.begin(), rank.phases.end(), 0.0);
    EXPECT_NEAR(sum, rank.wall_s, 0.01 * rank.wall_s);
    EXPECT_EQ(rank.step_s.size(), 12u);
    EXPECT_GT(rank.communication_s, 0);
    EXPECT_NEAR(rank.transfer_s + rank.late_peer_s, rank.communication_s, 1e-6 + 0.01 * rank.communication_s);
  }
  EXPECT_GT(record.communication.bytes_sent, 0);
  EXPECT_TRUE(record.communication.memory_ceiling_gb_per_s.has_value());
}

TEST_F(Run, SaysStepLearningRateAndLastCheckpointWhenTheLossIsNoLongerFinite) {
  Options options = small("diverged");
  options.steps = 0;
  options.epochs = 50;
  options.lr = 1e30;
  try {
    (void)train(options);
    FAIL() << "a learning rate of 1e30 does not diverge";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the loss is no longer finite"));
    EXPECT_THAT(error.what(), Not(HasSubstr("(-nan")));
    EXPECT_THAT(error.what(), HasSubstr("learning rate 1e+30"));
    EXPECT_THAT(error.what(), HasSubstr("checkpoint"));
  }
  EXPECT_EQ(measure::read_record(options.out / "record.json").status, "failed");
}

TEST_F(Run, DoesNotKeepWeightsThatAreNotFinite) {
  Options options = small("o");
  options.steps = 1;  // its loss is that of the first weights, and finite
  options.lr = 1e39;  // as a float: infinite
  options.evaluate_every = 0;
  for (const int workers : {1, 2}) {
    options.workers = workers;
    EXPECT_THAT(refusal(options), AllOf(HasSubstr("step 1 of 1: the weights are no longer finite"),
                                        HasSubstr("there is no earlier checkpoint to go back to")));
    EXPECT_THAT(checkpoints_in(options.out), ElementsAre());
    std::filesystem::remove_all(options.out);
  }
}

TEST_F(Run, DoesNotKeepWeightsWhoseTestLossIsNotFinite) {
  Options options = small("o");
  options.steps = 1;
  options.lr = 1e30;  // the weights are finite, what they make of an image is not
  EXPECT_THAT(refusal(options),
              AllOf(HasSubstr("step 1 of 1: the test loss is no longer finite ("), Not(HasSubstr("(-nan"))));
  EXPECT_THAT(checkpoints_in(options.out), ElementsAre());
}

TEST_F(Run, TellsEveryEngineWhetherAllSayTheSame) {
  Options options = small();
  options.steps = 1;
  for (const int workers : {1, 2})
    for (const bool alike : {true, false}) {
      options.workers = workers;
      std::atomic<int> engines = 0, agreed = 0;
      auto backend = backend_of("cpu");
      backend.made_up->on_compile = [&](const auto& graph, const auto& how) {
        const int number = engines++;
        if (how.all_workers_say(alike ? "tiles" : std::to_string(number))) ++agreed;
        return engine::compile("cpu", graph, how);
      };
      EXPECT_EQ(run(options, backend, {}, {}).status, "complete");
      EXPECT_EQ(engines, workers);
      EXPECT_EQ(agreed, alike ? workers : workers == 1 ? 1 : 0);
    }
}

TEST_F(Run, WaitsForACheckpointLongerThanTheDeadlineAndBooksItAsOne) {
  Options options = small("o");
  options.workers = 2;
  options.steps = 6;
  options.deadline_s = 2;
  std::optional<SlowDisk> disk;
  Progress progress;
  progress.step = [&](std::int64_t step, std::int64_t, double, double) {
    if (step == 2) disk.emplace(std::chrono::milliseconds(4200));
  };
  const auto record = train(options, {}, progress);
  EXPECT_TRUE(disk && disk->was_slow());
  EXPECT_EQ(record.status, "complete");
  for (const auto& rank : record.ranks) {
    EXPECT_GE(rank.phases[static_cast<std::size_t>(measure::Phase::checkpoint)], 4.2) << "rank " << rank.rank;
    EXPECT_LT(rank.phases[static_cast<std::size_t>(measure::Phase::exposed_wait)], 4.2)
        << "rank " << rank.rank;
  }
}

TEST_F(Run, LeavesThePeakOfMemoryOutWhereItCannotStartAnew) {
  // No file can be opened between the last word before the first step and that step.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  Progress progress;
  progress.say = [&](const std::string&) {
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  };
  progress.step = [&](std::int64_t, std::int64_t, double, double) { ::setrlimit(RLIMIT_NOFILE, &before); };
  const auto record = train(small(), {}, progress);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(record.memory.peak_bytes.has_value());
  EXPECT_THAT(record.notes, Contains(HasSubstr("peak memory is not measured")));
}

TEST_F(Run, RefusesAPlanLargerThanTheMemoryWithBothNumbersAndTheLargestBatchThatFits) {
  Options options = small();
  options.data = "synthetic,train=50000000,test=40";
  options.global_batch = 40000000;
  try {
    (void)train(options);
    FAIL() << "40 million samples a batch fit";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::device);
    EXPECT_THAT(error.what(), HasSubstr("the largest local batch that fits is "));
  }
}

// Such a crop used to end in a failed assertion, and views moved by a pixel were read beside the image.
TEST_F(Run, RefusesToMirrorMoreOfAnImageThanItHas) {
  Options options = small();
  options.crop_fill = data::CropFill::reflect;
  options.crop_padding = 31;
  EXPECT_EQ(refusal(options), "accepted");
  options.crop_padding = 32;
  EXPECT_THAT(refusal(options), AllOf(HasSubstr("--crop-padding 32: an image of 32x32 has only 31 pixels"),
                                      HasSubstr("at most 31, or --crop-fill black")));
  options.augment = false;
  EXPECT_EQ(refusal(options), "accepted") << "nothing is cropped then";

  for (const char* image : {"train/a/1.ppm", "train/b/1.ppm", "test/a/1.ppm", "test/b/1.ppm"}) {
    std::filesystem::create_directories((directory_ / image).parent_path());
    base::write_file(directory_ / image, std::string_view("P6\n1 1\n255\nabc"));
  }
  base::write_file(directory_ / "dot.toml",
                   std::string_view("[[layer]]\nop = \"dense\"\nfeatures = \"classes\"\n"));
  options = small();
  options.model = (directory_ / "dot.toml").string();
  options.data = "folder:" + directory_.string() + ",size=1";
  options.global_batch = 2;
  options.test_views = 2;
  EXPECT_EQ(refusal(options), "accepted");
  options.workers = 1;
  options.data += ",flip=0";
  options.global_batch = 2;
  options.test_views = data::kMostViews;
  EXPECT_THAT(refusal(options), testing::AnyOf(HasSubstr("1x1 has no pixel beside an edge")));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take address space as they like
// The plan used to ask for what `ulimit -v` then refused, and batches were tried out where oneDNN cannot.
TEST_F(Run, PlansWithinTheAddressSpaceThatUlimitLeaves) {
  Options options = small();
  options.data = "synthetic,train=20000,test=40";
  options.global_batch = 20000;
  options.steps = 1;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  rlimit lowered = before;
  lowered.rlim_cur = std::min<rlim_t>(before.rlim_max, rlim_t{1} << 46);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &lowered), 0);
  lowered.rlim_cur -= static_cast<rlim_t>(measure::address_space_left()) - 150'000'000;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &lowered), 0);
  const auto why = refusal(options);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(why, AllOf(HasSubstr("memory: the plan for 1 worker x local batch 20000"),
                         HasSubstr("by its `ulimit -v`; raise it")));
}
#endif

}  // namespace
}  // namespace paceline::train
