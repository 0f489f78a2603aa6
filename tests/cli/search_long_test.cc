/// A search on real data: halving against the grid that was run whole, and killed in between.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "cli/program.h"
#include "measure/record.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

/// The chosen configuration, whose evaluation is the only reading of the test set.
std::string chosen_in(const fs::path& directory) {
  const auto record = measure::read_record(directory / "records/search-chosen.json");
  EXPECT_EQ(record.evaluation.value().reads, record.evaluation->samples);
  return record.variant;
}

/// Epochs of all trainings together: of each the longest record.
std::int64_t epochs_in(const fs::path& directory) {
  std::map<std::string, std::int64_t> longest;
  for (const auto& entry : fs::directory_iterator(directory / "records")) {
    const auto record = measure::read_record(entry.path());
    if (record.kind != "search") continue;
    EXPECT_EQ(record.test_set.value().reads, 0) << entry.path();
    auto& epochs = longest[record.variant + record.settings.at("seed")];
    epochs = std::max(epochs, record.epochs.back().epoch);
  }
  std::int64_t sum = 0;
  for (const auto& [name, epochs] : longest) sum += epochs;
  return sum;
}

/// Of the chosen weights on the test set: equal losses, equal weights.
double loss_in(const fs::path& directory) {
  return measure::read_record(directory / "records/search-chosen.json").evaluation.value().loss;
}

double seconds_of(const std::vector<std::string>& words, const RunConditions& here) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run_program(words, here).code, 0);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(LongSearch, HalvingFindsTheBestOfTheGridInHalfOfItsEpochsAndAlsoAfterBeingKilled) {
  if (std::getenv("PACELINE_LONG") == nullptr) GTEST_SKIP() << "PACELINE_LONG=1 runs it: ten minutes";
  const char* data = std::getenv("PACELINE_DATA");
  const auto mnist = fs::path(data == nullptr ? "" : data) / "mnist";
  if (!fs::exists(mnist)) GTEST_SKIP() << "PACELINE_DATA names no directory with MNIST in mnist/";
  const Folder folder;
  const RunConditions here{.directory = folder.path(), .longest_minutes = 30};
  const auto words = [&](const std::string& out, bool halving) {
    std::vector<std::string> all{"search",
                                 "--model",
                                 "mnist-cnn",
                                 "--data",
                                 "mnist:" + mnist.string(),
                                 "--lr",
                                 "0.3,0.03,0.003,0.0003",
                                 "--local-batch",
                                 "128",
                                 "--epochs",
                                 "4",
                                 "--out",
                                 out};
    if (halving) all.emplace_back("--halving");
    return all;
  };
  const double grid_s = seconds_of(words("grid", false), here);
  const double halved_s = seconds_of(words("halved", true), here);
  const auto best = chosen_in(folder.path() / "grid");
  EXPECT_EQ(chosen_in(folder.path() / "halved"), best);
  EXPECT_EQ(epochs_in(folder.path() / "grid"), 16);
  EXPECT_EQ(epochs_in(folder.path() / "halved"), 8);
  // Of a quiet machine the second is half of the first; epochs do not depend on who else uses it.
  std::printf("chose %s; grid %.0f s for 16 epochs, halving %.0f s for 8: %.2f of it\n", best.c_str(), grid_s,
              halved_s, halved_s / grid_s);

  Program killed(words("killed", true), here);
  EXPECT_TRUE(killed.wait_for("rung 2 of 3", here.longest_minutes));
  killed.signal(SIGKILL);
  EXPECT_EQ(killed.finish().code, 128 + SIGKILL);
  EXPECT_EQ(run_program(words("killed", true), here).code, 0);
  EXPECT_EQ(chosen_in(folder.path() / "killed"), best);
  EXPECT_EQ(loss_in(folder.path() / "killed"), loss_in(folder.path() / "halved"));
  EXPECT_EQ(loss_in(folder.path() / "grid"), loss_in(folder.path() / "halved"));
}

}  // namespace
}  // namespace paceline::cli
