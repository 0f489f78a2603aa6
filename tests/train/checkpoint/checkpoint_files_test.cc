// Which files a run keeps and removes, and what becomes of those that a disk refuses.

#include "train/checkpoint/checkpoint_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

#include "base/error.h"
#include "data/prefetch.h"
#include "train/checkpoint/checkpoint_header.h"
#include "train/fixture.h"
#include "train/some_arrays.h"

namespace paceline::train {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// A checkpoints of a job in which nothing is computed.
class Keeper : public TrainingTest {
 protected:
  Keeper() {
    options_.out = directory_ / "o";
    fs::create_directory(options_.out);
    options_.keep_checkpoints = 2;
  }
  static TrainingState suspect(TrainingState standing) {
    standing.guard.above = 1;
    return standing;
  }
  /// A checkpoint that is confirmed at once.
  void keep(CheckpointFiles& checkpoints, const TrainingState& standing) const {
    checkpoints.checkpoint(some_.arrays(), standing);
    checkpoints.confirm(standing.counters.update);
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(options_.out))
      if (!entry.is_symlink()) names.push_back(entry.path().filename().string());
    return names;
  }
  static std::string named(std::int64_t update) { return checkpoint_path({}, update).string(); }
  static std::string best_named(std::int64_t update) { return best_checkpoint_path({}, update).string(); }
  [[nodiscard]] std::string link(const char* name) const {
    const auto path = options_.out / name;
    return fs::is_symlink(path) ? fs::read_symlink(path).string() : "none";
  }

  SomeArrays some_;
  Options options_;
  Resolved resolved_;
  data::Source source_;
  Backend backend_;
  Progress progress_;
  RunCounts counts_;
  EvaluationLog evaluations_{{}, {}, 0};
  UpdateCount update_count_{""};
  data::CountedDataset test_reads_{nullptr};
  data::LoaderPool pool_;
  Job job_{.options = options_,
           .resolved = resolved_,
           .graph = some_.graph,
           .source = source_,
           .sampler = {0, 0},
           .backend = backend_,
           .progress = progress_,
           .stop = {},
           .resume = {},
           .last_epoch = {},
           .cores = {},
           .counts = counts_,
           .update_count = update_count_,
           .test_reads = test_reads_,
           .pool = pool_,
           .keep = {},
           .evaluations = evaluations_};
};

TEST_F(Keeper, TheLastOnesStayWithALinkToTheNewest) {
  CheckpointFiles checkpoints(job_);
  for (const std::int64_t update : {3, 6, 9, 12}) {
    keep(checkpoints, standing_at(update));
    EXPECT_TRUE(checkpoints.has(update));
    EXPECT_FALSE(checkpoints.has(update - 3)) << "which is not the last one";
    EXPECT_EQ(link(kLatestLink), named(update));
    EXPECT_EQ(number_in(open_checkpoint(options_.out / kLatestLink), "update"), update);
  }
  EXPECT_THAT(files(), UnorderedElementsAre(named(9), named(12)));
  const auto news = checkpoints.take_news();
  EXPECT_EQ(news.events.size(), 4u);
  EXPECT_THAT(news.sentences, IsEmpty());
  EXPECT_THAT(checkpoints.take_news().events, IsEmpty()) << "told once";
}

TEST_F(Keeper, OlderOnesStayUntilTheNewestIsConfirmed) {
  CheckpointFiles checkpoints(job_);
  for (const std::int64_t update : {3, 6, 9}) checkpoints.checkpoint(some_.arrays(), standing_at(update));
  EXPECT_THAT(files(), UnorderedElementsAre(named(3), named(6), named(9)));
  checkpoints.discard(6);
  EXPECT_TRUE(checkpoints.has(9)) << "6 is not the last one";
  checkpoints.discard(9);
  EXPECT_THAT(files(), UnorderedElementsAre(named(3), named(6)));
  EXPECT_EQ(link(kLatestLink), named(6));
  checkpoints.discard(6);
  checkpoints.discard(3);
  EXPECT_THAT(files(), IsEmpty());
  EXPECT_EQ(link(kLatestLink), "none");
}

/// To the newest good one a rollback would go, however old it is.
TEST_F(Keeper, TheNewestGoodOneStaysBesideTheLastOnes) {
  CheckpointFiles checkpoints(job_);
  EXPECT_FALSE(checkpoints.has_good());
  keep(checkpoints, standing_at(3));
  keep(checkpoints, standing_at(6));
  for (const std::int64_t update : {9, 12, 15}) keep(checkpoints, suspect(standing_at(update)));
  EXPECT_THAT(files(), UnorderedElementsAre(named(6), named(12), named(15)));
  EXPECT_EQ(checkpoints.good_before(100), options_.out / named(6));
  EXPECT_EQ(checkpoints.good_before(6), "") << "of fewer updates";
  EXPECT_TRUE(checkpoints.has_good());
  // What is not known to be good yet does not let the one before go.
  checkpoints.checkpoint(some_.arrays(), standing_at(18));
  checkpoints.confirm(15);
  EXPECT_THAT(files(), UnorderedElementsAre(named(6), named(15), named(18)));
  checkpoints.confirm(18);
  EXPECT_THAT(files(), UnorderedElementsAre(named(15), named(18)));
}

TEST_F(Keeper, ABestFileStaysAsLongAsACheckpointNeedsIt) {
  CheckpointFiles checkpoints(job_);
  checkpoints.best(some_.arrays(), standing_at(6, 6));
  keep(checkpoints, standing_at(6, 6));
  keep(checkpoints, standing_at(12, 6));
  EXPECT_EQ(link(kBestLink), best_named(6));
  checkpoints.best(some_.arrays(), standing_at(18, 18));
  keep(checkpoints, standing_at(18, 18));
  EXPECT_EQ(link(kBestLink), best_named(18));
  EXPECT_THAT(files(), UnorderedElementsAre(named(12), named(18), best_named(6), best_named(18)))
      << "a resume from 12 needs the first";
  keep(checkpoints, standing_at(24, 18));
  EXPECT_THAT(files(), UnorderedElementsAre(named(18), named(24), best_named(18)));
}

TEST_F(Keeper, GoingBackRemovesWhatIsLater) {
  CheckpointFiles checkpoints(job_);
  options_.keep_checkpoints = 10;
  checkpoints.best(some_.arrays(), standing_at(6, 6));
  keep(checkpoints, standing_at(6, 6));
  keep(checkpoints, standing_at(12, 6));
  checkpoints.best(some_.arrays(), standing_at(18, 18));
  keep(checkpoints, standing_at(18, 18));
  checkpoints.go_back(12, 6);
  EXPECT_THAT(files(), UnorderedElementsAre(named(6), named(12), best_named(6)));
  EXPECT_EQ(link(kLatestLink), named(12));
  EXPECT_EQ(link(kBestLink), best_named(6));
  EXPECT_TRUE(checkpoints.has(12));
  checkpoints.go_back(6, 0);
  EXPECT_EQ(link(kBestLink), "none");
}

/// A directory in the place of a file stands in for a disk that refuses it for good.
TEST_F(Keeper, WhatCannotBeWrittenIsSaidAndCountedUntilItCan) {
  CheckpointFiles checkpoints(job_);
  keep(checkpoints, standing_at(3));
  fs::create_directories(options_.out / named(6) / "in the way");
  checkpoints.record({});  // a round of files begins
  keep(checkpoints, standing_at(6));
  keep(checkpoints, standing_at(6));
  EXPECT_THAT(checkpoints.take_news().sentences,
              Contains(AllOf(HasSubstr("the checkpoint of update 6 is not kept"), HasSubstr(named(6)),
                             HasSubstr("the training goes on"))));
  EXPECT_EQ(checkpoints.not_written(), 1) << "the same file twice";
  EXPECT_THAT(checkpoints.last_failure(), HasSubstr(named(6)));
  EXPECT_TRUE(checkpoints.has(3)) << "the last one is the one before";
  EXPECT_EQ(link(kLatestLink), named(3));
  fs::remove_all(options_.out / named(6));
  checkpoints.record({});
  keep(checkpoints, standing_at(6));
  EXPECT_EQ(checkpoints.not_written(), 0);
  EXPECT_EQ(checkpoints.last_failure(), "");
  EXPECT_EQ(link(kLatestLink), named(6));
}

/// A disk that is full for a moment: the write is tried again, and nothing is lost or said.
TEST_F(Keeper, AWriteThatMaySucceedLaterIsTriedAgain) {
  int tries = 0;
  job_.keep = [&](const std::vector<measure::EpochRecord>&) {
    if (++tries == 1) throw base::WriteError("record.json: cannot be written", ENOSPC);
  };
  CheckpointFiles checkpoints(job_);
  checkpoints.record({});
  EXPECT_EQ(tries, 2);
  EXPECT_THAT(checkpoints.take_news().sentences, IsEmpty());
  EXPECT_EQ(checkpoints.not_written(), 0);
  job_.keep = [&](const std::vector<measure::EpochRecord>&) {
    ++tries;
    throw base::WriteError("record.json: cannot be written", EROFS);
  };
  checkpoints.record({});
  EXPECT_EQ(tries, 3) << "a read-only file system stays one";
  EXPECT_THAT(checkpoints.take_news().sentences, ElementsAre(HasSubstr("the record is not kept")));
}

TEST_F(Keeper, AResumeInPlaceMayRemoveWhatItWentOnFromAndNothingElse) {
  const auto write = [&](std::int64_t update) {
    write_checkpoint(options_.out / named(update), some_.arrays(), options_, resolved_, standing_at(update));
  };
  write(3);
  write(6);
  options_.resume = options_.out;
  CheckpointFiles checkpoints(job_);
  checkpoints.resumed_from(resume_point_of(options_.out / named(6)));
  EXPECT_TRUE(checkpoints.has(6));
  keep(checkpoints, standing_at(9));
  EXPECT_THAT(files(), UnorderedElementsAre(named(3), named(6), named(9)));
  keep(checkpoints, standing_at(12));
  EXPECT_THAT(files(), UnorderedElementsAre(named(3), named(9), named(12))) << "3 was another run's";
}

TEST_F(Keeper, AResumeForARollbackTakesTheOlderOnesAsWell) {
  options_.on_nan = OnNan::rollback;
  for (const std::int64_t update : {3, 6, 9})
    write_checkpoint(options_.out / named(update), some_.arrays(), options_, resolved_,
                     update == 6 ? suspect(standing_at(6)) : standing_at(update));
  base::write_file(options_.out / named(4), std::string_view("damaged"));
  options_.resume = options_.out / named(9);
  CheckpointFiles checkpoints(job_);
  checkpoints.resumed_from(resume_point_of(options_.resume));
  EXPECT_EQ(checkpoints.good_before(9), options_.out / named(3)) << "6 is suspect";
  EXPECT_EQ(checkpoints.good_before(10), options_.out / named(9));
  checkpoints.go_back(3, 0);
  EXPECT_THAT(files(), UnorderedElementsAre(named(3), named(4)));
}

TEST_F(Keeper, AResumeElsewhereLeavesThatDirectoryAlone) {
  const auto there = directory_ / "there";
  fs::create_directory(there);
  write_checkpoint(there / named(12), some_.arrays(), options_, resolved_, standing_at(12, 6));
  write_checkpoint(there / best_named(6), some_.arrays(), options_, resolved_, standing_at(6, 6));
  options_.resume = there;
  CheckpointFiles checkpoints(job_);
  checkpoints.resumed_from(resume_point_of(there / named(12)));
  EXPECT_THAT(files(), ElementsAre(best_named(6))) << "the best epoch's file comes along";
  EXPECT_EQ(checkpoints.good_before(100), "");
  EXPECT_EQ(checkpoints.good_before_anywhere(100), there / named(12));
  EXPECT_EQ(checkpoints.good_before_anywhere(12), "");
  for (const std::int64_t update : {15, 18, 21}) keep(checkpoints, standing_at(update, 6));
  EXPECT_THAT(files(), UnorderedElementsAre(named(18), named(21), best_named(6)));
  EXPECT_TRUE(fs::exists(there / named(12)));
  EXPECT_TRUE(fs::exists(there / best_named(6)));
  EXPECT_EQ(checkpoints.good_before_anywhere(100), options_.out / named(21)) << "its own comes first";
}

}  // namespace
}  // namespace paceline::train
