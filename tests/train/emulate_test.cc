/// Every diagnosis from a cause that is known: what the communicator was told to cost stands in the right
/// line of the ledger, with the right amount.

#include <algorithm>
#include <numeric>

#include "comm/emulate.h"
#include "fixture.h"
#include "measure/statistics.h"
#include "train/step/step_runner.h"

namespace paceline::train {
namespace {

using measure::Phase;

// What is injected into a step is some hundred milliseconds: a machine that has other things to do wakes a
// thread late by ten, and that is no fault of the ledger.
constexpr int kSteps = 8;
constexpr comm::EmulatedLink kSlowLink{.latency_s = 0.1};

class Emulated : public TrainingTest {
 protected:
  static measure::Record train_with(Options options, const comm::Emulation& emulation) {
    options.workers = 2;
    options.threads = 1;
    options.window_steps = kSteps;
    options.warmup_steps = 2;
    auto backend = backend_of(options.device);
    backend.made_up->on_communicators = [&](int ranks, std::chrono::seconds deadline) {
      return comm::emulate(comm::make_local(ranks, {.deadline = deadline}), emulation);
    };
    return run(options, backend, {}, {});
  }
  /// A step's reductions: the buckets and the votes, one after the other on the link.
  static double on_slow_link(const measure::Record& record) {
    return kSteps * (static_cast<double>(record.buckets.size()) + 1) * comm::link_seconds(kSlowLink, 2, 0);
  }
  static double phase(const measure::RankRecord& rank, Phase phase) {
    return rank.phases[static_cast<std::size_t>(phase)];
  }
};

TEST_F(Emulated, SlowLinkIsExposedTransfer) {
  // The model computes for about a millisecond, so next to nothing of a link of 2 x 100 ms is hidden. A step
  // pays it whatever its batch: with a sixth of the batch an image costs six times that.
  double an_image[2] = {};
  for (const bool is_small : {false, true}) {
    auto options = small();
    options.global_batch = is_small ? 8 : 48;
    const auto record = train_with(options, {.link = kSlowLink, .straggler = {}});
    const double injected = on_slow_link(record);
    for (const auto& rank : record.ranks) {
      EXPECT_NEAR(phase(rank, Phase::exposed_transfer), injected, 0.15 * injected);
      EXPECT_LT(phase(rank, Phase::exposed_wait), 0.15 * injected);
    }
    EXPECT_NE(record.communication.communicator.find("EMULATED"), std::string::npos);
    an_image[is_small] =
        phase(record.ranks[0], Phase::exposed_transfer) / static_cast<double>(kSteps * options.global_batch);
  }
  EXPECT_NEAR(an_image[true] / an_image[false], 6, 0.15 * 6);
}

TEST_F(Emulated, AStragglerIsWaitingOfTheOthersOfTheInjectedAmount) {
  // How long the rank's own work takes is this machine's: the straggler's own ledger says by how much it was
  // made longer, of a work that is 200 times what it would be.
  const auto record =
      train_with(small(), {.link = {}, .straggler = comm::EmulatedStraggler{.rank = 1, .slower = 200}});
  const auto& waits = record.ranks[0];
  const auto& slow = record.ranks[1];
  const auto work = [](const measure::RankRecord& rank) {
    return rank.wall_s - phase(rank, Phase::exposed_wait) - phase(rank, Phase::exposed_transfer);
  };
  const double injected = work(slow) * 199 / 200;
  EXPECT_NEAR(phase(waits, Phase::exposed_wait), injected, 0.15 * injected);
  EXPECT_LT(phase(slow, Phase::exposed_wait), 0.15 * injected);
  EXPECT_LT(phase(waits, Phase::exposed_transfer), 0.15 * injected);
}

TEST_F(Emulated, ASlowLoaderIsDataWaitOfTheInjectedAmount) {
  auto options = small();
  // One image a step and worker: of several the threads of both would first prepare those of one worker.
  options.global_batch = 2;
  options.data = "synthetic,train=960,test=40,delay-us=200000";
  const auto record = train_with(options, {});
  const double injected = kSteps * 0.2;
  for (const auto& rank : record.ranks) {
    EXPECT_NEAR(phase(rank, Phase::data_wait), injected, 0.15 * injected);
    EXPECT_LT(phase(rank, Phase::exposed_transfer) + phase(rank, Phase::exposed_wait), 0.15 * injected);
  }
  EXPECT_NE(record.data.description.find("EMULATED"), std::string::npos);
}

TEST_F(Emulated, BucketsOfTheirOwnAccordFitTheLink) {
  // 10 ms a reduction and no bandwidth to speak of: one bucket. The choice is in the record.
  auto options = small();
  options.bucket_mb = 0.001;
  EXPECT_GT(train_with(options, {}).buckets.size(), 1u);
  options.bucket_auto = true;
  const auto record = train_with(options, {.link = comm::EmulatedLink{.latency_s = 0.005}, .straggler = {}});
  EXPECT_EQ(record.buckets.size(), 1u);
  EXPECT_EQ(record.settings.at("bucket-mb"), "auto");
  EXPECT_TRUE(std::any_of(record.notes.begin(), record.notes.end(),
                          [](const auto& note) { return note.starts_with("--bucket auto: "); }));
}

TEST(BestBucket, BalancesLatenciesAgainstTheLastTransfer) {
  EXPECT_NEAR(best_bucket(40e6, 100e-6, 1e9).megabytes, 2.0, 0.05);  // sqrt(40e6 * 1e5)
  EXPECT_NEAR(best_bucket(40e6, 1, 1e9).megabytes, 40, 0.5);         // never more than all
  EXPECT_NEAR(best_bucket(40e6, 1e-9, 1e9).megabytes, 0.4, 0.01);    // nor below a hundredth
}

}  // namespace
}  // namespace paceline::train
