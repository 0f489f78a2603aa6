/// The recipes that come with Paceline are taken by the commands that their headers name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "base/file.h"
#include "cli/arguments.h"

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
  ASSERT_GE(recipes().size(), 4u);
  for (const auto& file : recipes()) {
    SCOPED_TRACE(file);
    const auto text = base::read_file(file);
    std::smatch found;
    ASSERT_TRUE(
        std::regex_search(text, found, std::regex("#   paceline (\\w+) recipes/" + file.filename().string())))
        << "its header must hold its one command";
    const auto settings = parse(command_of(found[1]), {file.string()}).settings;
    EXPECT_GT(settings.given.size(), 3u);
    if (text.find("[quick]") != std::string::npos) {
      EXPECT_GT(parse(command_of(found[1]), {file.string(), "--quick"}).settings.given.size(),
                settings.given.size());
    }
    EXPECT_THAT(settings.notes, testing::Not(testing::Contains(testing::HasSubstr("does not use"))));
  }
}

TEST(Recipes, TheScalingRecipeAsksForTheTablesOfTheIssue) {
  const auto file = fs::path(PACELINE_SOURCE_DIR) / "recipes/cifar10-scaling.toml";
  const auto settings = parse(kScale, {file.string()}).settings;
  EXPECT_THAT(settings.study.scale.workers, testing::ElementsAre(1, 2, 4));
  EXPECT_THAT(settings.study.scale.batches, testing::ElementsAre(32, 128, 512));
}

}  // namespace
}  // namespace paceline::cli
