#include "report/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/records.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using golden::make_training;
using golden::Run;
using measure::Record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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
}

// What the worker draws for a device that has the images, no thread can prepare.
TEST(Loader, OfImagesOnTheDeviceNeedsNoThreads) {
  auto record = make_record(
      {.forward = 0.008, .backward = 0.011, .update = 0.001, .data_wait = 0.02, .copy = 0, .other = 0});
  for (auto& rank : record.ranks) {
    rank.loader_prepare_s =
        rank.loader_processor_s.emplace(rank.phases[static_cast<std::size_t>(measure::Phase::data_wait)]);
    rank.loader_threads = 0;
    rank.loader_queue = 0;
    rank.loader_ready = 0.0;
    rank.loader_waits = static_cast<std::int64_t>(rank.step_s.size());
  }
  EXPECT_THAT(text_of({record}), HasSubstr("--loader-threads 1 prepares them meanwhile"));
  record.data.images_on = "device";
  EXPECT_THAT(text_of({record}), AllOf(HasSubstr("The images lie on the device: each worker only draws"),
                                       Not(HasSubstr("prepares them meanwhile"))));
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
  ASSERT_EQ(plot->series.size(), 2u);
  EXPECT_EQ(plot->series[0].name, "1 worker (1 core), loader-threads 1");
  EXPECT_EQ(plot->series[0].points.size(), 2u) << "32 and 64";
  EXPECT_EQ(plot->series[1].points.size(), 3u);
  records.erase(records.begin() + 1);  // 32 and 64 with one loader thread, 128 with four
  records.erase(records.begin() + 2);
  const Document mixed = build(records);
  plot = find<Plot>(mixed, "weak-epoch");
  ASSERT_EQ(plot->series.size(), 1u);
  EXPECT_EQ(plot->series[0].points.size(), 2u);
  EXPECT_THAT(plot->caption,
              HasSubstr("Left out, since it cannot be compared with the first of its line: 1 row"));
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

// Of one repeat the intervals are those of steps, and runs differ by more: "slower" was told without a word.
TEST(Scaling, SaysOfASlowdownOnHowManyRepeatsItStands) {
  std::vector<Record> records;
  for (int repeat = 0; repeat < 3; ++repeat) {
    records.push_back(make_record({.repeat = repeat}));
    if (repeat < 2) records.push_back(make_record({.workers = 2, .repeat = repeat, .forward = 4}));
  }
  EXPECT_THAT(text_of({records[0], records[1]}), HasSubstr("104.9 images/s (one repeat)."));
  EXPECT_THAT(text_of(records), HasSubstr("104.9 images/s (two repeats at the least)."));
  records.push_back(make_record({.workers = 2, .repeat = 2, .forward = 4}));
  EXPECT_THAT(text_of(records), HasSubstr("104.9 images/s."));
}

// The rate of a disturbed cell is a lower bound, and a ratio to a disturbed baseline says as little as one of
// it.
TEST(Scaling, SaysWhatWasMeasuredBesideOtherPrograms) {
  std::vector<Record> records{make_record({}), make_record({.workers = 2, .forward = 4})};
  const auto efficiency_mark = [&] {
    const Document document = build(records);
    return find<Table>(document, "scale-weak-time")->rows[1].back().mark;
  };
  EXPECT_EQ(efficiency_mark(), "");
  records[0].window.others_cores = 1.5;
  EXPECT_EQ(efficiency_mark(), "disturbed");
  EXPECT_THAT(text_of(records), HasSubstr("2 workers are slower than 1"));
  records[1].window.others_cores.reset();
  EXPECT_EQ(efficiency_mark(), "~");
  EXPECT_THAT(text_of(records), AllOf(HasSubstr("2 workers seemed slower than 1"),
                                      HasSubstr("images/s (one repeat, beside other programs).")));
}

TEST(Residual, SaysOnHowManyRepeatsItIsSplit) {
  const std::vector<Record> records{make_record({}), make_record({.workers = 2, .forward = 0.6})};
  const Document document = build(records);
  const Table* table = find<Table>(document, "scale-weak-residual");
  ASSERT_NE(table, nullptr);
  EXPECT_THAT(
      table->footnotes,
      testing::Contains("b 128, N 2 against its baseline: one repeat; another run may split the residual "
                        "otherwise."));
  const auto usual = study();
  const Document enough = build(usual);
  for (const std::string& note : find<Table>(enough, "scale-weak-residual")->footnotes)
    EXPECT_THAT(note, Not(HasSubstr("repeat")));
}

TEST(Scaling, DoesNotCallAsManyWorkersSlower) {
  auto other_rate = make_record({.kind = "train", .workers = 2, .forward = 0.8, .jitter = {1, 1, 1}});
  other_rate.settings["lr"] = "0.2";
  const std::vector<Record> records{
      make_record({.kind = "train", .forward = 0.3, .jitter = {1, 1, 1}}),
      make_record({.kind = "train", .workers = 2, .forward = 0.2, .jitter = {1, 1, 1}}), other_rate};
  EXPECT_THAT(text_of(records), Not(HasSubstr("are slower than")));
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
}

// Table and plot gave the knee of one repeat as that of five.
TEST(Sweep, SaysOfAKneeOfFewRepeatsThatItIs) {
  std::vector<Record> records;
  for (const std::int64_t batch : {8, 16, 32})
    for (int repeat = 0; repeat < (batch == 32 ? 1 : 3); ++repeat)
      records.push_back(make_record({.kind = "sweep",
                                     .scaling = "",
                                     .local_batch = batch,
                                     .repeat = repeat,
                                     .forward = batch == 8 ? 1.0 : 0.5}));
  const Document document = build(records);
  const Table* table = find<Table>(document, "sweep");
  ASSERT_NE(table, nullptr);
  EXPECT_THAT(table->footnotes, testing::Contains("Doubts about the knee: one repeat at the least."));
  EXPECT_EQ(find<Plot>(document, "sweep-throughput")->caption,
            "The knee is at 32 (one repeat at the least).");
  const auto usual = study();
  const Document enough = build(usual);
  EXPECT_EQ(find<Plot>(enough, "sweep-throughput")->caption, "The knee is at 64.");
}

// A batch that was not timed was pinned to no core, and stood with one.
TEST(Sweep, GivesNoCoresOfUntimedBatches) {
  const std::vector<Record> records{
      make_record({.kind = "sweep", .scaling = "", .local_batch = 32}),
      golden::make_skipped({.kind = "sweep", .scaling = "", .local_batch = 1000}, "the data's end")};
  const Document document = build(records);
  const Table* table = find<Table>(document, "sweep");
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_EQ(table->rows[0][1].value, 1);
  EXPECT_EQ(table->rows[1][1].text, "-");
  EXPECT_THAT(table->rows[1][1].note, HasSubstr("the data's end"));
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
            HasSubstr(
                "(slower, one repeat); against them: slower compute (+50.1 ms a step), transfer that nothing "
                "hides (+40.1 ms a step)")));
  EXPECT_EQ(find<Table>(build({&slower, 1}), "same-cores"), nullptr);
}

TEST(SameCores, DecidesNothingBesideOtherPrograms) {
  auto threads = make_record({.kind = "sweep", .scaling = "", .local_batch = 128});
  threads.threads_per_worker = 2;
  threads.ranks[0].cores = {0, 1};
  auto slower = make_record({.scaling = "strong", .workers = 2, .local_batch = 64, .backward = 0.95});
  auto faster = make_record({.scaling = "strong", .workers = 2, .local_batch = 64, .backward = 0.4});
  slower.window.others_cores = 1.5;
  EXPECT_THAT(text_of({threads, slower}), HasSubstr("(not decided, one repeat, beside other programs)"));
  EXPECT_THAT(text_of({threads, faster}), HasSubstr("[1.46, 1.52] times the images/s (one repeat)."));
  threads.window.others_cores.reset();
  EXPECT_THAT(text_of({threads, faster}),
              HasSubstr("(not decided, one repeat, perhaps beside other programs)"));
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

}  // namespace
}  // namespace paceline::report
