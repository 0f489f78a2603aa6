#include "report/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "golden/records.h"
#include "report/golden.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using golden::make_skipped;
using golden::make_training;
using measure::Record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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
  EXPECT_EQ(bars, 3);
}

TEST(Build, SaysOnTopThatDataIsSynthetic) {
  auto record = make_record({});
  record.data.synthetic = true;
  EXPECT_THAT(to_terminal(build({&record, 1})), HasSubstr("The data is synthetic"));
  record.data.synthetic = false;
  EXPECT_THAT(to_terminal(build({&record, 1})), Not(HasSubstr("The data is synthetic")));
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
    EXPECT_EQ(table->rows[1].back().text, "loader-threads 1, version 0.2.0");
    EXPECT_EQ(table->rows[2].back().text, "loader-threads 4, version 0.1.0 (abc1234)");
  }
  const auto alike = study();
  const Document usual = build(alike);
  for (const Table* table : all<Table>(usual))
    EXPECT_NE(table->columns.back().label, "differs in") << table->id;
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

/// The study once more by another version.
std::vector<Record> study_of_two_versions() {
  auto records = study();
  for (Record record : study()) {
    record.environment.version = "0.2.0";
    records.push_back(std::move(record));
  }
  return records;
}

// Two versions at one place were one line that went straight up there; and a version's speedup was over the
// other's baseline.
TEST(Build, DrawsALineForEachVersion) {
  const auto records = study_of_two_versions();
  const Document document = build(records);
  for (const Plot* plot : all<Plot>(document)) {
    std::set<std::string> names(plot->categories.begin(), plot->categories.end());
    EXPECT_EQ(names.size(), plot->categories.size()) << plot->id;
    if (plot->kind != PlotKind::line) continue;
    names.clear();
    for (const Series& series : plot->series) {
      EXPECT_TRUE(names.insert(series.name).second) << plot->id << ": " << series.name;
      std::set<double> places;
      for (const Point& point : series.points)
        EXPECT_TRUE(places.insert(point.x).second) << plot->id << ": " << series.name << " at " << point.x;
    }
  }
  const Plot* plot = find<Plot>(document, "weak-speedup");
  ASSERT_EQ(plot->series.size(), 5U);
  EXPECT_EQ(plot->series[1].name, "local batch 32, version 0.1.0 (abc1234)");
  EXPECT_EQ(plot->series[2].name, "local batch 32, version 0.2.0");
  const std::string text = text_of(records);
  EXPECT_THAT(text, HasSubstr("- Baseline of version 0.2.0: 1 worker without any communicator."));
  EXPECT_THAT(text, HasSubstr("baseline, version 0.2.0"));
  EXPECT_THAT(text, HasSubstr("4 workers are slower than 2 at global batch 32, version 0.2.0: 111.5"));
}

TEST(Build, SaysThatSeveralHostsMeasured) {
  Record other = make_record({.workers = 2});
  other.environment.host = "node2";
  EXPECT_THAT(text_of({make_record({}), other}), HasSubstr("Measured on 2 hosts (bench; node2)"));
  EXPECT_THAT(text_of({make_record({}), make_record({.workers = 2})}), Not(HasSubstr("hosts (")));
}

TEST(Build, AnswersNothingFromARecordThatContradictsItself) {
  Record edited = make_record({.workers = 2});
  edited.workers = 4;
  const auto text = text_of({make_record({}), edited});
  EXPECT_THAT(text, HasSubstr("are left out of every answer and comparison"));
  EXPECT_THAT(text, HasSubstr("left out: its record contradicts itself"));
  EXPECT_THAT(text, Not(HasSubstr("4 workers (")));
}

TEST(Build, ShowsOnTopWhatWasGivenAndNotCounted) {
  const std::vector<Record> records{make_record({})};
  const Document document = build(records, {.remarks = {"Left out: a copy."}});
  ASSERT_FALSE(document.warnings.empty());
  EXPECT_EQ(document.warnings.front(), "Left out: a copy.");
}

TEST(Build, WritesAWideIntervalWithoutAPowerOfTen) {
  // Steps that take from a third to four times as long: others were at work.
  std::vector<Record> records;
  for (int repeat = 0; repeat < 3; ++repeat)
    records.push_back(make_record(
        {.kind = "sweep", .scaling = "", .repeat = repeat, .jitter = {1, 0.2, 4, 0.2, 4, 1, 0.2, 4}}));
  const Document document = build(records);
  EXPECT_THAT(document.trust, testing::ContainsRegex("widest ±[1-9][0-9][0-9] %"));
  EXPECT_THAT(to_terminal(document, 110), HasSubstr(document.trust));
  EXPECT_THAT(to_json(document), HasSubstr(document.trust));
}

TEST(Build, CountsRecordsWithoutAChecksum) {
  std::vector<Record> records{make_record({.repeat = 0}), make_record({.repeat = 1}),
                              make_record({.workers = 2})};
  EXPECT_THAT(build(records).trust, Not(HasSubstr("checksum")));
  records[1].has_checksum = false;
  const Document document = build(records);
  EXPECT_THAT(document.trust, testing::EndsWith("; 1 of 3 records carry no checksum"));
  EXPECT_THAT(to_markdown(document), HasSubstr(document.trust));
  EXPECT_THAT(to_json(document), HasSubstr(document.trust));
  EXPECT_EQ(explain(records).trust, "1 of 3 records carry no checksum");
}

TEST(Build, SaysWhichIntervalsAreOfOneRun) {
  const std::vector<Record> records{make_record({.repeat = 0}), make_record({.repeat = 1}),
                                    make_record({.workers = 2})};
  EXPECT_THAT(text_of(records), HasSubstr("within one run; another run may lie outside it: b 128, N 2."));
  EXPECT_THAT(text_of(study()), Not(HasSubstr("within one run")));
}

// docs/comparing.md promised it of each table; the footnote on single repeats left such cells out.
TEST(Build, SaysOfASingleTimedStepThatItIsOne) {
  const std::vector<Record> records{make_record({.jitter = {1}}), make_record({.workers = 2, .jitter = {1}}),
                                    make_record({.kind = "sweep", .local_batch = 8, .jitter = {1}})};
  const Document document = build(records);
  for (const char* id : {"scale-weak-time", "scale-weak-ledger", "sweep"}) {
    const Table* table = find<Table>(document, id);
    ASSERT_NE(table, nullptr) << id;
    for (const auto& row : table->rows)
      EXPECT_TRUE(std::any_of(row.begin(), row.end(), [](const TableCell& cell) {
        return cell.mark.find("n=1") != std::string::npos;
      })) << id;
    EXPECT_THAT(table->footnotes, testing::Contains(HasSubstr("n=1: a single step was timed"))) << id;
  }
  EXPECT_THAT(find<Table>(document, "scale-weak-time")->footnotes,
              testing::Contains(HasSubstr("One repeat of a single step: another run may give another time: "
                                          "b 128, N 1; b 128, N 2.")));
}

TEST(Build, ShowsDifferencesOfAccuraciesInPoints) {
  const auto records = study();
  const Document document = build(records);
  const Table* table = find<Table>(document, "converge");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->columns[11].unit, "points");
  EXPECT_NEAR(*table->rows[1][11].value, -27.14, 1e-9);  // 43.08 - 70.22
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

TEST(Build, SaysOfAStoppedStudyThatItIsPartial) {
  const auto not_begun = [](const golden::Run& run) {
    auto record = make_skipped(run, "not begun when the study was stopped");
    record.status = "interrupted";
    return record;
  };
  auto converge = make_training({});
  converge.status = "interrupted";
  converge.reason = "not begun when the study was stopped";
  converge.ranks.clear();
  converge.epochs.clear();
  const std::vector<Record> records{make_record({.kind = "sweep", .local_batch = 8}),
                                    make_record({.kind = "sweep", .local_batch = 16}),
                                    not_begun({.kind = "sweep", .local_batch = 32}),
                                    not_begun({}),
                                    not_begun({.workers = 2}),
                                    converge};
  EXPECT_THAT(build(records).warnings,
              testing::Contains(HasSubstr("PARTIAL: the study was stopped with 4 of 6 cells not measured")));
  EXPECT_THAT(build(records).trust, testing::StartsWith("stopped study: 4 of 6 runs not measured"));
  const std::string text = text_of(records);
  EXPECT_THAT(text, HasSubstr("Finish the study"));
  EXPECT_THAT(text_of(study()), Not(HasSubstr("PARTIAL")));
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
  const std::string text = text_of(records);
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

/// A baseline, a large batch, and two remedies of it.
std::vector<Record> remedies(double first, double second) {
  std::vector<Record> records{
      make_training({.accuracies = {0.70}}),
      make_training({.variant = "large batch", .workers = 2, .global_batch = 2048, .accuracies = {0.50}})};
  for (const auto& [variant, accuracy] :
       {std::pair{"+ linear, warm-up", first}, std::pair{"+ sync BN", second}}) {
    records.push_back(make_training({.variant = variant,
                                     .workers = 2,
                                     .global_batch = 2048,
                                     .factor = 16,
                                     .rule = "linear",
                                     .accuracies = {accuracy}}));
    records.back().settings["warmup"] = "1";
  }
  records.back().settings["bn"] = "sync";
  return records;
}

// "'+ sync BN' gives back most: 26.6 %", of one seed, where another gave 18.4 %.
TEST(Build, PraisesNoRemedyThatIsNotToldApartFromTheNext) {
  EXPECT_THAT(text_of(remedies(0.550, 0.553)),
              AllOf(HasSubstr("'+ sync BN' and '+ linear, warm-up' give back most, 26.5 % and 25.0 % of the "
                              "loss: not told apart"),
                    Not(HasSubstr("gives back most"))));
  EXPECT_THAT(text_of(remedies(0.55, 0.60)),
              HasSubstr("'+ sync BN' gives back most: 50.0 % of the loss, against 25.0 % of '+ linear, "
                        "warm-up' (beyond the test set's error; one seed)"));
  EXPECT_THAT(text_of(remedies(0.55, 0.561)), HasSubstr("(weak evidence; one seed)"));
}

TEST(Build, SaysWhatEveryRemedyChanges) {
  const auto records = remedies(0.55, 0.60);
  const Document document = build(records);
  const Table* table = find<Table>(document, "converge");
  ASSERT_NE(table, nullptr);
  EXPECT_THAT(table->footnotes,
              testing::Contains("+ sync BN changes against the baseline, beside its batch: bn sync, scale-lr "
                                "linear, warmup 1."));
}

}  // namespace
}  // namespace paceline::report
