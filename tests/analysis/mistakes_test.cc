/// The mistakes of real lab reports (docs/mistakes.md, by number) that this layer could make: one test each,
/// with the figures as they were reported. Mistakes 12 (accuracy counted on one rank), 14 (unstated workers)
/// and 17 (a picture as proof) end in other layers; what can be seen of them from here is tested all the
/// same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "analysis/compare/cell.h"
#include "analysis/compare/comparability.h"
#include "analysis/compare/consistency.h"
#include "analysis/steps/bandwidth.h"
#include "analysis/steps/breakdown.h"
#include "analysis/steps/scaling.h"
#include "analysis/steps/sweep.h"
#include "analysis/trainings/converge.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using golden::make_training;
using measure::Record;
using testing::Contains;
using testing::HasSubstr;

std::string all_findings(const Record& record) {
  std::string text;
  for (const auto& finding : check(record)) text += finding.text + "\n";
  return text;
}

TEST(Mistake1, EpochSpeedupIsNotMultipliedByWorkersAgain) {
  // R4, one epoch on 1, 2, 4 GPUs; reported as speedups of 1.40 and 3.80 and so on.
  const struct {
    double one, two, four, reported_two, reported_four;
  } cases[] = {{25.86, 36.93, 27.25, 1.40, 3.80},
               {14.73, 17.59, 14.82, 1.67, 3.97},
               {11.43, 12.41, 11.78, 1.84, 3.88}};
  for (const auto& c : cases) {
    const double two = ratio(exactly(c.one), exactly(c.two)).median;
    const double four = ratio(exactly(c.one), exactly(c.four)).median;
    EXPECT_LT(two, 1);
    EXPECT_LT(four, 1);
    EXPECT_NEAR(2 * two, c.reported_two, 0.01) << "what was reported is twice that";
    EXPECT_NEAR(4 * four, c.reported_four, 0.01);
  }
  EXPECT_NEAR(ratio(exactly(25.86), exactly(36.93)).median, 0.70, 0.005);
}

TEST(Mistake2, BandwidthIsOfOneStepsBytesOverOneStepsTime) {
  // R2, two GPUs: 11,173,962 parameters, communication of an epoch 17.347, 10.294, 10.377 s at 32, 128, 512 a
  // GPU; reported as 2.577, 4.342, 4.307 "GB/s": the bytes of one all-reduce over an epoch's time, and MB
  // taken for GB.
  const std::array<std::int64_t, 3> batches{32, 128, 512};
  const std::array<double, 3> seconds{17.347, 10.294, 10.377};
  const std::array<double, 3> reported{2.577, 4.342, 4.307};
  std::array<double, 3> measured{};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto steps = static_cast<double>(50000 / (2 * batches[i]));
    const double step = seconds[i] / steps;
    const auto record =
        make_record({.workers = 2, .local_batch = batches[i], .communication = step, .transfer = step});
    const auto cells = make_cells({&record, 1});
    const auto one = bandwidth(cells[0]);
    ASSERT_TRUE(one.has_value());
    EXPECT_NEAR(one->bytes_per_step / seconds[i] / 1e6, reported[i], 0.001)
        << "how the reported figure came about";
    EXPECT_NEAR(one->bytes_per_epoch, steps * 4 * 11173962, 1);
    EXPECT_NEAR(one->algbw.median, one->bytes_per_epoch / seconds[i] / 1e9, 1e-9);
    measured[i] = one->algbw.median;
  }
  EXPECT_NEAR(measured[0], 2.012, 0.001);
  EXPECT_NEAR(measured[1], 0.847, 0.001);
  EXPECT_NEAR(measured[2], 0.207, 0.001);
  EXPECT_TRUE(measured[0] > measured[1] && measured[1] > measured[2]) << "the trend is the other way round";
}

TEST(Mistake3, PhasesThatExceedTheTotalAreNamed) {
  // R2, two GPUs at 32: compute 152.249 s and communication 17.347 s of an epoch of 153.240 s: 10.7 % too
  // much.
  auto record = make_record({.workers = 2});
  for (auto& rank : record.ranks) {
    rank.phases = {};
    rank.phases[static_cast<std::size_t>(measure::Phase::forward)] = 152.249;
    rank.phases[static_cast<std::size_t>(measure::Phase::exposed_transfer)] = 17.347;
    rank.wall_s = 153.240;
  }
  EXPECT_THAT(all_findings(record), HasSubstr("add up to 169.6 s, the wall time is 153.2 s (+10.7 %)"));
  EXPECT_THAT(all_findings(record), HasSubstr("counted twice"));
}

TEST(Mistake3, OverlappedCommunicationIsNotAddedToTheStep) {
  const auto record =
      make_record({.workers = 2, .exposed_transfer = 0.02, .communication = 0.3, .transfer = 0.3});
  const auto cells = make_cells({&record, 1});
  const auto ledger = breakdown(cells[0]);
  EXPECT_NEAR(ledger.mean.compute() + ledger.mean.exposed() + ledger.mean.data_wait + ledger.mean.copy +
                  ledger.mean.other,
              ledger.mean.total(), 1e-12);
  EXPECT_GT(ledger.mean.compute() + ledger.communication_total, ledger.mean.total());
}

TEST(Mistake4, ResidualOfADataBoundBaselineIsNotCalledCommunication) {
  // A loader of 4,400 images/s feeding steps that could take 128 images in 20 ms: every N waits for it.
  const double wait = 128 / 4400.0 - 0.020;
  const std::vector<Record> records{
      make_record(
          {.forward = 0.008, .backward = 0.011, .update = 0.001, .data_wait = wait, .copy = 0, .other = 0}),
      make_record({.workers = 2,
                   .forward = 0.008,
                   .backward = 0.011,
                   .update = 0.001,
                   .exposed_transfer = 0.001,
                   .communication = 0.002,
                   .transfer = 0.002,
                   .data_wait = wait + 128 / 4400.0,
                   .copy = 0,
                   .other = 0})};
  const auto cells = make_cells(records);
  const auto baseline = breakdown(cells[0]);
  const auto split = residual(baseline, breakdown(cells[1]));
  EXPECT_TRUE(is_data_bound(baseline)) << "the report says that it is not communication";
  EXPECT_NEAR(baseline.loader_images_per_s, 4400, 1);
  EXPECT_GT(split.data_wait_s, 0.9 * split.residual_s) << "the residual is the loader";
  EXPECT_LT(split.communication_s, 0.1 * split.residual_s);
}

TEST(Mistake5, SweepEndsWhereTheBatchIsTheWholeDataSet) {
  // R4 at 131,072 of 50,000 images: 13.14 s "an epoch", level from there on to 8.8e12.
  golden::Run run{.kind = "sweep", .scaling = "", .local_batch = 128};
  auto small = make_record(run);
  run.local_batch = 131072;
  run.forward = run.backward = 0.0001;
  auto past = make_record(run);
  const std::vector<Record> records{small, past};
  const auto cells = make_cells(records);
  const auto all = sweeps(cells);
  ASSERT_EQ(all.size(), 1U);
  const Sweep* const result = &all.front();
  EXPECT_EQ(result->points[1].limit, Limit::data);
  EXPECT_FALSE(result->points[1].on_curve);
  EXPECT_EQ(result->points[*result->best].cell->local_batch, 128);
  EXPECT_EQ(result->largest_that_fits, 128);
  EXPECT_THAT(all_findings(past), HasSubstr("exceeds the 50000 training samples"));
}

TEST(Mistake6, ComputeHoldsNoDataLoading) {
  const auto fast = make_record({.data_wait = 0.0, .jitter = {1, 1, 1}});
  const auto slow = make_record({.data_wait = 0.5, .jitter = {1, 1, 1}});
  const auto fast_cells = make_cells({&fast, 1});
  const auto slow_cells = make_cells({&slow, 1});
  EXPECT_NEAR(breakdown(fast_cells[0]).mean.compute(), breakdown(slow_cells[0]).mean.compute(), 1e-12);
  EXPECT_NEAR(breakdown(slow_cells[0]).mean.data_wait, 0.5, 1e-12);
  EXPECT_NEAR(slow_cells[0].step_s.median - fast_cells[0].step_s.median, 0.5, 1e-9)
      << "and the step holds it";
}

TEST(Mistake7, LoaderSettingsThatDifferAreRefused) {
  // R4: the baseline took 15.5 s with one loader setting and 25.9 s with another.
  auto other = make_record({.workers = 2});
  other.settings["loader-threads"] = "4";
  const auto verdict = compare(make_record({}), other, Topic::scaling);
  EXPECT_FALSE(verdict.comparable());
  EXPECT_THAT(verdict.refusals, Contains("--loader-threads is 1 in the baseline and 4 here"));
  const std::vector<Record> records{make_record({}), other};
  const auto cells = make_cells(records);
  EXPECT_FALSE(scaling(cells, Mode::weak)[0].rows[1].has_ratios);
}

TEST(Mistake8, RatiosAreNeitherInvertedNorSwapped) {
  // R3: 456, 380 and 204 s on 1, 2, 4 GPUs, reported as "0.53 times" and "0.84 times faster".
  EXPECT_NEAR(ratio(exactly(456), exactly(380)).median, 1.20, 0.005);
  EXPECT_NEAR(ratio(exactly(380), exactly(204)).median, 1.86, 0.005);
  EXPECT_NEAR(ratio(exactly(456.147), exactly(203.634)).median, 2.24, 0.005);
}

TEST(Mistake9, WorkersThatTheStepsContradictAreNamed) {
  // R3: "two nodes", 3,120 steps in 40 epochs of MNIST at 128 a GPU.
  EXPECT_EQ(implied_workers(60000, 3120 / 40, 128), 6);
  auto record = make_record({.workers = 2, .train_samples = 60000});
  record.data.steps_per_epoch = 78;
  EXPECT_THAT(all_findings(record), HasSubstr("are the work of 6 workers, but the record says 2"));
}

TEST(Mistake10, LearningRateKeptOrFarOffIsSaid) {
  const auto baseline = make_training({});
  const auto kept = make_training({.variant = "large batch", .workers = 4, .global_batch = 2048});
  EXPECT_THAT(compare(baseline, kept, Topic::convergence).remarks,
              Contains("the learning rate was kept at 0.1 while the global batch grew 16 times (linear "
                       "scaling: 1.6)"));
  // R5: 0.0005 on one GPU, 0.1 on several.
  const auto slow = make_training({.lr = 0.0005});
  const auto fast = make_training({.variant = "several", .workers = 4, .global_batch = 512, .lr = 0.1});
  EXPECT_THAT(compare(slow, fast, Topic::convergence).remarks,
              Contains(HasSubstr("200 times the baseline's")));
}

TEST(Mistake11, UpdatesThatDifferAreSaidBesideTheAccuracies) {
  // R2 after 5 epochs: 1,955 updates at 128, 125 at 2,048.
  auto baseline = make_training({.accuracies = {0.4, 0.5, 0.6, 0.7, 0.7955}});
  auto large = make_training({.variant = "large batch",
                              .workers = 4,
                              .global_batch = 2048,
                              .accuracies = {0.1, 0.15, 0.2, 0.25, 0.2750}});
  baseline.epochs.back().updates = 1955;
  large.epochs.back().updates = 125;
  EXPECT_THAT(compare(baseline, large, Topic::convergence).remarks,
              Contains(HasSubstr("125 updates against the baseline's 1955 at equal epochs")));
}

TEST(Mistake12, AccuracyThatIsNoCountOverTheTestSetIsNamed) {
  // The mean of two ranks' accuracies over parts of 5,001 and 4,999 images is no count over 10,000.
  auto record = make_training({.workers = 2, .accuracies = {0.5}});
  record.epochs[0].test_accuracy = (4000.0 / 5001 + 4100.0 / 4999) / 2;
  EXPECT_THAT(all_findings(record), HasSubstr("not counted over the whole test set once"));
}

TEST(Mistake13, DifferencesBelowTheirStandardErrorAreNoise) {
  // R3: 0.9902, 0.9905 and 0.9879, single runs on 10,000 images.
  const std::array one{0.9902}, two{0.9905}, three{0.9879};
  const double error = measure::accuracy_standard_error(one, 10000);
  EXPECT_NEAR(error, 0.0010, 0.00005);
  EXPECT_TRUE(difference(one[0], error, two[0], measure::accuracy_standard_error(two, 10000)).is_noise());
  EXPECT_FALSE(
      difference(one[0], error, three[0], measure::accuracy_standard_error(three, 10000)).is_clear());
}

TEST(Mistake13, AVariantIsTheMeanOfItsSeedsNotTheBest) {
  const std::vector<Record> records{make_training({.seed = 0, .accuracies = {0.9902}}),
                                    make_training({.seed = 1, .accuracies = {0.9905}}),
                                    make_training({.seed = 2, .accuracies = {0.9879}})};
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  EXPECT_NEAR(result->variants[0].accuracy, (0.9902 + 0.9905 + 0.9879) / 3, 1e-12);
}

TEST(Mistake14, EverySpeedupCarriesItsWorkersAndBaseline) {
  const std::vector<Record> records{make_record({}), make_record({.workers = 4})};
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::weak);
  for (const auto& row : groups[0].rows)
    EXPECT_THAT(row.cell->label, HasSubstr(fmt::format("N {}", row.cell->workers)));
  EXPECT_FALSE(groups[0].baseline_name.empty());
}

TEST(Mistake15, AnotherParameterCountIsAnotherModel) {
  auto ten = make_record({});
  auto thousand = make_record({.workers = 2});
  ten.model.parameters = 11181642;
  thousand.model.parameters = 11689512;
  const auto verdict = compare(ten, thousand, Topic::scaling);
  EXPECT_FALSE(verdict.comparable());
  EXPECT_THAT(verdict.refusals, Contains(HasSubstr("has 11181642 parameters, here it has 11689512")));
}

TEST(Mistake16, TrafficThatIsNoRingIsNotCalledOne) {
  // Broadcast and gather through one device: rank 0 sends (N-1) X.
  auto record = make_record({.workers = 4, .communication = 0.1, .transfer = 0.05});
  record.communication.algorithm = "gather and broadcast through rank 0";
  record.communication.bytes_sent = 3 * record.communication.gradient_bytes * record.window.steps;
  const auto cells = make_cells({&record, 1});
  const auto one = bandwidth(cells[0]);
  EXPECT_FALSE(one->is_ring_traffic);
  EXPECT_DOUBLE_EQ(one->sent_per_step, 3.0 * 4 * 11173962);
  EXPECT_DOUBLE_EQ(one->ring_per_step, 1.5 * 4 * 11173962);
}

TEST(Mistake18, SumShownAsAMeanLossIsNamed) {
  // R3: test loss 15.59 beside an accuracy of 98.5 %.
  auto record = make_training({.accuracies = {0.985}});
  record.epochs[0].test_loss = 15.59;
  EXPECT_THAT(all_findings(record), HasSubstr("a mean test loss of 15.59 beside an accuracy of 98.5 %"));
  // But a rate that is too high gives such losses too: the record stays.
  for (const auto& finding : check(record)) EXPECT_FALSE(finding.is_error);
  record.epochs[0].test_loss = 0.05;
  EXPECT_EQ(all_findings(record), "");
}

TEST(Mistake18, DivergedTrainingIsNoSum) {
  auto record = make_training({.accuracies = {0.1}});
  record.epochs[0].test_loss = 148;
  EXPECT_THAT(all_findings(record), HasSubstr("has diverged"));
  for (const auto& finding : check(record)) EXPECT_FALSE(finding.is_error);
}

TEST(Mistake19, SingleTimingsAndMissingWarmUpAreSaid) {
  golden::Run run;
  run.jitter = {1};
  auto record = make_record(run);
  record.window.warmup_steps = 0;
  EXPECT_THAT(all_findings(record), HasSubstr("timed without warm-up"));
  EXPECT_THAT(all_findings(record), HasSubstr("a single step was timed"));
  const auto cells = make_cells({&record, 1});
  EXPECT_FALSE(has_interval(cells[0].step_s));
}

}  // namespace
}  // namespace paceline::analysis
