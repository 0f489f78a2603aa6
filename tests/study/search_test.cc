#include "study/search.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "engine/make.h"
#include "measure/statistics.h"
#include "train/made_up_machine.h"

namespace paceline::study {
namespace {

namespace fs = std::filesystem;
using measure::Record;
using testing::Contains;
using testing::HasSubstr;

TEST(Rungs, AGridHasOne) {
  const auto all = rungs(5, 6, false);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].epochs, 6);
  EXPECT_EQ(all[0].configurations, 5u);
}

TEST(Rungs, HalvingDoublesTheEpochsAndDropsTheWorseHalf) {
  const auto text = [](const std::vector<Rung>& all) {
    std::string result;
    for (const auto& rung : all)
      result += std::to_string(rung.configurations) + "x" + std::to_string(rung.epochs) + " ";
    return result;
  };
  EXPECT_EQ(text(rungs(4, 4, true)), "4x1 2x2 1x4 ");
  EXPECT_EQ(text(rungs(8, 16, true)), "8x2 4x4 2x8 1x16 ");
  EXPECT_EQ(text(rungs(5, 8, true)), "5x1 3x2 2x4 1x8 ");
  EXPECT_EQ(text(rungs(8, 2, true)), "8x1 4x2 ") << "never more than the worse half after one epoch";
  EXPECT_EQ(text(rungs(12, 4, true)), "12x1 6x2 3x4 ");
  EXPECT_EQ(text(rungs(1, 3, true)), "1x3 ");
  EXPECT_EQ(text(rungs(4, 1, true)), "4x1 ");
}

class SearchDirectory : public testing::Test {
 protected:
  SearchDirectory() {
    std::string pattern = (fs::temp_directory_path() / "paceline-search-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    base::write_file(directory_ / "small.toml", std::string_view(R"(
[[layer]]
op = "conv2d"
name = "conv1"
channels = 8
kernel = 3
stride = 2
padding = 1
[[layer]]
op = "relu"
[[layer]]
op = "dense"
name = "fc"
features = "classes"
)"));
    runner_.backend = train::backend_of("cpu");
    runner_.cell = [this](int, int, const std::string& id, Begin how) {
      if (how == Begin::kept) ++kept_;
      if (how == Begin::resumed) ++resumed_;
      if (how == Begin::again) ++again_;
      begun_.push_back(id);
    };
  }
  ~SearchDirectory() override { fs::remove_all(directory_); }

  /// Learning rates of which 0.003 learns best: two are far too low, with the last the loss is soon not
  /// finite.
  [[nodiscard]] Search search(bool halving, int seeds = 1,
                              const std::vector<double>& rates = {1e-6, 0.003, 1e-5, 30.0}) const {
    Search result{.how = {.seeds = seeds, .halving = halving}};
    for (const double lr : rates) {
      train::Options options;
      options.model = (directory_ / "small.toml").string();
      options.data = "synthetic,train=1600,test=60";
      options.precision = "fp32";
      options.local_batch = 32;
      options.epochs = 4;
      options.threads = 1;
      options.pin = false;
      options.validation_split = 0.2;
      options.lr = lr;
      result.configurations.push_back({fmt::format("lr {}", lr), options});
    }
    return result;
  }

  std::vector<Record> run(const Search& search, const std::string& out) {
    kept_ = resumed_ = again_ = 0;
    begun_.clear();
    runner_.directory = directory_ / out;
    return run_search(search, search_cells(search), runner_);
  }

  fs::path directory_;
  Runner runner_;
  int kept_ = 0, resumed_ = 0, again_ = 0;
  std::vector<std::string> begun_;
};

TEST_F(SearchDirectory, HalvingChoosesWhatTheGridFindsWithTheSameBitsAndReadsTheTestSetOnce) {
  const auto grid = run(search(false), "grid");
  ASSERT_EQ(grid.size(), 5u);  // four trainings and the chosen one's evaluation
  const auto& tested = grid.back();
  EXPECT_EQ(tested.id, kChosen);
  EXPECT_EQ(tested.evaluation.value().reads, 60);
  for (std::size_t i = 0; i < 4; ++i)  // one diverges, and has no such figure
    EXPECT_EQ(grid[i].test_set ? grid[i].test_set->reads : 0, 0);

  const auto halved = run(search(true), "halved");
  ASSERT_EQ(halved.size(), 4u + 2 + 1 + 1);
  EXPECT_EQ(halved.back().variant, tested.variant);
  EXPECT_EQ(halved.back().evaluation.value().reads, 60);
  EXPECT_EQ(halved.back().evaluation->loss, tested.evaluation->loss);
  EXPECT_EQ(halved.back().evaluation->updates, tested.evaluation->updates);
  std::int64_t reads = 0, epochs = 0;
  for (const auto& record : halved)
    if (record.test_set) reads += record.test_set->reads;
  EXPECT_EQ(reads, 0);
  EXPECT_EQ(resumed_, 3);  // survivors go on from their checkpoints
  for (const auto& record : halved)
    if (!record.epochs.empty() && record.epochs.back().epoch > epochs) epochs = record.epochs.back().epoch;
  EXPECT_EQ(epochs, 4);

  // Again, all of it is there, and nothing is read a second time.
  const auto again = run(search(true), "halved");
  EXPECT_EQ(kept_, 6);  // what failed is tried again
  EXPECT_EQ(again.back().evaluation.value().reads, 60);
  EXPECT_EQ(again.back().created, halved.back().created);
}

TEST_F(SearchDirectory, KeepsTiesAndSaysWhatFell) {
  // Four far too low rates learn nothing and cannot be told apart; the fifth learns.
  std::string said;
  runner_.chosen = [&](const std::vector<std::size_t>&, const std::string& why) { said += why + "\n"; };
  const auto ties = run(search(true, 1, {1e-9, 2e-9, 3e-9, 4e-9}), "ties");
  const auto of_epochs = [](const std::vector<Record>& records, std::int64_t epochs) {
    return std::ranges::count_if(records, [&](const Record& record) {
      return record.kind == "search" && !record.epochs.empty() && record.epochs.back().epoch == epochs;
    });
  };
  EXPECT_GT(of_epochs(ties, 4), 1) << said;
  EXPECT_THAT(said, testing::HasSubstr("since they tie with the best")) << said;
  said.clear();
  const auto clear = run(search(true), "clear");
  EXPECT_THAT(said,
              testing::AllOf(testing::HasSubstr("dropped after epoch 1"),
                             testing::HasSubstr("by more than noise"), testing::HasSubstr("lr 30 failed")))
      << said;
}

TEST_F(SearchDirectory, StoppedAndGoneOnWithItChoosesAlike) {
  const auto whole = run(search(true), "whole");
  for (const int at : {2, 5, 6}) {  // in the first rung, the second, the last
    const auto out = "parts" + std::to_string(at);
    std::stop_source stop;
    runner_.stop = stop.get_token();
    runner_.progress.step = [&](std::int64_t, std::int64_t, double, double) {
      if (static_cast<int>(begun_.size()) == at + 1) stop.request_stop();
    };
    const auto part = run(search(true), out);
    EXPECT_FALSE(fs::exists(directory_ / out / "records" / (std::string(kChosen) + ".json")));
    EXPECT_NE(part.back().status, "complete");
    runner_.stop = {};
    runner_.progress = {};
    const auto rest = run(search(true), out);
    ASSERT_EQ(rest.size(), whole.size());
    for (std::size_t i = 0; i < rest.size(); ++i) EXPECT_EQ(rest[i].id, whole[i].id) << at;
    EXPECT_EQ(rest.back().evaluation.value().loss, whole.back().evaluation.value().loss);
    EXPECT_EQ(rest.back().evaluation->reads, 60);
  }
}

// It ended with an error: the weights were there of the first search's winner alone.
TEST_F(SearchDirectory, AnotherWinnerWhoseWeightsAreGoneIsTrainedAgain) {
  const auto first = run(search(false), "s");
  EXPECT_EQ(first.back().variant, "lr 0.003");
  const auto fewer = search(false, 1, {1e-6, 1e-5});
  const auto then = run(fewer, "s");
  ASSERT_EQ(then.size(), 3u);
  EXPECT_EQ(kept_, 2);
  EXPECT_EQ(again_, 1);
  EXPECT_EQ(then.back().evaluation.value().reads, 120);  // by the first search, and by this
  const auto is_chosen = [&](const Record& record) { return record.variant == then.back().variant; };
  EXPECT_THAT(std::find_if(then.begin(), then.end(), is_chosen)->notes,
              Contains(HasSubstr("trained again: an earlier")));
  const auto alone = run(fewer, "alone");
  EXPECT_EQ(alone.back().variant, then.back().variant);
  EXPECT_EQ(alone.back().evaluation.value().loss, then.back().evaluation->loss);
  (void)run(fewer, "s");
  EXPECT_EQ(again_, 0);
  EXPECT_EQ(kept_, 2);
}

// A rung that is shorter than what an earlier search trained: its checkpoints are of no use to it.
// Rungs share a training's folder: it was listed once for each, and had gone when it was to be moved again.
TEST_F(SearchDirectory, MovesAsideOnceWhatAnotherProgramTrained) {
  (void)run(search(true), "out");
  runner_.backend.libraries = {"made up 2.0"};
  (void)run(search(true), "out");
  EXPECT_EQ(kept_, 0);
  std::size_t trainings = 0;
  for (const auto& one : fs::directory_iterator(directory_ / "out" / "earlier"))
    trainings += one.is_directory();
  EXPECT_EQ(trainings, 1u) << "the winner's, the only one that is kept";
}

TEST_F(SearchDirectory, MoreConfigurationsMakeShorterRungsOfWhatWasTrainedFurther) {
  const auto two = run(search(true, 1, {1e-6, 0.003}), "s");
  EXPECT_EQ(two.back().variant, "lr 0.003");
  const auto wide = search(true);
  const auto four = run(wide, "s"), alone = run(wide, "alone");
  ASSERT_EQ(four.size(), alone.size());
  for (std::size_t i = 0; i < four.size(); ++i) {
    EXPECT_EQ(four[i].id, alone[i].id);
    EXPECT_EQ(four[i].status, alone[i].status) << four[i].id << ": " << four[i].reason;
  }
  EXPECT_EQ(four.back().evaluation.value().loss, alone.back().evaluation.value().loss);
}

// Ctrl-C, or a kill, in the middle: the images were looked at, and the next search looks again.
TEST_F(SearchDirectory, AReadingOfTheTestSetThatDidNotComeToItsEndCounts) {
  const auto asked = search(false, 1, {1e-5, 0.003});
  std::stop_source stop;
  runner_.stop = stop.get_token();
  auto backend = train::backend_of("cpu");
  int compiled = 0;
  backend.made_up->on_compile = [&](const graph::Graph& graph, const engine::CompileOptions& how) {
    if (++compiled == 3) stop.request_stop();  // behind both trainings
    return engine::compile("cpu", graph, how);
  };
  runner_.backend.machine = backend.machine;
  EXPECT_EQ(run(asked, "s").size(), 2u);
  const auto left = measure::read_record(directory_ / "s/records" / (std::string(kChosen) + ".json"));
  EXPECT_FALSE(left.evaluation.has_value());
  EXPECT_EQ(left.test_set.value().reads, 60);
  runner_.stop = {};
  EXPECT_EQ(run(asked, "s").back().evaluation.value().reads, 120);
}

TEST_F(SearchDirectory, SeedsAreTrainingsOfTheirOwn) {
  const auto cells = search_cells(search(true, 2));
  ASSERT_EQ(cells.size(), 3u * 2 * 4);
  EXPECT_EQ(cells[0].options.seed + 1, cells[4].options.seed);
  EXPECT_EQ(cells[0].variant, cells[4].variant);
  EXPECT_NE(cells[0].training, cells[4].training);
  EXPECT_EQ(cells[0].training, cells[8].training);  // of the next rung
  EXPECT_NE(cells[0].id, cells[8].id);
  EXPECT_EQ(cells[0].options.pause_after_epochs, 1);
  EXPECT_EQ(cells[16].options.pause_after_epochs, 0);
  for (const auto& cell : cells) EXPECT_EQ(cell.options.test_set, train::TestSet::never);
}

TEST_F(SearchDirectory, RefusesWhatIsNotWholeEpochsAndTwoOfOneName) {
  const auto refusal = [](const Search& asked) -> std::string {
    try {
      (void)search_cells(asked);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "accepted";
  };
  auto asked = search(false);
  for (auto& one : asked.configurations) one.options.epochs = 1.5;
  EXPECT_THAT(refusal(asked), HasSubstr("must be a whole number of at least 1, but is 1.5"));
  asked = search(false);
  asked.configurations[1].name = asked.configurations[0].name;
  EXPECT_THAT(refusal(asked), HasSubstr("give each value once"));
}

}  // namespace
}  // namespace paceline::study
