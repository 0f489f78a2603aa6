#include "report/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "golden/records.h"
#include "report/golden.h"

namespace paceline::report {
namespace {

using golden::make_record;
using golden::make_skipped;
using golden::make_training;
using golden::Run;
using measure::Record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Batches on one worker until memory and then data end; the knee is at 64.
void add_sweep(std::vector<Record>& records) {
  const struct {
    std::int64_t batch;
    double rate;
  } points[] = {{16, 70}, {32, 84}, {64, 93.5}, {128, 94.8}, {256, 97.0}};
  for (const auto& [batch, rate] : points) {
    const double step = static_cast<double>(batch) / rate;
    for (int repeat = 0; repeat < 3; ++repeat)
      records.push_back(make_record({.kind = "sweep",
                                     .scaling = "",
                                     .local_batch = batch,
                                     .repeat = repeat,
                                     .forward = 0.32 * step * (1 + 0.004 * repeat),
                                     .backward = 0.66 * step,
                                     .update = 0.01 * step,
                                     .data_wait = 0.004 * step,
                                     .copy = 0.003 * step,
                                     .other = 0.003 * step}));
  }
  records.push_back(make_skipped({.kind = "sweep", .scaling = "", .local_batch = 742},
                                 "the largest batch that memory and data set allow, by the plan; not timed"));
  records.push_back(make_skipped({.kind = "sweep", .scaling = "", .local_batch = 1024},
                                 "does not fit: the plan is 10.12 GB, this process may use 7.60 GB"));
}

void add_scaling(std::vector<Record>& records, const std::string& scaling) {
  for (int repeat = 0; repeat < 3; ++repeat)
    for (const std::int64_t batch : {32, 128})
      for (const int workers : {1, 2, 4}) {
        const std::int64_t local = scaling == "weak" ? batch : batch / workers;
        const double compute = 0.0102 * static_cast<double>(local) + 0.03;
        const bool over = workers == 4;
        const double slow = (over ? 2.1 : workers == 2 ? 1.06 : 1.0) * (1 + 0.003 * repeat);
        const double wire = workers == 1 ? 0 : 0.018 * workers;
        records.push_back(make_record({.scaling = scaling,
                                       .workers = workers,
                                       .local_batch = local,
                                       .repeat = repeat,
                                       .forward = 0.32 * compute * slow,
                                       .backward = 0.66 * compute * slow,
                                       .update = 0.012,
                                       .exposed_transfer = 0.35 * wire,
                                       .exposed_wait = workers == 1 ? 0 : 0.009,
                                       .communication = wire + (workers == 1 ? 0 : 0.012),
                                       .transfer = wire * (1 + 0.02 * repeat),
                                       .oversubscribed = over}));
      }
}

void add_convergence(std::vector<Record>& records) {
  for (int seed = 0; seed < 2; ++seed) {
    const double luck = 0.002 * seed;
    records.push_back(make_training({.seed = seed, .accuracies = {0.4511, 0.6120, 0.7012 + luck}}));
    records.push_back(make_training({.variant = "large batch",
                                     .workers = 2,
                                     .global_batch = 2048,
                                     .seed = seed,
                                     .accuracies = {0.2034, 0.3302, 0.4318 - luck}}));
    records.push_back(make_training({.variant = "+ linear scaling",
                                     .workers = 2,
                                     .global_batch = 2048,
                                     .seed = seed,
                                     .factor = 16,
                                     .rule = "linear",
                                     .accuracies = {0.1711, 0.4120, 0.5811 + luck}}));
  }
}

std::vector<Record> study() {
  std::vector<Record> records;
  add_sweep(records);
  add_scaling(records, "weak");
  add_scaling(records, "strong");
  add_convergence(records);
  return records;
}

/// All tables, or all plots, of a document.
template <typename Kind>
std::vector<const Kind*> all(const Document& document) {
  std::vector<const Kind*> found;
  for (const Section& section : document.sections)
    for (const Block& block : section.blocks)
      if (const auto* one = std::get_if<Kind>(&block)) found.push_back(one);
  return found;
}

template <typename Kind>
const Kind* find(const Document& document, const std::string& id) {
  for (const Kind* one : all<Kind>(document))
    if (one->id == id) return one;
  return nullptr;
}

TEST(Build, GivesAStudyAllItsTables) {
  const auto records = study();
  const Document document = build(records);
  for (const char* id : {"sweep", "scale-weak-time", "scale-strong-time", "scale-weak-ledger",
                         "scale-weak-residual", "scale-strong-ledger", "scale-strong-residual",
                         "scale-weak-bandwidth", "scale-strong-bandwidth", "converge"})
    EXPECT_NE(find<Table>(document, id), nullptr) << id;
}

TEST(Build, PlotsTheEpochAgainstTheBatchForEachNumberOfWorkers) {
  const auto records = study();
  const Document document = build(records);
  const Plot* plot = find<Plot>(document, "weak-epoch");
  ASSERT_NE(plot, nullptr);
  ASSERT_GE(plot->series.size(), 2U);
  EXPECT_EQ(plot->series[0].name, "1 worker (1 core)");
  EXPECT_EQ(plot->series[1].name, "2 workers (2 cores)");
  EXPECT_LT(plot->series[1].points.front().y, plot->series[0].points.front().y);
  ASSERT_GE(plot->series[0].points.size(), 2U);
  EXPECT_LT(plot->series[0].points[0].x, plot->series[0].points[1].x);
}

TEST(Build, WritesAStudyForTheTerminal) { expect_golden("study.txt", to_terminal(build(study()), 110)); }
TEST(Build, WritesAStudyAsMarkdown) { expect_golden("study.md", to_markdown(build(study()))); }

TEST(Summary, NeverAdvisesWorkersWithoutACoreEach) {
  std::vector<Record> records;
  for (const int workers : {1, 2, 4})
    records.push_back(make_record({.scaling = "weak",
                                   .workers = workers,
                                   .local_batch = 32,
                                   .forward = workers == 4 ? 0.11 : 0.1,
                                   .oversubscribed = workers == 4}));
  EXPECT_THAT(
      to_markdown(build(records)),
      testing::HasSubstr("the fewest within 5 % of the best throughput: batch 32: 2 workers (2 cores), "));
}

TEST(Build, WritesTable1And2AsCsv) {
  const auto records = study();
  const Document document = build(records);
  for (const char* id : {"scale-weak-time", "scale-weak-ledger", "scale-weak-residual"}) {
    const Table* table = find<Table>(document, id);
    ASSERT_NE(table, nullptr) << id;
    expect_golden(fmt::format("study-{}.csv", id), to_csv(*table));
  }
}

TEST(Build, WritesEveryRowWithAsManyCellsAsColumns) {
  const auto records = study();
  const Document document = build(records);
  for (const Table* table : all<Table>(document))
    for (const auto& row : table->rows) EXPECT_EQ(row.size(), table->columns.size()) << table->id;
}

TEST(Build, GivesEveryTableAndPlotItsOwnName) {
  const auto records = study();
  const Document document = build(records);
  std::set<std::string> ids;
  for (const Table* table : all<Table>(document)) EXPECT_TRUE(ids.insert(table->id).second) << table->id;
  for (const Plot* plot : all<Plot>(document)) EXPECT_TRUE(ids.insert(plot->id).second) << plot->id;
}

TEST(Build, GivesEveryStackedBarOnePointACategory) {
  const auto records = study();
  const Document document = build(records);
  int bars = 0;
  for (const Plot* plot : all<Plot>(document)) {
    if (plot->kind != PlotKind::stacked_bar) continue;
    ++bars;
    for (const Series& series : plot->series)
      EXPECT_EQ(series.points.size(), plot->categories.size()) << plot->id;
  }
  EXPECT_EQ(bars, 2);
}

TEST(Build, SaysOnTopThatDataIsSynthetic) {
  auto record = make_record({});
  record.data.synthetic = true;
  EXPECT_THAT(to_terminal(build({&record, 1})), HasSubstr("The data is synthetic"));
  record.data.synthetic = false;
  EXPECT_THAT(to_terminal(build({&record, 1})), Not(HasSubstr("The data is synthetic")));
}

TEST(Build, SaysWhichQuestionsWereNotMeasured) {
  const auto record = make_training({.variant = ""});
  const std::string text = to_terminal(build({&record, 1}));
  EXPECT_THAT(text, HasSubstr("Which batch size? Not measured"));
  EXPECT_THAT(text, HasSubstr("How many workers? Not measured"));
  EXPECT_THAT(text, HasSubstr("What does the all-reduce give? Not measured"));
  EXPECT_THAT(text, HasSubstr("What does the accuracy pay? Not measured"));
  EXPECT_THAT(
      text, HasSubstr("Where does the time go? A step of local batch 128 on 1 worker (1 core) takes 1.22 s"));
}

/// The text of a study of one cell a number of workers.
std::string text_of(const std::vector<Record>& records) { return to_markdown(build(records)); }

TEST(Summary, SaysWhereTheLostEfficiencyWent) {
  // 200 steps of 51,200 images: 10 s of transfer and 20 s of slower kernels; 2 ms of waiting are too little.
  const std::vector<Record> records{make_record({.jitter = {1, 1}, .train_samples = 51200}),
                                    make_record({.workers = 2,
                                                 .forward = 0.45,
                                                 .backward = 0.85,
                                                 .exposed_transfer = 0.05,
                                                 .exposed_wait = 0.002,
                                                 .communication = 0.16,
                                                 .transfer = 0.15,
                                                 .jitter = {1, 1},
                                                 .train_samples = 51200})};
  const std::string text = text_of(records);
  EXPECT_THAT(text,
              HasSubstr("Of the 30.4 s that an epoch of all images lost against the ideal T(1)/N: 20.0 s "
                        "slower kernels, 10.0 s exposed transfer."));
  EXPECT_THAT(text,
              HasSubstr("take 150.0 ms of transfer and 10.0 ms of waiting for a later rank; 67.5 % of both"));
}

TEST(Summary, SaysScaledSpeedupOfWeakAndSpeedupOfStrongScaling) {
  const std::string text = text_of(study());
  EXPECT_THAT(text, HasSubstr("batch 32: 2 workers (2 cores), scaled speedup 1.79"));
  EXPECT_THAT(text, HasSubstr("batch 32: 2 workers (2 cores), speedup 1.52"));
  EXPECT_THAT(text, Not(HasSubstr("times as fast")));
  EXPECT_THAT(text, HasSubstr("Baseline: 1 worker without any communicator, on 1 core."));
}

TEST(Summary, NamesEveryCaveatOfASpeedupAndNoneOfThemElsewhere) {
  auto one = make_record({.forward = 0.1, .backward = 0.1, .jitter = {0.8, 1, 1.2}});
  one.threads_per_worker = 2;
  const std::vector<Record> records{
      one, make_record({.workers = 2, .forward = 0.2, .backward = 0.1975, .jitter = {0.8, 1, 1.2}})};
  const std::string text = text_of(records);
  EXPECT_THAT(text, HasSubstr("(the interval holds 1: no clear gain; on the baseline's cores, shared out)"));
  const auto time = text.find("Where does the time go?");
  EXPECT_EQ(text.find("shared out", time), std::string::npos);
}

// A baseline of one repeat, timed while something else ran: 2 workers 2.75 times as fast, without a word.
TEST(Summary, SaysThatASpeedupAboveTheIdealIsNone) {
  const auto slow = make_record({.forward = 0.4, .backward = 0.8});
  EXPECT_THAT(text_of({slow, make_record({.workers = 2, .forward = 0.3, .backward = 0.6})}),
              HasSubstr("(above the ideal: the baseline was measured in a slower moment"));
  EXPECT_THAT(text_of({slow, make_record({.workers = 2, .forward = 0.4, .backward = 0.8})}),
              Not(HasSubstr("above the ideal")));
}

TEST(Summary, SaysThatTheLoaderWasFastEnough) {
  const auto record = make_record({.kind = "train", .scaling = "", .data_wait = 0.2});
  const std::string text = text_of({record});
  EXPECT_THAT(text,
              HasSubstr("although the loader was fast enough (scheduling): it could give 4,400 images/s"));
  EXPECT_THAT(text, Not(HasSubstr("The loader is a limit")));
}

TEST(Summary, SaysThatTheLoaderIsTheLimitAndWhatToDo) {
  // 3,657 images/s are used, 5,120 would be, a thread prepares 4,400: two threads would do 1.5 times that.
  const auto record = make_record({.kind = "train",
                                   .scaling = "",
                                   .forward = 0.0125,
                                   .backward = 0.0125,
                                   .update = 0,
                                   .data_wait = 0.01,
                                   .copy = 0,
                                   .other = 0,
                                   .jitter = {1, 1, 1}});
  const std::string text = text_of({record});
  EXPECT_THAT(text, HasSubstr("The loader is a limit: steps wait for data 28.6 % of their time; the loaders "
                              "could give 4,400 images/s, the steps would take 5,120. --loader-threads 2 (it "
                              "is 1) where cores are idle"));
}

TEST(Summary, SaysWhatHelpsALoaderThatNeedsMoreCoresThanThereAre) {
  golden::Run run{
      .forward = 0.0025, .backward = 0.0025, .update = 0, .data_wait = 0.025, .copy = 0, .other = 0};
  auto record = make_record(run);
  record.data.name = "folder";
  // 25,536 images/s are wanted, and a core prepares 4,840.
  EXPECT_THAT(
      text_of({record}),
      HasSubstr("A core prepares 4,840 images/s, so it would take 5.28 cores, and there are 2: images "
                "packed as pixels (paceline data pack --decoded) or a smaller size make it faster"));
  for (auto& rank : record.ranks) rank.loader_processor_s = 0.01 * rank.loader_prepare_s;
  EXPECT_THAT(text_of({record}),
              HasSubstr("Its threads computed for 1.0 % of that time and waited for the disk"));
}

// The summary spoke of the loader only where the cell of its other answers waited.
TEST(Summary, NamesALoaderThatIsTheLimitOfAnotherCell) {
  golden::Run run{.local_batch = 32,
                  .forward = 0.001,
                  .backward = 0.001,
                  .update = 0,
                  .data_wait = 0.006,
                  .copy = 0,
                  .other = 0};
  const std::vector<Record> records{make_record({}), make_record({.workers = 2}), make_record(run)};
  EXPECT_THAT(text_of(records),
              HasSubstr("The loader is a limit in 1 of 3 cells; at scale weak b 32, N 1: "));
}

// Mistake 4 again: the speedup of a loader is no speedup of workers.
TEST(Scaling, SaysWhereTheLoaderIsMeasuredAndNotTheWorkers) {
  golden::Run run{
      .forward = 0.008, .backward = 0.011, .update = 0.001, .data_wait = 0.02, .copy = 0, .other = 0};
  const auto one = make_record(run);
  run.workers = 2;
  const std::string text = text_of({one, make_record(run)});
  EXPECT_THAT(text,
              HasSubstr("b 128, N 2: 50.0 % of the step waits for data: the loader is measured, not the "
                        "workers."));
  EXPECT_THAT(text, HasSubstr("the loader is the limit, 50.0 % of the step waits for data"));
}

// Mistake 4: a loader of 4,400 images/s feeds steps that could take 6,400, whatever the number of workers.
TEST(Residual, OfABaselineThatWaitsForDataIsDeniedTheWordCommunication) {
  const double wait = 128 / 4400.0 - 0.020;
  golden::Run run{
      .forward = 0.008, .backward = 0.011, .update = 0.001, .data_wait = wait, .copy = 0, .other = 0};
  run.jitter = {1, 1, 1};
  const auto one = make_record(run);
  run.workers = 2;
  run.data_wait += 128 / 4400.0;
  const std::string text = text_of({one, make_record(run)});
  EXPECT_THAT(text, HasSubstr("data-bound: the baseline at batch 128 waits for data 31.2 % of its step, its "
                              "loader could give 4,400 images/s; the residual must not be called "
                              "communication."));
  EXPECT_THAT(text, HasSubstr("| the limit"));
}

// A sweep alone, and trainings alone, have a loader too.
TEST(Loader, StandsInEveryReport) {
  for (const char* kind : {"sweep", "converge", "scale", "train"}) {
    auto record = make_record({.kind = kind, .scaling = kind == std::string("scale") ? "weak" : ""});
    for (auto& rank : record.ranks) {
      rank.loader_prepare_s = 1;
      rank.loader_threads = 1;
      rank.loader_processor_s = 0.5;
      rank.loader_ready = 2.0;
      rank.loader_queue = 2;
      rank.loader_waits = 0;
    }
    const Document document = build({&record, 1});
    EXPECT_NE(find<Table>(document, "loader"), nullptr) << kind;
  }
}

// A plot's caption called what a slow loader costs communication.
TEST(Scaling, APlotOfDataBoundCellsDoesNotSpeakOfCommunication) {
  golden::Run run{
      .forward = 0.008, .backward = 0.011, .update = 0.001, .data_wait = 0.01, .jitter = {1, 1, 1}};
  const auto caption = [](const std::vector<Record>& records) {
    return find<Plot>(build(records), "weak-speedup")->caption;
  };
  auto two = run;
  two.workers = 2;
  EXPECT_THAT(caption({make_record(run), make_record(two)}), HasSubstr("must not be called communication"));
  run.data_wait = two.data_wait = 0;
  EXPECT_THAT(caption({make_record(run), make_record(two)}), HasSubstr("is lost to communication"));
}

TEST(Scaling, ALineOfEpochsIsOfOneSetOfSettings) {
  std::vector<Record> records;
  for (const std::int64_t batch : {32, 64, 128})
    for (const char* threads : {"1", "4"}) {
      records.push_back(make_record({.local_batch = batch}));
      records.back().settings["loader-threads"] = batch == 128 ? "4" : threads;
    }
  const Document document = build(records);
  const auto* plot = find<Plot>(document, "weak-epoch");
  ASSERT_NE(plot, nullptr);
  ASSERT_EQ(plot->series.size(), 1u);
  EXPECT_EQ(plot->series[0].points.size(), 2u) << "32 and 64 with one loader thread";
}

// Mistake 7: 15.5 s in the table of the batch sweep, 25.9 s for the same batch in that of scaling.
TEST(Build, SaysThatTwoTablesHaveOtherLoaderSettings) {
  auto sweep = make_record({.kind = "sweep", .scaling = ""});
  const std::vector<Record> alike{sweep, make_record({}), make_record({.scaling = "strong"})};
  EXPECT_THAT(text_of(alike), Not(HasSubstr("must not be compared")));
  sweep.settings["loader-threads"] = "4";
  EXPECT_THAT(
      text_of({sweep, make_record({})}),
      HasSubstr("The times of weak scaling (here) must not be compared with those of the batch sweep (the "
                "baseline): --loader-threads is 4 in the baseline and 1 here"));
}

// And inside a table: two rows "128, 1 worker", and a footnote on one of them, told nobody which was which.
TEST(Build, ATableSaysInWhatItsRowsDiffer) {
  auto other = make_record({});
  other.settings["loader-threads"] = "4";
  auto two = make_record({.workers = 2});
  two.environment.version = "0.2.0";
  const std::vector<Record> records{make_record({}), other, two};
  const Document document = build(records);
  for (const char* id : {"scale-weak-time", "scale-weak-ledger"}) {
    const Table* table = find<Table>(document, id);
    ASSERT_NE(table, nullptr);
    ASSERT_EQ(table->columns.back().label, "differs in") << id;
    EXPECT_EQ(table->rows[0].back().text, "loader-threads 1, version 0.1.0 (abc1234)");
    EXPECT_EQ(table->rows[1].back().text, "loader-threads 4, version 0.1.0 (abc1234)");
    EXPECT_EQ(table->rows[2].back().text, "loader-threads 1, version 0.2.0");
  }
  const auto alike = study();
  const Document usual = build(alike);
  for (const Table* table : all<Table>(usual))
    EXPECT_NE(table->columns.back().label, "differs in") << table->id;
}

TEST(Ledger, SaysHowMuchTheDeviceWasInUse) {
  const auto record = make_record({.forward = 0.2, .backward = 0.5, .update = 0.1, .data_wait = 0.2});
  const Document document = build({&record, 1});
  const Table* table = find<Table>(document, "scale-weak-ledger");
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->columns[4].label, "in use");
  EXPECT_NEAR(*table->rows[0][4].value, 0.8 / 1.005, 1e-9);
}

// Mistake 14: four GPUs were slower than several before, and nobody said so.
TEST(Scaling, NeverLeavesASlowdownUnsaid) {
  const std::vector<Record> records{
      make_record({.forward = 0.2, .backward = 0.2, .jitter = {1, 1, 1}}),
      make_record({.workers = 2, .forward = 0.2, .backward = 0.25, .jitter = {1, 1, 1}}),
      make_record({.workers = 4, .forward = 0.8, .backward = 0.8, .jitter = {1, 1, 1}})};
  EXPECT_THAT(text_of(records), HasSubstr("4 workers are slower than 2 at local batch 128: "));
}

TEST(Scaling, DoesNotCallAsManyWorkersSlower) {
  auto other_rate = make_record({.kind = "train", .workers = 2, .forward = 0.8, .jitter = {1, 1, 1}});
  other_rate.settings["lr"] = "0.2";
  const std::vector<Record> records{
      make_record({.kind = "train", .forward = 0.3, .jitter = {1, 1, 1}}),
      make_record({.kind = "train", .workers = 2, .forward = 0.2, .jitter = {1, 1, 1}}), other_rate};
  EXPECT_THAT(text_of(records), Not(HasSubstr("are slower than")));
}

// Cells of one worker in part from weak and in part from strong scaling: the fastest was left off the curve,
// and the second best called the best of all.
TEST(Summary, CallsNoBatchTheBestOfAllThatIsNot) {
  const auto slow = make_record({.scaling = "strong", .local_batch = 32, .forward = 0.5, .backward = 0.5});
  auto fast = make_record({.scaling = "weak", .local_batch = 512, .forward = 0.5, .backward = 0.5});
  EXPECT_THAT(text_of({slow, fast}), HasSubstr("Which batch size? 512 on 1 worker"));
  fast.settings["loader-threads"] = "4";
  EXPECT_THAT(text_of({slow, fast}), AllOf(HasSubstr("Which batch size? 32 on 1 worker"),
                                           HasSubstr("the best of those that can be compared")));
}

TEST(Summary, SaysThatAKneeIsNotDecided) {
  std::vector<Record> records;
  for (const double slow : {0.5, 1.0, 2.0})
    records.push_back(
        make_record({.kind = "sweep", .scaling = "", .local_batch = 8, .forward = 0.05 * slow}));
  for (const double slow : {0.9, 1.0, 1.1})
    records.push_back(
        make_record({.kind = "sweep", .scaling = "", .local_batch = 16, .forward = 0.9 * slow}));
  const std::string text = text_of(records);
  EXPECT_THAT(text, HasSubstr("Not decided: 8 and 16 overlap; measure longer."));
  EXPECT_THAT(text, HasSubstr("| knee, not decided"));
}

TEST(Sweep, ShowsCoresAndAchievedFlops) {
  auto record = make_record({.kind = "sweep", .scaling = "", .jitter = {1, 1}});
  record.threads_per_worker = 2;
  record.ranks[0].cores = {0, 1};
  const Document document = build({&record, 1});
  const Table* table = find<Table>(document, "sweep");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->columns[1].key, "cores");
  EXPECT_EQ(table->rows[0][1].value, 2.0);
  EXPECT_EQ(table->columns[5].key, "gflop_per_s");
  EXPECT_NEAR(*table->rows[0][5].value, 128 / 1.22 * 3.34, 1e-9);
  EXPECT_THAT(text_of({record}), HasSubstr("128 on 1 worker (2 cores)"));
}

TEST(SameCores, SaysWhyMoreWorkersAreNotFaster) {
  auto threads = make_record({.kind = "sweep", .scaling = "", .local_batch = 128, .forward = 0.4});
  threads.threads_per_worker = 2;
  threads.ranks[0].cores = {0, 1};
  const auto slower = make_record({.scaling = "strong",
                                   .workers = 2,
                                   .local_batch = 64,
                                   .forward = 0.4,
                                   .backward = 0.85,
                                   .exposed_transfer = 0.04});
  const std::vector<Record> records{threads, slower};
  const Table* table = find<Table>(build(records), "same-cores");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->rows.size(), 1U);
  EXPECT_THAT(
      text_of(records),
      AllOf(HasSubstr("2 workers x 1 thread against 1 worker x 2 threads on 2 cores, global batch 128: 0.93"),
            HasSubstr("(slower); against them: slower compute (+50.1 ms a step), transfer that nothing "
                      "hides (+40.1 ms a step)")));
  EXPECT_EQ(find<Table>(build({&slower, 1}), "same-cores"), nullptr);
}

TEST(Build, SaysThatOtherProgramsWereAtWork) {
  auto records = study();
  for (Record& record : records) record.window.others_cores = 0.0;
  records.front().window.others_cores = 1.0;
  const auto warnings = build(records).warnings;
  EXPECT_TRUE(std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
    return warning.starts_with("Other programs were at work in 1 of ");
  }));
}

TEST(Build, SaysThatSeveralVersionsMeasured) {
  auto other = make_record({.workers = 2});
  other.environment.version = "0.1.0 (def5678)";
  EXPECT_THAT(text_of({make_record({}), other}),
              HasSubstr("Measured by 2 versions (0.1.0 (abc1234); 0.1.0 (def5678))"));
}

TEST(Build, SaysWhichIntervalsAreOfOneRun) {
  const std::vector<Record> records{make_record({.repeat = 0}), make_record({.repeat = 1}),
                                    make_record({.workers = 2})};
  EXPECT_THAT(text_of(records), HasSubstr("within one run; another run may lie outside it: b 128, N 2."));
  EXPECT_THAT(text_of(study()), Not(HasSubstr("within one run")));
}

// It stood last of all notes, under how it was measured.
TEST(Training, BeginsWithTheEpochThatTheValidationSetChose) {
  auto record = make_training({.accuracies = {0.2, 0.3, 0.25}});
  record.kind = "train";
  record.variant.clear();
  record.notes = {"kernels: measured",
                  "best epoch by validation accuracy: 2 of 3 (31.00 % of 100 images); its test "
                  "accuracy is 30.00 %"};
  const Document document = build({&record, 1});
  const auto training = std::find_if(document.sections.begin(), document.sections.end(),
                                     [](const Section& section) { return section.id == "training"; });
  ASSERT_NE(training, document.sections.end());
  const auto* first = std::get_if<Paragraph>(&training->blocks.front());
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->tone, Paragraph::Tone::finding);
  EXPECT_THAT(first->text, HasSubstr("Best epoch by validation accuracy: 2 of 3"));
}

// A quick form trained half an epoch, and its report said "after 1 epoch" and called its seconds an epoch's.
TEST(Converge, CallsHalfAnEpochAHalf) {
  auto one = make_training({.accuracies = {0.4}});
  auto large =
      make_training({.variant = "large batch", .workers = 2, .global_batch = 512, .accuracies = {0.3}});
  for (Record* record : {&one, &large}) {
    record->data.steps_per_epoch = 100;
    record->epochs[0].updates = 50;
    record->epochs[0].seconds = 10;
  }
  const std::vector<Record> records{one, large};
  const Document document = build(records);
  EXPECT_THAT(text_of(records), HasSubstr("After 0.5 epochs at global batch 512"));
  const Table* table = find<Table>(document, "converge");
  ASSERT_NE(table, nullptr);
  EXPECT_NEAR(*table->rows[0][3].value, 0.5, 0.01);
  EXPECT_EQ(table->columns[3].format, Format::fixed2);
  EXPECT_NEAR(*table->rows[0][8].value, 20, 0.5);
  EXPECT_EQ(table->rows[0][8].mark, "est.");
  EXPECT_NEAR(find<Plot>(document, "converge-epochs")->series[0].points[0].x, 0.5, 0.01);
}

TEST(Build, ShowsDifferencesOfAccuraciesInPoints) {
  const auto records = study();
  const Document document = build(records);
  const Table* table = find<Table>(document, "converge");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->columns[11].unit, "points");
  EXPECT_NEAR(*table->rows[1][11].value, -27.14, 1e-9);  // 43.08 - 70.22
}

TEST(Ledger, NamesTheSlowestRankOnlyAmongSeveral) {
  const auto records = study();
  const Document document = build(records);
  for (const auto& row : find<Table>(document, "scale-weak-ledger")->rows)
    EXPECT_EQ(row[11].note.empty(), row[1].value == 1.0);
}

TEST(Ledger, ExplainsExposureBeyondTheCommunicationOnce) {
  const std::vector<Record> records{
      make_record({}),
      make_record({.workers = 2, .exposed_transfer = 0.03, .communication = 0.02, .transfer = 0.02}),
      make_record({.workers = 4, .exposed_transfer = 0.06, .communication = 0.02, .transfer = 0.02})};
  const Document document = build(records);
  const Table* table = find<Table>(document, "scale-weak-ledger");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->rows[0][5].mark, "");
  EXPECT_EQ(table->rows[1][5].mark, "‡");
  const auto explains = [](const std::string& note) { return note.starts_with("‡"); };
  EXPECT_EQ(std::count_if(table->footnotes.begin(), table->footnotes.end(), explains), 1);
}

TEST(Build, MarksOversubscribedCellsInTablesAndPlots) {
  const auto records = study();
  const Document document = build(records);
  const Table* table = find<Table>(document, "scale-weak-time");
  ASSERT_NE(table, nullptr);
  int marked = 0;
  for (const auto& row : table->rows) {
    const bool four = row[1].value == 4.0;
    EXPECT_EQ(row[4].mark.find('*') != std::string::npos, four);
    marked += four ? 1 : 0;
  }
  EXPECT_EQ(marked, 2);
  const Plot* plot = find<Plot>(document, "weak-speedup");
  ASSERT_NE(plot, nullptr);
  int points = 0;
  for (const Series& series : plot->series)
    for (const Point& point : series.points) points += point.mark == "oversubscribed" ? 1 : 0;
  EXPECT_EQ(points, 2);
}

TEST(Build, MarksADebugBuildEverywhere) {
  auto record = make_record({});
  record.environment.build = "Debug";
  const std::string text = to_terminal(build({&record, 1}));
  EXPECT_THAT(text, HasSubstr("marked debug"));
  EXPECT_THAT(text, HasSubstr("debug: built as Debug"));
}

TEST(Build, NamesWhatWasSkippedAndWhy) {
  const std::vector<Record> records{
      make_record({.local_batch = 128}),
      make_skipped({.workers = 4, .local_batch = 128},
                   "does not fit: the plan is 9.10 GB, this process may use 7.60 GB")};
  EXPECT_THAT(to_terminal(build(records)), HasSubstr("skipped: does not fit: the plan is 9.10 GB"));
}

TEST(Build, PraisesNoRemedyThatMadeItWorse) {
  const std::vector<Record> records{
      make_training({.accuracies = {0.70}}),
      make_training({.variant = "large batch", .workers = 2, .global_batch = 2048, .accuracies = {0.50}}),
      make_training({.variant = "+ linear scaling",
                     .workers = 2,
                     .global_batch = 2048,
                     .factor = 16,
                     .rule = "linear",
                     .accuracies = {0.40}})};
  const std::string text = to_terminal(build(records));
  EXPECT_THAT(text, HasSubstr("No remedy gave any of it back"));
  EXPECT_THAT(text, Not(HasSubstr("gives back most")));
}

TEST(Build, SurvivesRecordsThatHoldNothing) {
  EXPECT_THAT(to_terminal(build({})), HasSubstr("nothing was measured"));
  const Record empty;
  EXPECT_NO_FATAL_FAILURE(static_cast<void>(to_html(build({&empty, 1}))));
  Record failed = make_skipped({}, "the loss is no longer finite");
  failed.status = "failed";
  EXPECT_THAT(to_terminal(build({&failed, 1})), HasSubstr("1 record failed"));
}

}  // namespace
}  // namespace paceline::report
