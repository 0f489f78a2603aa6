/// What paceline_ddp.py writes: single steps for a prediction, a row for `check`. A file that is cut or
/// changed is refused in one sentence.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>

#include "table/import/files.h"
#include "table/import/fixtures.h"

namespace paceline::table {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DdpSteps : public ImportedFiles {
 protected:
  DdpRun read_run(const std::string& text) { return read_ddp_run(write("run.json", text)); }
};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST_F(DdpSteps, AreOfEachRank) {
  const auto run = read_run(fixtures::ddp_run(2));
  EXPECT_EQ(run.workers, 2);
  EXPECT_EQ(run.hosts, 1);
  EXPECT_THAT(run.steps, ElementsAre(3, 4, 5));
  EXPECT_THAT(run.bucket_bytes, ElementsAre(4000, 400));
  ASSERT_EQ(run.ranks.size(), 2U);
  const auto& rank = run.ranks[1];
  EXPECT_EQ(rank.rank, 1);
  EXPECT_EQ(rank.samples, 32);
  EXPECT_THAT(rank.step_s, ElementsAre(0.1, 0.11, 0.12));
  EXPECT_THAT(rank.data_s, ElementsAre(0.01, 0, 0.02));
  EXPECT_THAT(rank.exposed_s, ElementsAre(0.02, 0.021, 0.022));
  EXPECT_THAT(rank.late_s, ElementsAre(0.004, 0.005, 0.006));
  EXPECT_THAT(rank.ready_s, ElementsAre(ElementsAre(0.02, 0.021, 0.022), ElementsAre(0.04, 0.041, 0.042)));
  EXPECT_THAT(rank.end_s, ElementsAre(ElementsAre(0.04, 0.042, 0.044), ElementsAre(0.061, 0.063, 0.065)));
}

TEST_F(DdpSteps, AreARowOfNamedCells) {
  const auto table = read(fixtures::ddp_run(2));
  ASSERT_EQ(table.rows.size(), 1U);
  const auto& row = table.rows.front();
  EXPECT_EQ(row.value("workers"), 2);
  EXPECT_EQ(row.value("time_s"), 0.11);
  EXPECT_NEAR(row.number("time_s")->half_unit, 0.00005, 1e-12) << "the digits stay";
  EXPECT_EQ(row.settings.at("backend"), "gloo");
  EXPECT_THAT(table.notes, ElementsAre("the first 3 steps are warm-up and left out"));
}

TEST_F(DdpSteps, OfSeveralRunsAreRowsByWorkers) {
  const std::vector files{write("b.json", fixtures::ddp_run(2)), write("a.json", fixtures::ddp_run(1))};
  const auto tables = import_files(files, {});
  ASSERT_EQ(tables.size(), 1U);
  ASSERT_EQ(tables.front().rows.size(), 2U);
  EXPECT_EQ(tables.front().rows[0].text("run"), "n1");
  EXPECT_EQ(tables.front().rows[1].text("run"), "n2");
  EXPECT_THAT(tables.front().notes[1], HasSubstr("n1: the first 3 steps"));
}

TEST_F(DdpSteps, WithoutWaitingKnowTheRest) {
  auto text = fixtures::ddp_run(1);
  text = replaced(text, R"("late_s": [0.004, 0.005, 0.006], )", "");
  EXPECT_TRUE(read_run(text).ranks.front().late_s.empty());
}

TEST_F(DdpSteps, RefuseWhatNoRunHas) {
  const auto whole = fixtures::ddp_run(2);
  struct Case {
    std::string what, by, says;
  };
  for (const auto& [what, by, says] : std::vector<Case>{
           {R"("step_s": [0.1, 0.11, 0.12])", R"("step_s": [0.1, 0.11])",
            "'step_s' must be a list of 3 numbers"},
           {R"("step_s": [0.1,)", R"("step_s": [0,)", "each of 'step_s' must be a number above 0, but is 0"},
           {R"("data_s": [0.01,)", R"("data_s": [-0.01,)",
            "each of 'data_s' must be a number of at least 0, but is -0.01"},
           {R"("data_s": [0.01,)", R"("data_s": ["a",)", "must be a number of at least 0, but is \"a\""},
           {R"("end_s": [[)", R"("end_s": [[], [)", "'end_s' must be a list for each of 2 buckets"},
           {R"("ready_s": )", R"("ready": )",
            "'ready_s' must be a list for each of 2 buckets, but is missing"},
           {R"("rank": 1)", R"("rank": 2)", "rank 2 on host 0 is none of 2 workers on 1 host"},
           {R"("rank": 1)", R"("rank": 1.5)", "'rank' must be a whole number from 0 to 1000000, but is 1.5"},
           {R"("workers": 2, "hosts")", R"("workers": 0, "hosts")",
            "'workers' must be a whole number from 1"},
           {R"("bucket_bytes": [4000, 400])", R"("bucket_bytes": [])", "it has no buckets"},
           {R"("steps": [3, 4, 5])", R"("steps": [])", "it has no steps"},
           {R"("row": {)", R"("rows": {)", "it has no 'row'"},
           {R"("time_of": "step")", R"("time_of": "steps")", "time_of takes one of its words"},
           {R"("time_of": "step")", R"("when": "step")",
            "its row has 'when', but a table has no such column"},
       })
    EXPECT_THAT(error_of(replaced(whole, what, by)), HasSubstr(says));
}

/// A file without its end is never half a run.
TEST_F(DdpSteps, EveryTruncationIsOneSentence) {
  const auto whole = fixtures::ddp_run(2);
  ASSERT_EQ(error_of(whole), "none");
  for (std::size_t n = 0; n + 1 < whole.size(); ++n) {
    const auto error = error_of(whole.substr(0, n));
    EXPECT_NE(error, "none") << n;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_THAT(error, HasSubstr("log: "));
  }
}

TEST_F(DdpSteps, EveryFlipIsReadOrRefused) {
  std::mt19937 random(1);
  const auto whole = fixtures::ddp_run(2);
  for (int k = 0; k < 2000; ++k) {
    auto changed = whole;
    changed[random() % changed.size()] = static_cast<char>(random());
    try {
      for (const auto& rank : read_run(changed).ranks) {
        EXPECT_EQ(rank.step_s.size(), rank.exposed_s.size());
        EXPECT_GT(*std::ranges::min_element(rank.step_s), 0);
      }
    } catch (const base::Error&) {
    }
  }
}

}  // namespace
}  // namespace paceline::table
