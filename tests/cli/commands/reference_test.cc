/// `paceline reference` as a person and as a CI call it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/commands/small_model.h"
#include "cli/program.h"
#include "golden/records.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Outcome run_reference(const Folder& folder, std::vector<std::string> line) {
  line.insert(line.begin(), "reference");
  return run_program(line, {.directory = folder.path()});
}

/// Trainings of six epochs that reach 90 % after so many each.
void write_trainings(const Folder& folder, const std::string& directory, const std::vector<int>& reached) {
  int seed = 0;
  for (const int after : reached) {
    std::vector<double> accuracies(6, 0.91);
    std::fill(accuracies.begin(), accuracies.begin() + after - 1, 0.6);
    auto record = golden::make_training({.variant = "", .seed = seed, .accuracies = accuracies});
    record.created = fmt::format("2026-01-31T12:00:{:02}Z", seed);
    (void)folder.write(fmt::format("{}/{}.json", directory, seed++), measure::to_json(record));
  }
}

TEST(Reference, ChecksWhatItMade) {
  const Folder folder;
  write_trainings(folder, "now", {3, 4, 3, 4, 3, 4});
  write_trainings(folder, "same", {4, 3, 3});
  write_trainings(folder, "slower", {6, 5, 6});
  write_trainings(folder, "faster", {1, 1, 2});
  write_trainings(folder, "few", {3, 4});
  const auto made = run_reference(folder, {"make", "now", "--accuracy", "0.9", "--out", "F.json"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("resnet18-cifar on cifar10 to 90 % on the test set"),
                              HasSubstr("batch 128, 6 runs: 3.50 epochs (3 to 4)"),
                              HasSubstr("F.json; 3 runs a batch are checked by")));
  const auto json = nlohmann::json::parse(base::read_file(folder.path() / "F.json"));
  EXPECT_EQ(json.begin()->at("Epochs to converge").size(), 6u);
  const auto check = [&](const char* records) {
    return run_reference(folder, {"check", records, "--against", "F.json"});
  };
  const auto same = check("same");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("batch 128, 3 runs: 3.33 epochs, the reference 3.50 (of 6)"));
  const auto slower = check("slower");
  EXPECT_EQ(slower.code, 1) << slower.err;
  EXPECT_THAT(slower.out, HasSubstr("SLOWER: a regression"));
  const auto faster = check("faster");
  EXPECT_EQ(faster.code, 1) << faster.err;
  EXPECT_THAT(faster.out,
              AllOf(HasSubstr("FASTER: suspicious"), HasSubstr("nothing in the records explains")));
  const auto few = check("few");
  EXPECT_EQ(few.code, 2) << few.err;
  EXPECT_THAT(few.out, HasSubstr("2 runs at batch 128: a check needs at least 3"));
}

TEST(Reference, NeedsTheAccuracyOfAnothersFile) {
  const Folder folder;
  write_trainings(folder, "now", {3, 4, 3});
  (void)folder.write(
      "M.json",
      R"({"toy_ref_128": {"Benchmark": "toy", "BS": 128, "Epochs to converge": [3, 4, 3, 4, 3, 4]}})");
  const auto without = run_reference(folder, {"check", "now", "--against", "M.json"});
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.err, HasSubstr("M.json does not say which accuracy"));
  const auto with = run_reference(folder, {"check", "now", "--against", "M.json", "--accuracy", "0.9"});
  EXPECT_EQ(with.code, 0) << with.err;
  EXPECT_THAT(with.out, HasSubstr("is taken for granted"));
}

TEST(Reference, RefusesWordsItCannotUse) {
  const Folder folder;
  write_trainings(folder, "now", {3, 4, 3, 4, 3, 4});
  ASSERT_EQ(run_reference(folder, {"make", "now", "--accuracy", "0.9", "--out", "F.json"}).code, 0);
  struct Case {
    std::vector<std::string> words;
    const char* said;
  };
  for (const auto& [words, said] : std::vector<Case>{
           {{}, "reference takes make or check, then records of trainings; got nothing"},
           {{"make"}, "got make"},
           {{"show", "now"}, "got show now"},
           {{"make", "now", "--out", "G.json"}, "the accuracy to be reached, --accuracy"},
           {{"make", "now", "--accuracy", "0.9"}, "the file to write, --out"},
           {{"make", "now", "--accuracy", "90", "--out", "G.json"}, "--accuracy must be a number"},
           {{"make", "now", "--accuracy", "0.9", "--out", "G.json", "--against", "F.json"},
            "belongs to reference check"},
           {{"check", "now"}, "check RECORDS --against reference.json"},
           {{"check", "now", "--against", "F.json", "--out", "G.json"}, "check writes nothing"},
           {{"check", "now", "--against", "F.json", "--accuracy", "0.8"},
            "the reference F.json is to 0.9"}}) {
    const auto outcome = run_reference(folder, words);
    EXPECT_EQ(outcome.code, 2) << said;
    EXPECT_THAT(outcome.err, HasSubstr(said));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "G.json"));
}

// Trainings of a second each, which are above this accuracy after their first epoch.
TEST(Reference, ReadsRealTrainings) {
  const Folder folder;
  (void)folder.write("m.toml", kSmallModel);
  for (int seed = 0; seed < 6; ++seed) {
    const auto trained = run_program(
        {"train", "--model", "m.toml", "--data", "synthetic,train=96,test=50", "--local-batch", "16",
         "--epochs", "2", "--seed", std::to_string(seed), "--out", fmt::format("t/{}", seed)},
        {.directory = folder.path()});
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  const auto made = run_reference(folder, {"make", "t", "--accuracy", "0.001", "--out", "F.json"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("batch 16, 6 runs: 1.00 epochs (1 to 1)"));
  const auto checked = run_reference(folder, {"check", "t/0", "t/1", "t/2", "--against", "F.json"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

}  // namespace
}  // namespace paceline::cli
