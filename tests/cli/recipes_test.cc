/// The recipes that come with Paceline are taken by the commands that their headers name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "cli/options/arguments.h"
#include "cluster/make_backend.h"
#include "study/study.h"
#include "train/given/resolve.h"
#include "train/run.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> recipes() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(PACELINE_SOURCE_DIR) / "recipes"))
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  return files;
}

Command command_of(const std::string& name) {
  for (const Command command : {kTrain, kSweep, kScale, kConverge, kStudy})
    if (command_name(command) == name) return command;
  ADD_FAILURE() << "no command '" << name << "' takes a recipe";
  return kTrain;
}

TEST(Recipes, NameTheirCommandAndAreTakenByIt) {
  ASSERT_GE(recipes().size(), 9u);
  for (const auto& file : recipes()) {
    SCOPED_TRACE(file);
    const auto text = base::read_file(file);
    std::smatch found;
    ASSERT_TRUE(
        std::regex_search(text, found, std::regex("#   paceline (\\w+) recipes/" + file.filename().string())))
        << "its header must hold its one command";
    const auto settings = parse(command_of(found[1]), {file.string()}).settings;
    EXPECT_GT(settings.given.size(), 3u);
    EXPECT_THAT(settings.notes, testing::Not(testing::Contains(testing::HasSubstr("does not use"))));
  }
}

TEST(Recipes, SayWhatTheyRepeatAndWhatCameOut) {
  for (const auto& file : recipes()) {
    SCOPED_TRACE(file);
    const auto text = base::read_file(file);
    const auto header = text.substr(0, text.find("\nmodel = "));
    EXPECT_THAT(header, testing::ContainsRegex("Repeats (no|a|the|two|three) "));
    EXPECT_THAT(header, testing::HasSubstr("came out"));
  }
}

// What was reported stands in the head, all of it, with its conditions: nobody has to look it up to compare.
TEST(Recipes, HoldTheReportedFigures) {
  const std::map<std::string, std::vector<std::string>> reported{
      {"cifar10-batch-sweep",
       {"24 GB", "on one GPU and on two", "32, 64, 128, 256", "warm-up epoch", "torchvision's ResNet-18",
        "15.51 at 32", "5.99 at 128", "5.82 at 512", "5.81 at 2,048", "6.19 at 8,192", "9.00 at 32,768",
        "13.14 at 131,072", "8.8e12"}},
      {"cifar10-scaling",
       {"11,173,962", "269.804, 228.871, 211.488", "271.984, 229.739, 211.854", "153.240, 125.222, 116.669",
        "1.775, 1.835, 1.816", "79.637, 63.705, 58.438", "3.415, 3.606, 3.625", "274.355 s on two",
        "241.768 on four", "152.249 / 17.347", "124.729 / 10.294", "116.121 / 10.377", "78.910 / 11.459",
        "63.170 / 5.952", "57.686 / 4.814", "2.577, 4.342, 4.307", "5.851, 11.262, 13.927"}},
      {"cifar10-scaling-torchvision",
       {"DataParallel", "25.86, 36.93, 27.25", "14.73, 17.59, 14.82", "11.43, 12.41, 11.78",
        "1.40, 3.80; 1.67, 3.97; 1.84, 3.88", "0.0018 to 0.0073"}},
      {"cifar10-large-batch", {"0.685", "79.55 %", "0.6444", "27.50 %", "5 epochs", "warm-up"}},
      {"mnist-keras-cnn",
       {"Horovod", "Slurm", "0.9854, 0.9922, 0.992,", "0.9827, 0.9862, 0.9903", "456.147, 379.691, 203.634",
        "18,750 steps", "152.02 s", "3,120 steps", "0.9906", "2, 6, 8 GPUs 0.9902, 0.9905, 0.9879",
        "0.001 times the workers", "15.59", "20 % at batch 128 and 54 % at 1,024"}},
      {"fruits", {"9:41", "56 s an epoch", "0.0005", "1:03", "5 s an epoch", "0.1:", "1:14", "0.9869"}},
      {"caltech256", {"validation split", "Slurm", "queue"}}};
  for (const auto& [name, figures] : reported) {
    auto text = base::read_file(fs::path(PACELINE_SOURCE_DIR) / "recipes" / (name + ".toml"));
    text = std::regex_replace(text.substr(0, text.find("\nmodel = ")), std::regex("\n# "), " ");
    for (const auto& figure : figures) EXPECT_THAT(text, testing::HasSubstr(figure)) << name;
  }
}

/// A recipe's quick form as the cells that its command would run, on synthetic images in the numbers of the
/// real set.
std::vector<study::PlannedCell> quick_cells(const fs::path& file) {
  const auto text = base::read_file(file);
  std::smatch found;
  std::regex_search(text, found, std::regex("#   paceline (\\w+) recipes/"));
  const Command command = command_of(found[1]);
  std::string data = "synthetic,train=50000,test=10000";
  if (text.find("mnist:") != std::string::npos) data = "synthetic,train=60000,test=10000";
  if (text.find("fruits-360") != std::string::npos) data = "synthetic,train=2690,test=860";
  if (text.find("\"synthetic") != std::string::npos) data = "synthetic,train=12800,test=2000";
  auto settings = parse(command, {file.string(), "--quick", "--data", data}).settings;
  settings.train.threads = 1;
  switch (command) {
    case kScale:
      return study::scale_cells(settings.train, settings.study.scale);
    case kConverge:
      return study::converge_cells(settings.train, settings.study.converge);
    case kStudy:
      study::apply_quick(settings.train, settings.study, settings.given);
      settings.train.workers = 2;
      {
        auto cells = study::scale_cells(settings.train, settings.study.scale);
        study::Axes sweep = settings.study.sweep;  // its cells without their plans
        sweep.workers = {1};
        sweep.mode = "weak";
        for (auto& cell : study::scale_cells(settings.train, sweep)) cells.push_back(std::move(cell));
        if (settings.study.with_converge)
          for (auto& cell : study::converge_cells(settings.train, settings.study.converge))
            cells.push_back(std::move(cell));
        return cells;
      }
    default:
      return {study::PlannedCell{.id = "train", .kind = "train", .options = settings.train}};
  }
}

/// Nothing where the batch exceeds the data set: such a cell fails at once, and says so.
std::optional<train::Resolved> resolved(const train::Options& options, std::int64_t samples) {
  try {
    return train::resolve(options, {.train_samples = samples, .cores = 2});
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

/// Seconds that a cell takes on two cores of 50 GFLOP/s, two thirds of what those of an old server give.
double seconds_of(const study::PlannedCell& cell, const train::Setup& setup, double pixels) {
  constexpr double kCores = 2, kRate = 50e9;
  const auto run = resolved(cell.options, setup.data.train_samples);
  if (!run || !cell.skip.empty()) return 0;
  const double flops = static_cast<double>(setup.model.training_flops) * pixels;
  const double rate = kRate * std::min<double>(kCores, run->workers);
  const double step = flops * static_cast<double>(run->global_batch) / rate;
  const auto updates = static_cast<double>(run->length.updates);
  if (cell.options.window_steps == 0) {
    const double evaluations = std::ceil(updates / static_cast<double>(run->steps_per_epoch));
    return updates * step + evaluations * static_cast<double>(setup.data.test_samples) * flops / 3 / rate;
  }
  const auto warmup = static_cast<double>(cell.options.warmup_steps);
  const double timed = (updates - warmup) * step;
  const double limit = cell.options.window_seconds;
  return warmup * step + (limit > 0 ? std::min(timed, std::max(limit, 3 * step)) : timed);
}

TEST(Recipes, HaveAQuickFormOfThreeMinutesOnTwoCores) {
  const auto backend = cluster::make_backend("cpu");
  for (const auto& file : recipes()) {
    SCOPED_TRACE(file);
    // Synthetic images are 32x32; a folder's are of the size that its recipe asks.
    const auto text = base::read_file(file);
    std::smatch size;
    const double side = std::regex_search(text, size, std::regex("data = \"folder:.*size=(\\d+)"))
                            ? std::stod(size[1])
                            : 32.0;
    const auto cells = quick_cells(file);
    train::Options small = cells.front().options;  // model and data are the same in all of them
    small.global_batch = 0;
    small.local_batch = 1;
    const auto setup = train::inspect(small, backend);
    double seconds = 0;
    for (const auto& cell : cells) seconds += seconds_of(cell, setup, side * side / (32 * 32));
    EXPECT_GT(seconds, 0);
    EXPECT_LT(seconds, 180);
  }
}

TEST(Recipes, ByWorkersTheyCompareThoseOfTheTable) {
  for (const char* name : {"fruits.toml", "mnist-keras-cnn.toml"}) {
    const auto file = fs::path(PACELINE_SOURCE_DIR) / "recipes" / name;
    const auto settings = parse(kStudy, {file.string()}).settings;
    EXPECT_THAT(settings.study.converge.workers, testing::ElementsAre(1, 2, 4));
  }
}

TEST(Recipes, TheScalingRecipeAsksForTheTablesOfTheIssue) {
  const auto file = fs::path(PACELINE_SOURCE_DIR) / "recipes/cifar10-scaling.toml";
  const auto settings = parse(kScale, {file.string()}).settings;
  EXPECT_THAT(settings.study.scale.workers, testing::ElementsAre(1, 2, 4));
  EXPECT_THAT(settings.study.scale.batches, testing::ElementsAre(32, 128, 512));
  EXPECT_EQ(settings.study.scale.mode, "both");
}

}  // namespace
}  // namespace paceline::cli
