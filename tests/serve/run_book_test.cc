#include "serve/run_book.h"

#include <gmock/gmock.h>

#include "../golden/records.h"
#include "measure/environment.h"
#include "runs_folder.h"
#include "serve/site.h"

namespace paceline::serve {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RunBookTest : public RunsFolder {
 protected:
  static std::vector<std::string> ids(const std::vector<serve::Run>& runs) {
    std::vector<std::string> all;
    for (const auto& run : runs) all.push_back(run.id);
    std::sort(all.begin(), all.end());
    return all;
  }
};

TEST_F(RunBookTest, FindsRunsAndLooksIntoNone) {
  ended("a");
  ended("deep/er/b");
  ended("a/trainings/cell");
  fs::create_directories(directory_ / "empty");
  fs::create_directory_symlink(directory_ / "a", directory_ / "link");
  RunBook book(directory_);
  EXPECT_THAT(ids(book.list()), ElementsAre("a", "deep/er/b"));
  EXPECT_THAT(ids(RunBook(directory_ / "a").list()), ElementsAre("."));
  EXPECT_TRUE(RunBook(directory_ / "empty").list().empty());
  EXPECT_TRUE(RunBook(directory_ / "nowhere").list().empty());
}

TEST_F(RunBookTest, TheStateIsThatOfTheLockThenOfTheEnd) {
  const auto folder = begun("a");
  RunBook book(directory_);
  EXPECT_EQ(book.list().front().state, RunState::interrupted);  // killed: neither lock nor end
  {
    const Lock lock(folder);
    EXPECT_EQ(book.list().front().state, RunState::running);
  }
  append("a", "{\"event\":\"end\",\"at\":1002,\"status\":\"failed\",\"reason\":\"a rank was lost\"}\n");
  EXPECT_EQ(book.list().front().state, RunState::failed);
  EXPECT_EQ(book.list().front().status.reason, "a rank was lost");
  append("a", "{\"event\":\"start\",\"at\":1003}\n{\"event\":\"end\",\"at\":1004,\"status\":\"complete\"}\n");
  EXPECT_EQ(book.list().front().state, RunState::complete);
  EXPECT_EQ(book.list().front().changed_at, 1004);
}

TEST_F(RunBookTest, ARunOfAnotherHostGoesOnWhileItIsHeardOf) {
  append("a",
         fmt::format("{{\"event\":\"start\",\"at\":{},\"host\":\"elsewhere\"}}\n", measure::unix_now() - 5));
  append("b", fmt::format("{{\"event\":\"start\",\"at\":{},\"host\":\"elsewhere\"}}\n",
                          measure::unix_now() - 500));
  const auto runs = RunBook(directory_).list();
  ASSERT_THAT(runs, ::testing::SizeIs(2));
  EXPECT_EQ(runs[0].id, "a");  // the last that changed
  EXPECT_EQ(runs[0].state, RunState::running);
  EXPECT_EQ(runs[1].state, RunState::interrupted);
}

TEST_F(RunBookTest, ReadsOnlyWhatIsNewAndAFileAnewThatBeginsAnew) {
  const auto folder = begun("a");
  RunBook book(directory_);
  EXPECT_EQ(book.list().front().status.updates_done, 10);
  append("a", "{\"event\":\"step\",\"at\":1005,\"update\":30,\"updates\":40}\n{\"event\":\"st");
  EXPECT_EQ(book.list().front().status.updates_done, 30);
  fs::remove(folder / measure::kEventsFile);
  append("a", "{\"event\":\"start\",\"at\":2000,\"updates\":7}\n");
  EXPECT_EQ(book.list().front().status.updates_done, 0);
  EXPECT_EQ(book.list().front().status.updates, 7);
}

TEST_F(RunBookTest, RunsOfBeforeEventsAreKnownByTheirRecords) {
  auto cell = golden::make_record({.workers = 2, .local_batch = 32});
  measure::write_record(directory_ / "study" / "records" / (cell.id + ".json"), cell);
  cell.id = "other", cell.status = "interrupted";
  measure::write_record(directory_ / "study" / "records" / "other.json", cell);
  auto training = golden::make_record({.kind = "train"});
  training.status = "failed", training.reason = "the loss is no longer finite";
  measure::write_record(directory_ / "train" / "record.json", training);
  std::ofstream(directory_ / "train" / "other.json") << "{}";
  auto runs = RunBook(directory_).list();
  std::sort(runs.begin(), runs.end(), [](const serve::Run& a, const serve::Run& b) { return a.id < b.id; });
  ASSERT_THAT(ids(runs), ElementsAre("study", "train"));
  EXPECT_EQ(runs[0].state, RunState::interrupted);
  EXPECT_EQ(progress_text(runs[0].status), "1 of 2 cells");
  EXPECT_THAT(best_text(runs[0].status), HasSubstr("images/s"));
  EXPECT_EQ(runs[1].state, RunState::failed);
  EXPECT_EQ(runs[1].status.reason, "the loss is no longer finite");
}

TEST_F(RunBookTest, Texts) {
  EXPECT_EQ(age(-3), "0 s");
  EXPECT_EQ(age(99), "99 s");
  EXPECT_EQ(age(600), "10 min");
  EXPECT_EQ(age(7200), "2 h");
  EXPECT_EQ(age(86400 * 3), "3 d");
  begun("a");
  EXPECT_EQ(progress_text(RunBook(directory_).list().front().status), "epoch 1, 10 of 40 updates");
}

TEST_F(RunBookTest, MetricsAreOfRunsInProgressAndEscaped) {
  const auto folder = begun("a\"b\\c");
  ended("old");
  RunBook book(directory_);
  auto text = metrics_text(book.list());
  EXPECT_THAT(text, HasSubstr("paceline_runs{state=\"running\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("paceline_runs{state=\"interrupted\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("paceline_loss")));
  const Lock lock(folder);
  text = metrics_text(book.list());
  EXPECT_THAT(
      text,
      HasSubstr(
          "# TYPE paceline_loss gauge\npaceline_loss{run=\"a\\\"b\\\\c\",kind=\"train\",model=\"m\"} 0.5\n"));
  EXPECT_THAT(text,
              HasSubstr("paceline_images_per_second{run=\"a\\\"b\\\\c\",kind=\"train\",model=\"m\"} 50\n"));
  EXPECT_THAT(text, HasSubstr("paceline_step{"));
  EXPECT_THAT(text, HasSubstr("paceline_epoch{"));
  EXPECT_THAT(text, HasSubstr("paceline_step_seconds{"));
  EXPECT_THAT(text, Not(HasSubstr("\"old\"")));
  EXPECT_TRUE(text.ends_with('\n'));
}

}  // namespace
}  // namespace paceline::serve
