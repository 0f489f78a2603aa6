// Bounds of --expect: how they are read, and what a figure that other programs may have changed can show.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "report/build.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using measure::Record;
using testing::HasSubstr;
using enum Expectation::Verdict;

/// The others' cores during a window: quiet, unknown, or disturbed.
constexpr double kQuiet = 0, kUnknown = -1, kBusy = 0.9;

void set_others(Record& record, double cores) {
  record.window.others_cores.reset();
  if (cores >= 0) record.window.others_cores = cores;
}

/// Three repeats of 1 and of 2 workers, 0.9 efficient, each beside others of its own.
std::vector<Record> pair_of(double beside_one, double beside_two) {
  std::vector<Record> records;
  for (int repeat = 0; repeat < 3; ++repeat)
    for (const int workers : {1, 2}) {
      const double slow = (workers == 1 ? 0.9 : 1.0) * (1 + 0.002 * repeat);
      records.push_back(make_record({.workers = workers,
                                     .repeat = repeat,
                                     .forward = 0.4 * slow,
                                     .backward = 0.8 * slow,
                                     .update = 0,
                                     .data_wait = 0,
                                     .copy = 0,
                                     .other = 0}));
      set_others(records.back(), workers == 1 ? beside_one : beside_two);
    }
  return records;
}

Expectation judged_by(const std::vector<Record>& records, const std::string& bound) {
  const auto document = build(records, {.bounds = {read_bound(bound)}});
  EXPECT_EQ(document.expectations.size(), 1u);
  return document.expectations.front();
}

std::string refusal(const std::string& bound) {
  try {
    (void)read_bound(bound);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST(Expect, ReadsFigureComparisonAndNumber) {
  const auto bound = read_bound(" efficiency >= 90% ");
  EXPECT_EQ(bound.text, "efficiency >= 90%");
  EXPECT_DOUBLE_EQ(bound.value, 0.9);
  EXPECT_EQ(read_bound("step_s<0.25").is, Bound::Is::below);
  EXPECT_EQ(read_bound("step_s<=0.25").is, Bound::Is::at_most);
  EXPECT_EQ(read_bound("step_s>0.25").is, Bound::Is::above);
}

TEST(Expect, NamesAllFiguresForAnUnknownOne) {
  EXPECT_THAT(refusal("eficiency>=0.9"),
              HasSubstr("no figure with 'eficiency'; figures are throughput (images/s), "
                        "step_s, epoch_s, efficiency, speedup, compute"));
  for (const char* bad :
       {"", "efficiency", "efficiency=0.9", "efficiency==0.9", ">=0.9", "efficiency>=", "efficiency>=x",
        "efficiency=>0.9", "efficiency><0.9", "efficiency>=0.9%%", "throughput>=90%", "efficiency>=nan"})
    EXPECT_NE(refusal(bad), "") << bad;
}

// The interval, not the median, passes or fails: else the same commit passes one day and fails the next.
TEST(Expect, PassesAndFailsByTheWholeInterval) {
  const auto records = pair_of(kQuiet, kQuiet);
  EXPECT_EQ(judged_by(records, "efficiency>=0.8").verdict, pass);
  EXPECT_EQ(judged_by(records, "efficiency>=0.95").verdict, fail);
  EXPECT_EQ(judged_by(records, "efficiency<0.95").verdict, pass);
  EXPECT_EQ(judged_by(records, "efficiency<0.8").verdict, fail);
  const auto near = judged_by(records, "efficiency>=0.9");
  EXPECT_EQ(near.verdict, not_decided);
  EXPECT_THAT(near.why, HasSubstr("The interval holds the bound"));
  EXPECT_NEAR(near.value.value(), 0.9, 0.01);
  EXPECT_LT(near.low.value(), 0.9);
  EXPECT_GT(near.high.value(), 0.9);
}

// Other programs only take time: a rate beside them is a lower bound, a time an upper one.
TEST(Expect, ConcludesToTheKnownSideOnly) {
  const struct {
    double beside_one, beside_two;
    const char* bound;
    Expectation::Verdict verdict;
  } cases[] = {
      {kQuiet, kBusy, "throughput>=100", pass},  // at least 213
      {kQuiet, kBusy, "throughput>=1000", not_decided},
      {kQuiet, kBusy, "throughput<=1000", not_decided},
      {kQuiet, kBusy, "throughput<=100", fail},
      {kQuiet, kBusy, "step_s<=2", pass},
      {kQuiet, kBusy, "step_s<=0.5", not_decided},
      {kQuiet, kBusy, "step_s>=2", fail},
      {kQuiet, kBusy, "efficiency>=0.8", pass},  // two workers were slowed
      {kQuiet, kBusy, "efficiency>=0.95", not_decided},
      {kBusy, kQuiet, "efficiency>=0.8", not_decided},  // one worker was slowed: it is at most this
      {kBusy, kQuiet, "efficiency>=0.95", fail},
      {kBusy, kQuiet, "efficiency<=0.95", pass},
      {kQuiet, kUnknown, "throughput>=100", pass},
      {kQuiet, kUnknown, "throughput>=1000", not_decided},
      {kUnknown, kQuiet, "efficiency>=0.8", not_decided},
      {kUnknown, kUnknown, "efficiency>=0.1", not_decided},
      {kQuiet, kUnknown, "compute>=0.1", not_decided},
      {kQuiet, kQuiet, "compute>=0.5", pass},
  };
  for (const auto& one : cases) {
    const auto result = judged_by(pair_of(one.beside_one, one.beside_two), one.bound);
    EXPECT_EQ(result.verdict, one.verdict)
        << one.bound << " beside " << one.beside_one << ", " << one.beside_two << ": " << result.why;
    const bool is_quiet = one.beside_one == kQuiet && one.beside_two == kQuiet;
    EXPECT_EQ(result.mark.empty(), is_quiet) << one.bound << ": " << result.mark;
  }
  EXPECT_THAT(judged_by(pair_of(kQuiet, kBusy), "throughput>=100").why,
              HasSubstr("Other programs worked meanwhile: it is at least this."));
  EXPECT_THAT(judged_by(pair_of(kQuiet, kUnknown), "throughput>=1000").why,
              HasSubstr("may have worked meanwhile"));
}

TEST(Expect, SaysWhatWasNotMeasuredAndWhy) {
  const auto records = pair_of(kQuiet, kQuiet);
  const auto accuracy = judged_by(records, "accuracy>=0.9");
  EXPECT_EQ(accuracy.verdict, not_measured);
  EXPECT_EQ(accuracy.figure, "");
  EXPECT_THAT(accuracy.why, HasSubstr("trained no epoch"));
  EXPECT_EQ(judged_by({make_record({})}, "efficiency>=0.9").verdict, not_measured);
  EXPECT_EQ(judged_by({make_record({})}, "busbw>=1").verdict, not_measured);
  EXPECT_EQ(judged_by({}, "throughput>=1").verdict, not_measured);
}

// No other program changes a bit of a training.
TEST(Expect, JudgesAccuracyWhateverRanBesideIt) {
  auto records = study();
  for (auto& record : records) set_others(record, kBusy);
  EXPECT_EQ(judged_by(records, "accuracy>=0.6").verdict, pass);
  EXPECT_EQ(judged_by(records, "accuracy>=0.8").verdict, fail);
}

TEST(Expect, ShowsTheFiguresOfTheAnswers) {
  const auto document = build(
      study(), {.bounds = {read_bound("throughput>0"), read_bound("busbw>0"), read_bound("accuracy>0")}});
  const auto value = [&](const std::string& id) {
    for (const auto* answer : all<Answer>(document))
      if (answer->id == id) return answer->value;
    return std::optional<double>();
  };
  EXPECT_EQ(document.expectations[0].value, value("best"));
  EXPECT_EQ(document.expectations[1].value, value("network"));
  EXPECT_EQ(document.expectations[2].value, value("accuracy"));
}

TEST(Expect, StandsInEveryFormat) {
  const auto document = build(pair_of(kQuiet, kQuiet), {.bounds = {read_bound("efficiency>=0.95")}});
  for (const auto& text :
       {to_markdown(document), to_json(document), to_summary(document),
        to_csv(as_table(document.expectations)), lines_of_expectations(document.expectations).front()}) {
    for (const char* part : {"efficiency", "fail", "90.0 % ["})
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in " << text.substr(0, 40);
  }
}

}  // namespace
}  // namespace paceline::report
