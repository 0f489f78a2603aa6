#include "report/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using golden::make_training;
using measure::Record;
using testing::HasSubstr;

/// One and two workers, three repeats 1 % apart; the whole step takes `slower` times as long.
std::vector<Record> study_at(double slower = 1) {
  std::vector<Record> records;
  for (const int workers : {1, 2})
    for (int repeat = 0; repeat < 3; ++repeat) {
      const double level = slower * (1 + 0.005 * (repeat - 1));
      records.push_back(make_record({.workers = workers,
                                     .repeat = repeat,
                                     .forward = 0.4 * level,
                                     .backward = 0.8 * level,
                                     .update = 0,
                                     .data_wait = 0,
                                     .copy = 0,
                                     .other = 0}));
    }
  return records;
}

/// The report, and the comparison that it was made of.
Document made(const std::vector<Record>& a, const std::vector<Record>& b) {
  return build_comparison(analysis::compare_runs(a, b),
                          {.a = "before", .b = "after", .b_path = "runs/after"});
}

const Comparison& times_of(const Document& document) {
  for (const auto& section : document.sections)
    for (const auto& block : section.blocks)
      if (const auto* found = std::get_if<Comparison>(&block)) return *found;
  throw std::logic_error("no comparison");
}

std::string texts_of(const Document& document) {
  std::string text;
  for (const auto& warning : document.warnings) text += warning + "\n";
  for (const auto& section : document.sections)
    for (const auto& block : section.blocks)
      if (const auto* paragraph = std::get_if<Paragraph>(&block)) text += paragraph->text + "\n";
  return text;
}

TEST(ComparisonReport, ItsHeadlineIsAboutTheFastestCellOfA) {
  const auto a = study_at(), b = study_at(0.8);
  const auto document = made(a, b);
  EXPECT_THAT(times_of(document).finding, HasSubstr("B is 25 % faster ["));
  EXPECT_THAT(times_of(document).finding,
              HasSubstr("at the best cell of A, scale weak, 2 workers, batch 128"));
  EXPECT_THAT(texts_of(document), HasSubstr("2 cells on both sides: 2 improved."));
}

TEST(ComparisonReport, SaysHowManyRecordsCarryNoChecksum) {
  auto a = study_at(), b = study_at();
  EXPECT_EQ(made(a, b).trust, "");
  a[1].has_checksum = b[0].has_checksum = b[5].has_checksum = false;
  EXPECT_EQ(made(a, b).trust, "3 of 12 records carry no checksum");
}

TEST(ComparisonReport, SaysNoChangeWithTheInterval) {
  const auto records = study_at();
  EXPECT_THAT(times_of(made(records, records)).finding,
              HasSubstr("No change at the best cell of A, scale weak, 2 workers, batch 128: 1.00 [0.9"));
}

TEST(ComparisonReport, SaysOfAWideIntervalThatItDecidesNothing) {
  // Repeats that lie far apart: their ratio holds 1 and twice 1.
  const auto shaken = [](double slower) {
    std::vector<Record> records;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const double level = slower * (1 + 0.5 * repeat);
      records.push_back(
          make_record({.workers = 2, .repeat = repeat, .forward = 0.4 * level, .backward = 0.8 * level}));
    }
    return records;
  };
  EXPECT_THAT(times_of(made(shaken(1), shaken(1.2))).finding,
              HasSubstr("Not decided at the best cell of A, scale weak, 2 workers, batch 128: "));
  const auto document = made(shaken(1), shaken(1.2));
  for (const auto& row : times_of(document).rows) EXPECT_FALSE(row.ratio) << "[0.1, 16] is no figure";
}

TEST(ComparisonReport, NamesAnotherBestCell) {
  const auto a = study_at();
  auto b = study_at();
  b.push_back(make_record({.workers = 2, .local_batch = 512}));  // four times the images in the same time
  const auto text = texts_of(made(a, b));
  EXPECT_THAT(text, HasSubstr("B's best cell is another: scale weak, 2 workers, batch 512"));
  EXPECT_THAT(text, HasSubstr("1 on one side only"));
}

TEST(ComparisonReport, HasARowForEachPairTheSlowestFirstAndTheRefusals) {
  const auto a = study_at();
  auto b = study_at(1.3);
  for (auto& record : b)
    if (record.workers == 1) record.settings["augment"] = "false";
  const Document document = made(a, b);
  const auto& block = times_of(document);
  ASSERT_EQ(block.rows.size(), 2U);
  EXPECT_EQ(block.rows[0].word, Comparison::Word::regressed);
  EXPECT_NEAR(*block.rows[0].ratio, 1 / 1.3, 1e-9);
  EXPECT_LT(*block.rows[0].low, *block.rows[0].ratio);
  EXPECT_EQ(block.rows[1].word, Comparison::Word::not_compared);
  EXPECT_THAT(block.rows[1].why, HasSubstr("--augment"));
}

TEST(ComparisonReport, HasAccuraciesInATableOfTheirOwn) {
  const std::vector<Record> a{make_training({.accuracies = {0.4, 0.7}}),
                              make_training({.seed = 1, .accuracies = {0.4, 0.71}})};
  const std::vector<Record> b{make_training({.accuracies = {0.4, 0.5}}),
                              make_training({.seed = 1, .accuracies = {0.4, 0.51}})};
  const auto document = made(a, b);
  const Table* table = nullptr;
  for (const auto& section : document.sections)
    for (const auto& block : section.blocks)
      if (const auto* found = std::get_if<Table>(&block); found != nullptr && found->id == "compare-accuracy")
        table = found;
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->rows.size(), 1U);
  EXPECT_EQ(table->rows[0].back().text, "regressed");
  EXPECT_THAT(table->rows[0][3].text, HasSubstr("-20.0 ±"));
}

TEST(ComparisonReport, DrawsBothInOneFigure) {
  const auto document = made(study_at(), study_at(0.8));
  EXPECT_EQ(document.title, "Paceline: after against before");
  const auto* hero = find<Figure>(document, "hero");
  ASSERT_NE(hero, nullptr);
  std::vector<std::string> names;
  for (const auto& series : hero->views.front().series) names.push_back(series.name);
  EXPECT_THAT(names, testing::ElementsAre("before: 2 workers, a core each", "after: 2 workers, a core each",
                                          "before: 1 worker, 1 core", "after: 1 worker, 1 core"));
}

TEST(ComparisonReport, MarksWhatMayBeDisturbed) {
  auto b = study_at();
  for (auto& record : b) record.window.others_cores.reset();
  const auto document = made(study_at(), b);
  for (const auto& row : times_of(document).rows) {
    EXPECT_EQ(row.mark, "maybe disturbed");
    EXPECT_EQ(row.after.front(), '~');
  }
  EXPECT_EQ(all<Answer>(document).front()->certainty, Certainty::careful);
}

TEST(ComparisonReport, HasNoRatioWithoutComparison) {
  auto b = study_at();
  for (auto& record : b) record.settings["augment"] = "false";
  const auto document = made(study_at(), b);
  for (const auto& row : times_of(document).rows) EXPECT_FALSE(row.ratio) << row.name;
  EXPECT_EQ(all<Answer>(document).front()->certainty, Certainty::not_measured);
  ASSERT_FALSE(all<Next>(document).empty());
}

TEST(ComparisonReport, SaysThatNothingIsCompared) {
  const auto a = study_at();
  const std::vector<Record> other{make_record({.workers = 4, .local_batch = 32})};
  EXPECT_THAT(texts_of(made(a, other)), HasSubstr("Nothing is compared: no cell was measured on both sides"));
}

}  // namespace
}  // namespace paceline::report
