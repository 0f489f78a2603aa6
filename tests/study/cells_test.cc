#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "study/study.h"
#include "train/fixture.h"

namespace paceline::study {
namespace {

using testing::HasSubstr;

TEST(ScaleCells, FixTheLocalBatchForWeakAndTheGlobalOneForStrong) {
  const Axes axes{.workers = {1, 2, 4}, .batches = {32, 128}, .mode = "both", .repeats = 1};
  const auto cells = scale_cells({}, axes);
  // 1 x 32, 1 x 128 and 4 x 32 are a row of each, and are measured once.
  ASSERT_EQ(cells.size(), 9u);
  EXPECT_EQ(
      std::count_if(cells.begin(), cells.end(), [](const auto& cell) { return cell.scaling == "both"; }), 3);
  for (const auto& cell : cells) {
    if (cell.scaling != "strong") {
      EXPECT_GT(cell.options.local_batch, 0);
      EXPECT_EQ(cell.options.global_batch, 0);
    } else {
      EXPECT_EQ(cell.options.local_batch, 0);
      EXPECT_GT(cell.options.global_batch, 0);
    }
  }
}

TEST(ScaleCells, GiveEveryWorkerTheCoresThatTheOneWithTheFewestHas) {
  Axes axes{.workers = {1, 2, 8}, .batches = {32}, .mode = "weak", .repeats = 1};
  axes.cores_each = [](int workers) { return workers == 8 ? 0 : 6 / workers; };  // eight would share cores
  for (const auto& cell : scale_cells({}, axes)) EXPECT_EQ(cell.options.threads, 3) << cell.id;
  axes.workers = {8};
  EXPECT_EQ(scale_cells({}, axes)[0].options.threads, 1) << "more workers than cores have one each";
}

TEST(ScaleCells, InterleaveRepeatsAndNeverShareAnId) {
  const auto cells = scale_cells({}, {.workers = {1, 2}, .batches = {32, 64}, .mode = "weak", .repeats = 3});
  ASSERT_EQ(cells.size(), 12u);
  std::set<std::string> ids;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    ids.insert(cells[i].id);
    EXPECT_EQ(cells[i].repeat, static_cast<int>(i / 4));
  }
  EXPECT_EQ(ids.size(), cells.size());
}

TEST(ScaleCells, SkipAGlobalBatchThatDoesNotDivideAndSayWhy) {
  const auto cells = scale_cells({}, {.workers = {3}, .batches = {32}, .mode = "strong", .repeats = 1});
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].skip, "the global batch 32 does not divide by 3 workers");
}

TEST(ScaleCells, RefuseAnUnknownMode) {
  try {
    (void)scale_cells({}, {.mode = "wide"});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'wide'"));
  }
}

TEST(ConvergeCells, AddOneRemedyAfterTheOtherToTheSameLargeBatch) {
  train::Options base;
  base.workers = 4;
  base.lr = 0.1;
  const auto cells = converge_cells(base, {.baseline_batch = 128, .large_batch = 2048, .warmup_epochs = 1});
  ASSERT_EQ(cells.size(), 7u);
  EXPECT_EQ(cells[0].options.global_batch, 128);
  EXPECT_EQ(cells[0].options.workers, 1);
  for (std::size_t i = 1; i < cells.size(); ++i) {
    EXPECT_EQ(cells[i].options.global_batch, 2048);
    EXPECT_EQ(cells[i].options.workers, 4);
    EXPECT_EQ(cells[i].options.lr_batch, 128);
  }
  EXPECT_EQ(cells[1].options.scale_lr, train::LrScaling::none);
  EXPECT_EQ(cells[2].options.scale_lr, train::LrScaling::linear);
  EXPECT_EQ(cells[2].options.schedule.warmup_epochs, 0);
  EXPECT_EQ(cells[3].options.schedule.warmup_epochs, 1);
  EXPECT_EQ(cells[4].options.rule.kind, engine::UpdateKind::lars);
  EXPECT_EQ(cells[5].options.batch_norm, engine::BatchNormMode::synchronised);
  EXPECT_EQ(cells[5].options.rule.kind, engine::UpdateKind::sgd);
  EXPECT_EQ(cells[5].options.scale_lr, train::LrScaling::linear);
  EXPECT_EQ(cells[6].options.batch_norm, engine::BatchNormMode::synchronised);
  EXPECT_EQ(cells[6].options.rule.kind, engine::UpdateKind::lars);
  EXPECT_EQ(cells[6].options.lr, cells[4].options.lr);
  for (std::size_t i = 3; i < cells.size(); ++i) EXPECT_EQ(cells[i].options.schedule.warmup_epochs, 1);
}

// "+ sync BN" had linear scaling and a warm-up too, and was praised for what it gave back with them.
TEST(ConvergeCells, AreCalledByAllThatTheyChange) {
  train::Options base;
  base.workers = 4;
  for (const PlannedCell& cell : converge_cells(base, {})) {
    const auto says = [&](const char* word) { return cell.variant.find(word) != std::string::npos; };
    const auto& options = cell.options;
    EXPECT_EQ(says("linear"), options.scale_lr == train::LrScaling::linear) << cell.variant;
    EXPECT_EQ(says("sqrt"), options.scale_lr == train::LrScaling::sqrt) << cell.variant;
    EXPECT_EQ(says("warm-up"), options.schedule.warmup_epochs > 0) << cell.variant;
    EXPECT_EQ(says("LARS"), options.rule.kind == engine::UpdateKind::lars) << cell.variant;
    EXPECT_EQ(says("sync BN"), options.batch_norm == engine::BatchNormMode::synchronised) << cell.variant;
  }
}

TEST(ConvergeCells, OfWorkersKeepTheLocalBatchAndTryBothRates) {
  train::Options base;
  base.lr = 0.001;
  const auto cells = converge_cells(base, {.baseline_batch = 128, .repeats = 2, .workers = {1, 2, 4}});
  ASSERT_EQ(cells.size(), 10u);
  EXPECT_EQ(cells[0].variant, "1 worker");
  EXPECT_EQ(cells[3].variant, "4 workers, kept rate");
  EXPECT_EQ(cells[4].variant, "4 workers, linear scaling");
  std::set<std::string> ids;
  for (const auto& cell : cells) {
    ids.insert(cell.id);
    EXPECT_EQ(cell.options.global_batch, 128 * cell.options.workers);
    EXPECT_EQ(cell.options.lr_batch, 128);
    EXPECT_EQ(cell.options.threads, cells[0].options.threads) << "cores grow with workers";
    EXPECT_EQ(cell.options.scale_lr,
              cell.variant.ends_with("scaling") ? train::LrScaling::linear : train::LrScaling::none);
    EXPECT_EQ(cell.options.seed, static_cast<std::uint64_t>(cell.repeat));
    EXPECT_EQ(cell.options.epochs, 5);
  }
  EXPECT_EQ(ids.size(), cells.size());
}

TEST(ConvergeCells, OfShuffleHaveWindowsBelowTheShards) {
  const auto variants = [](std::int64_t shards) {
    train::Options base;
    base.workers = 2;
    base.shuffle_window = 3;
    std::vector<std::string> names;
    for (const auto& cell : converge_cells(base, {.baseline_batch = 96, .shuffle = true, .shards = shards})) {
      names.push_back(cell.variant);
      EXPECT_EQ(cell.options.global_batch, 96);
      EXPECT_EQ(cell.options.workers, 2);
      EXPECT_EQ(cell.options.shuffle_window,
                cell.variant == "global" ? 0 : std::stoll(cell.variant.substr(cell.variant.find(':') + 1)));
    }
    return names;
  };
  EXPECT_THAT(variants(65), testing::ElementsAre("global", "window:1", "window:8", "window:64"));
  EXPECT_THAT(variants(64), testing::ElementsAre("global", "window:1", "window:8"));
  EXPECT_THAT(variants(2), testing::ElementsAre("global", "window:1"));
}

TEST(ConvergeCells, HaveNoSynchronisedVariantWithOneWorker) {
  for (const auto& cell : converge_cells({}, {}))
    EXPECT_NE(cell.options.batch_norm, engine::BatchNormMode::synchronised);
}

TEST(ConvergeCells, WarmUpIsAPartOfTheTraining) {
  const auto warmup = [](double epochs, double asked) {
    train::Options base;
    base.epochs = epochs;
    return converge_cells(base, {.variants = {"+ linear, warm-up"}, .warmup_epochs = asked})[0].options;
  };
  EXPECT_DOUBLE_EQ(warmup(2, -1).schedule.warmup_epochs, 0.4);
  EXPECT_DOUBLE_EQ(warmup(30, -1).schedule.warmup_epochs, 1);
  EXPECT_DOUBLE_EQ(warmup(2, 1.5).schedule.warmup_epochs, 1.5);
  EXPECT_DOUBLE_EQ(warmup(0, -1).epochs, 5);
}

TEST(ConvergeCells, RefuseAVariantThatNobodyKnows) {
  try {
    (void)converge_cells({}, {.variants = {"+ linear, magic"}});
    ADD_FAILURE() << "no error";
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find("'magic'"), std::string::npos) << error.what();
  }
}

TEST(ApplyQuick, LeavesWhatWasGiven) {
  train::Options base;
  base.window_seconds = 9;
  StudyOptions options;
  options.converge.baseline_batch = 256;
  options.converge.large_batch = 1024;
  apply_quick(base, options, {"window-seconds", "baseline-batch", "large-batch", "optimizer"});
  EXPECT_EQ(base.window_seconds, 9);
  EXPECT_EQ(options.converge.baseline_batch, 256);
  EXPECT_EQ(options.converge.large_batch, 1024);
  EXPECT_EQ(base.lr, train::Options{}.lr);
  EXPECT_EQ(options.converge.variants.back(), "+ sqrt, warm-up, LARS");
  apply_quick(base, options, {});
  EXPECT_EQ(options.converge.baseline_batch, 64);
  EXPECT_EQ(base.lr, 0.05);
}

TEST(ApplyQuick, PlansAboutThirtyCellsWhoseWindowsEndByTime) {
  for (const int cores : {2, 8}) {
    train::Options base;
    base.workers = 2;
    StudyOptions options;
    options.scale.cores_each = options.converge.cores_each = [cores](int workers) { return cores / workers; };
    apply_quick(base, options, {});
    const auto cells = study_cells(base, options, train::backend_of("cpu"));
    EXPECT_LE(cells.size(), cores == 2 ? 33u : 45u);
    EXPECT_GE(cells.size(), 25u);
    std::set<std::string> ids;
    int most = 0;
    for (const auto& cell : cells) {
      EXPECT_TRUE(ids.insert(cell.id).second) << cell.id;
      most = std::max(most, cell.options.workers);
      if (cell.kind != "sweep" && cell.kind != "scale") continue;
      EXPECT_GE(cell.options.window_seconds, 1.2) << cell.id << ": too short to tell other programs";
      EXPECT_GE(cell.options.window_steps, 2000) << cell.id << ": the steps would end it before the time";
    }
    EXPECT_EQ(most, cores == 2 ? 2 : 4) << "workers that share a core answer nothing here";
  }
}

TEST(ConvergeCells, RepeatWithOtherSeeds) {
  const auto cells = converge_cells({}, {.variants = {"baseline"}, .repeats = 3});
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_EQ(cells[0].options.seed, 0u);
  EXPECT_EQ(cells[2].options.seed, 2u);
}

class CellRun : public train::TrainingTest {};

TEST_F(CellRun, CountsItsFirstStepFromItsOwnBeginAndNotFromTheStudys) {
  PlannedCell cell{.id = "sweep-b16-r0", .kind = "sweep", .options = small()};
  cell.options.steps = 0;
  cell.options.window_steps = 1;
  cell.options.started = base::Clock::now() - std::chrono::hours(1);  // the study began then
  Runner runner;
  runner.backend = train::backend_of("cpu");
  const auto records = run_cells({cell}, runner);
  ASSERT_EQ(records.size(), 1u);
  ASSERT_TRUE(records[0].first_step_s.has_value()) << records[0].reason;
  EXPECT_LT(*records[0].first_step_s, 1800);
}

/// The cells of a study of a small model without trainings; every cell has a core each up to `cores` workers.
std::vector<PlannedCell> small_study(int threads, int cores, bool with_sweep = true) {
  train::Options base;
  base.model = "resnet8-cifar";
  base.data = "synthetic,train=256,test=16";
  base.threads = threads;
  base.window_steps = 2;
  StudyOptions options;
  options.sweep.batches = {8, 16, 64};
  options.scale.batches = {16, 64};
  options.scale.workers = {1, 2, 4};
  options.sweep.repeats = options.scale.repeats = 2;
  options.scale.cores_each = [cores](int workers) { return cores / workers; };
  options.with_sweep = with_sweep;
  options.with_converge = false;
  return study_cells(base, options, train::backend_of("cpu"));
}

std::vector<std::string> ids_of(const std::vector<PlannedCell>& cells, const std::string& kind) {
  std::vector<std::string> ids;
  for (const auto& cell : cells)
    if (cell.kind == kind && !cell.fits) ids.push_back(cell.id);
  return ids;
}

TEST(StudyCells, MeasureOneWorkerOnceWhereSweepAndScalingGiveItTheSameThreads) {
  const auto cells = small_study(1, 4);
  EXPECT_THAT(ids_of(cells, "sweep"), testing::ElementsAre("sweep-b8-r0", "sweep-b8-r1"));
  for (const auto& cell : cells)
    EXPECT_EQ(cell.also == "sweep", cell.kind == "scale" && cell.options.workers == 1) << cell.id;
  // Four cores and four workers: a scaling worker has one, the sweep's all four.
  EXPECT_EQ(ids_of(small_study(0, 4), "sweep").size(), 6U);
  // One core: one thread in both, and the sweep's cells say it as scaling's do.
  const auto of_one_core = small_study(0, 1);
  EXPECT_EQ(ids_of(of_one_core, "sweep").size(), 2U);
  for (const auto& cell : of_one_core) EXPECT_EQ(cell.options.threads, 1) << cell.id;
  for (const auto& cell : small_study(1, 4, false)) EXPECT_EQ(cell.also, "") << cell.id;
}

TEST(StudyCells, TimeTheAllReduceAloneForNumbersOfWorkersWithACoreEach) {
  EXPECT_THAT(ids_of(small_study(1, 4), "comm"), testing::ElementsAre("comm-w2", "comm-w4"));
  EXPECT_THAT(ids_of(small_study(1, 2), "comm"), testing::ElementsAre("comm-w2"));
  EXPECT_THAT(ids_of(small_study(1, 1), "comm"), testing::IsEmpty());
}

TEST(CommCells, TakeFiveSecondsTogetherInAQuickStudyAtMost) {
  Axes axes{.workers = {1, 2, 4, 8, 16}};
  axes.cores_each = [](int) { return 1; };
  const auto seconds = [](const std::vector<PlannedCell>& cells) {
    double sum = 0;
    for (const auto& cell : cells) sum += cell.collectives_s;
    return sum;
  };
  EXPECT_NEAR(seconds(comm_cells({}, axes, true)), 5, 1e-9);
  EXPECT_NEAR(seconds(comm_cells({}, axes, false)), 12, 1e-9);
  axes.workers = {1, 2};
  EXPECT_NEAR(seconds(comm_cells({}, axes, true)), 2, 1e-9);
  train::Options elsewhere;
  elsewhere.device = "cuda";
  EXPECT_TRUE(comm_cells(elsewhere, axes, true).empty()) << "a device reduces elsewhere";
}

// Around the square root, in factors of two: half of it, it, twice and four times it.
TEST(Cells, TuneTheRateOfEveryBatch) {
  train::Options base;
  base.lr = 0.1;
  base.lr_batch = 64;
  base.seed = 5;
  base.target = train::target_named("loss=0.1");
  const auto cells = converge_cells(base, {.repeats = 2, .batches = {64, 256}, .rates = 4});
  ASSERT_EQ(cells.size(), 2U * 2 * 4);
  std::vector<double> rates;
  std::set<std::string> ids;
  for (const PlannedCell& cell : cells) {
    ids.insert(cell.id);
    if (cell.repeat == 0) rates.push_back(cell.options.lr);
    EXPECT_EQ(cell.kind, "converge");
    EXPECT_EQ(cell.training, cell.id);
    EXPECT_EQ(cell.options.scale_lr, train::LrScaling::none);
    EXPECT_EQ(cell.options.local_batch, 0);
    EXPECT_EQ(cell.options.seed, 5U + static_cast<unsigned>(cell.repeat));
    EXPECT_TRUE(cell.options.target.has_value());
    EXPECT_EQ(cell.options.epochs, 5);
  }
  EXPECT_EQ(ids.size(), cells.size());
  EXPECT_THAT(rates, testing::ElementsAre(0.05, 0.1, 0.2, 0.4, 0.1, 0.2, 0.4, 0.8));
  EXPECT_EQ(cells.front().id, "converge-b64-lr0.05-r0");
  EXPECT_EQ(cells[4].options.global_batch, 256);
  const auto three = converge_cells(base, {.batches = {64}, .rates = 3});
  ASSERT_EQ(three.size(), 3U);
  EXPECT_EQ(three[1].options.lr, 0.1);
}

}  // namespace
}  // namespace paceline::study
