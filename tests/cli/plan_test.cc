#include "cli/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "program.h"

namespace paceline::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const std::vector<std::string> kShort{
    "train",         "--model", "mnist-cnn", "--data", "synthetic,train=256,test=64", "--steps", "4",
    "--local-batch", "16",      "--out",     "run"};

std::vector<std::string> and_more(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Plan, SaysWhatWouldBeDoneAndDoesNothing) {
  const Folder folder;
  const RunConditions there{.directory = folder.path()};
  folder.write("r.toml", "lr = 0.5\n");
  auto words = and_more(kShort, {"--plan", "--no-calibrate", "--json"});
  words.insert(words.begin() + 1, "r.toml");
  const auto outcome = run_program(words, there);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto plan = Json::parse(outcome.out);
  EXPECT_EQ(plan["updates"], 4);
  EXPECT_EQ(plan["training"]["local_batch"], 16);
  EXPECT_GT(plan["memory"]["bytes"].get<double>(), 1e6);
  EXPECT_TRUE(plan["time"]["seconds"].is_null());
  std::map<std::string, std::string> origins;
  for (const auto& one : plan["settings"]) origins[one["name"]] = one["origin"];
  EXPECT_EQ(origins["steps"], "typed");
  EXPECT_EQ(origins["lr"], "r.toml:1");
  EXPECT_EQ(origins["seed"], "default");
  std::size_t left = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    left += entry.path().filename() == "r.toml" ? 0 : 1;
  EXPECT_EQ(left, 0u) << "a plan writes nothing";
}

TEST(Plan, TakesMemoryAndTimeThatTheRunThenHas) {
  const Folder folder;
  const RunConditions there{.directory = folder.path()};
  const auto planned = Json::parse(run_program(and_more(kShort, {"--plan", "--json"}), there).out);
  ASSERT_EQ(run_program(and_more(kShort, {"--out", "paceline-out/run"}), there).code, 0);
  const auto record = Json::parse(base::read_file(folder.path() / "paceline-out/run/record.json"));
  const auto bytes = record["memory"]["plan_bytes"].get<double>();
  EXPECT_NEAR(planned["memory"]["bytes"].get<double>(), bytes, 0.1 * bytes);
  const auto again = Json::parse(run_program(and_more(kShort, {"--plan", "--json"}), there).out);
  EXPECT_GT(again["time"]["seconds"].get<double>(), 0);
  EXPECT_THAT(again["time"]["known_from"].get<std::string>(), HasSubstr("run/record.json"));
  const auto other = Json::parse(
      run_program(and_more(kShort, {"--workers", "2", "--plan", "--no-calibrate", "--json"}), there).out);
  EXPECT_TRUE(other["time"]["seconds"].is_null()) << "of one worker, and this has two";
}

TEST(Plan, RefusesWhatTheRunWouldRefuse) {
  const Folder folder;
  const RunConditions there{.directory = folder.path()};
  ASSERT_EQ(run_program(kShort, there).code, 0);
  const auto checkpoint = folder.path() / "run/checkpoint-00000004.safetensors";
  ASSERT_TRUE(std::filesystem::exists(checkpoint));
  folder.write("file", "no directory");
  folder.write("damaged.safetensors", base::read_file(checkpoint).substr(0, 2000));
  const std::string run = (folder.path() / "run").string();
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--out", "next", "--resume", "nowhere"},
        {"--out", "next", "--resume", "damaged.safetensors"},
        {"--out", "next", "--resume", run, "--model", "resnet8-cifar"},
        {"--out", "next", "--timeline", "no/dir.json"},
        {"--out", "next", "--timeline", (folder.path() / "run/record.json").string()},
        {"--out", "next", "--kernels-from", "nowhere"},
        {"--out", "next", "--weights", "nowhere.safetensors"},
        {"--out", "next", "--freeze", "nowhere"},
        {"--out", "run"},
        {"--out", "file/below"}}) {
    const auto planned = run_program(and_more(and_more(kShort, more), {"--plan", "--no-calibrate"}), there);
    std::vector<std::string> launched{"launch", "-n", "2", "--"};
    launched = and_more(and_more(and_more(launched, kShort), more), {"--plan", "--no-calibrate"});
    const auto launch = run_program(launched, there);
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "next"));
    const auto truly = run_program(and_more(kShort, more), there);
    EXPECT_NE(truly.code, 0) << more.back();
    EXPECT_EQ(planned.code, truly.code) << more.back() << planned.err;
    EXPECT_EQ(planned.err, truly.err);
    EXPECT_EQ(launch.code, truly.code) << more.back() << launch.err;
    std::filesystem::remove_all(folder.path() / "next");
  }
  EXPECT_EQ(run_program(and_more(kShort, {"--resume", "auto", "--plan", "--no-calibrate"}), there).code, 0);
}

TEST(Plan, TimesStepsWhereNoRecordHelps) {
  const Folder folder;
  const RunConditions there{.directory = folder.path()};
  const auto time_of = [&](const std::vector<std::string>& words) {
    const auto outcome = run_program(and_more(words, {"--plan", "--json"}), there);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["time"];
  };
  const std::vector<std::string> small{"--model", "mnist-cnn", "--data", "synthetic,train=256,test=64"};
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", "--local-batch", "16"},
        {"sweep", "--batches", "8,32", "--repeats", "2"},
        {"scale", "--batches", "8", "--workers", "1,2"},
        {"converge", "--baseline-batch", "8", "--large-batch", "32", "--epochs", "2"},
        {"search", "--lr", "0.1,0.01", "--local-batch", "8,16", "--epochs", "2", "--halving"},
        {"study", "--batches", "8,16", "--workers", "1,2", "--epochs", "2", "--baseline-batch", "8",
         "--large-batch", "16"}}) {
    const auto time = time_of(and_more(words, small));
    ASSERT_FALSE(time["seconds"].is_null()) << words.front();
    EXPECT_THAT(time["known_from"].get<std::string>(), HasSubstr("timed just now")) << words.front();
    EXPECT_LT(time["low"].get<double>(), time["seconds"].get<double>()) << words.front();
    EXPECT_GT(time["high"].get<double>(), time["seconds"].get<double>()) << words.front();
    EXPECT_FALSE(time.contains("of_cells")) << words.front() << ": all cells are in it";
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "a plan writes nothing";
  const auto one = time_of(and_more({"train", "--local-batch", "16", "--epochs", "1"}, small));
  const auto fifty = time_of(and_more({"train", "--local-batch", "16", "--epochs", "50"}, small));
  EXPECT_GT(fifty["seconds"].get<double>(), 5 * one["seconds"].get<double>());
}

TEST(Plan, OfALaunchedCommandStartsNothing) {
  const Folder folder;
  const auto said =
      run_program({"launch", "-n", "2", "--", "train", "--model", "mnist-cnn", "--data",
                   "synthetic,train=256,test=64", "--local-batch", "16", "--plan", "--no-calibrate"},
                  {.directory = folder.path()});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("in 2 processes"), HasSubstr("nothing was run")));
}

/// MNIST's files with blank images.
void write_blank_mnist(const Folder& folder, std::uint32_t train, std::uint32_t test) {
  const auto number = [](std::uint32_t value) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xff);
    return text;
  };
  for (const auto& [name, count] : {std::pair{"train", train}, {"t10k", test}}) {
    folder.write(std::string("mnist/") + name + "-images-idx3-ubyte",
                 number(2051) + number(count) + number(28) + number(28) +
                     std::string(std::size_t{count} * 28 * 28, '\0'));
    folder.write(std::string("mnist/") + name + "-labels-idx1-ubyte",
                 number(2049) + number(count) + std::string(count, '\0'));
  }
}

TEST(Plan, CountsTheProcessBesideAMappedDataSet) {
  const Folder folder;
  const RunConditions there{.directory = folder.path()};
  write_blank_mnist(folder, 50'000, 1'000);
  const auto process_with = [&](const std::string& data) {
    auto words = and_more(kShort, {"--data", data, "--plan", "--json"});
    words.erase(words.begin() + 3, words.begin() + 5);
    const auto outcome = run_program(words, there);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["memory"]["lines"]["process"].get<double>();
  };
  // Nobody has read its 40 MB yet: the process is as large as it is without them.
  EXPECT_NEAR(process_with("mnist:mnist"), process_with("synthetic,train=50000,test=1000"), 4e6);
}

TEST(Plan, CountsWindowsByTimeAndRepeatsApart) {
  const Folder folder;
  const RunConditions there{.directory = folder.path()};
  const std::vector<std::string> cells{
      "--model",        "mnist-cnn", "--data",         "synthetic,train=256,test=64",
      "--batches",      "16",        "--workers",      "1",
      "--mode",         "weak",      "--repeats",      "1",
      "--window-steps", "8",         "--warmup-steps", "1",
      "--threads",      "1"};
  ASSERT_EQ(run_program(and_more({"scale", "--out", "paceline-out/before"}, cells), there).code, 0);
  const auto time_of = [&](const std::string& command, const std::vector<std::string>& more) {
    const auto outcome = run_program(and_more(and_more({command, "--plan", "--json"}, cells), more), there);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["time"];
  };
  const auto endless = time_of("scale", {"--window-steps", "100000", "--window-seconds", "0"});
  const auto ended = time_of("scale", {"--window-steps", "100000", "--window-seconds", "0.5"});
  EXPECT_GT(endless["seconds"].get<double>(), 10 * ended["seconds"].get<double>());
  EXPECT_GE(ended["seconds"].get<double>(), 0.5);
  EXPECT_FALSE(ended.contains("repeats_s")) << "--measure-again 0";
  // One set-up with two spares of 1.6 s.
  const auto again = time_of("scale", {"--window-seconds", "0.5", "--measure-again", "5"});
  EXPECT_GE(again["repeats_s"].get<double>(), 2 * 1.6);
  // Each starts as long as the cell of the plan before, whose window is 0.5 s.
  EXPECT_LT(again["repeats_s"].get<double>(), 2 * (1.6 + ended["seconds"].get<double>()));
}

TEST(Plan, CountsFewestStepsOfWindowsByTime) {
  const auto said = [](const std::string& option) {
    const auto outcome =
        run_program({"scale", "--model", "mnist-cnn", "--data", "synthetic,train=256,test=64", "--batches",
                     "16", "--workers", "1", "--mode", "weak", "--repeats", "2", "--warmup-steps", "1",
                     "--plan", "--no-calibrate", option});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_THAT(said("--window-steps=5"), HasSubstr("2 to run, at least 12 steps"));
  EXPECT_THAT(said("--window-seconds=0.5"), HasSubstr("2 to run, at least 8 steps"));
}

TEST(Plan, OfCellsAndOfWhatALauncherWouldStart) {
  const Folder folder;
  const RunConditions there{.directory = folder.path()};
  const auto cells = run_program({"scale", "--model", "mnist-cnn", "--data", "synthetic,train=256,test=64",
                                  "--batches", "16", "--workers", "1,2", "--plan", "--no-calibrate"},
                                 there);
  EXPECT_EQ(cells.code, 0) << cells.err;
  EXPECT_THAT(cells.out, AllOf(HasSubstr("to run"), HasSubstr("memory"), HasSubstr("records/")));
  // 2 x 192 images are more than there are: that cell is left out, as the study itself does it.
  const auto part =
      run_program({"scale", "--model", "mnist-cnn", "--data", "synthetic,train=256,test=64", "--batches",
                   "16,192", "--workers", "1,2", "--mode", "weak", "--plan", "--no-calibrate"},
                  there);
  EXPECT_EQ(part.code, 0) << part.err;
  EXPECT_THAT(part.out, AllOf(HasSubstr("skipped"), HasSubstr("exceeds the data set of 256")));
  const auto none =
      run_program({"scale", "--model", "mnist-cnn", "--data", "synthetic,train=256,test=64", "--batches",
                   "512", "--workers", "1,2", "--mode", "weak", "--plan", "--no-calibrate"},
                  there);
  EXPECT_EQ(none.code, 2) << none.out;
  const auto job = run_program(
      and_more({"sbatch", "--nodes", "2", "--workers-per-node", "2", "--plan", "--"}, kShort), there);
  EXPECT_EQ(job.code, 0) << job.err;
  EXPECT_THAT(job.out,
              AllOf(HasSubstr("nodes 2   typed"), HasSubstr("in 4 processes"), HasSubstr("global batch 64")));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "paceline.sbatch"));
  const auto refused = run_program(and_more(kShort, {"--plan", "--global-batch", "7"}), there);
  EXPECT_EQ(refused.code, 2) << refused.out;
  EXPECT_THAT(run_program(and_more(kShort, {"--plan", "--no-calibrate"}), there).out,
              Not(HasSubstr("epoch 1")));
}

}  // namespace
}  // namespace paceline::cli
