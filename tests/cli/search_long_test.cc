/// A search on real data: halving against the grid that was run whole, and killed in between.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
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
  EXPECT_EQ(run_program(words("grid", false), here).code, 0);
  EXPECT_EQ(run_program(words("halved", true), here).code, 0);
  const auto best = chosen_in(folder.path() / "grid");
  EXPECT_EQ(chosen_in(folder.path() / "halved"), best);
  EXPECT_EQ(epochs_in(folder.path() / "grid"), 16);
  EXPECT_EQ(epochs_in(folder.path() / "halved"), 8);

  Program killed(words("killed", true), here);
  EXPECT_TRUE(killed.wait_for("rung 2 of 3"));
  killed.signal(SIGKILL);
  EXPECT_EQ(killed.finish().code, 128 + SIGKILL);
  EXPECT_EQ(run_program(words("killed", true), here).code, 0);
  EXPECT_EQ(chosen_in(folder.path() / "killed"), best);
}

}  // namespace
}  // namespace paceline::cli
