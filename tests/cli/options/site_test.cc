#include "cli/options/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "program.h"

namespace paceline::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kSite =
    "[sbatch]\naccount = \"physics\"\nmemory = \"16G\"\nsetup = [\"module load gcc\", \"export A=1\"]\n"
    "[launch]\nby = \"here\"\nmeet-within = 300\n[data]\ndrawn = \"synthetic,train=64\"\n";

std::string refusal(const std::string& text) {
  const Folder folder;
  try {
    (void)read_site({folder.write("site.toml", text)}, kTrain);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage) << text;
    return error.what();
  }
  return "";
}

TEST(Site, GivesEachCommandWhatItReadsAndTheLaterFileWins) {
  const Folder folder;
  const auto host = folder.write("host.toml", kSite),
             user = folder.write("user.toml", "[sbatch]\naccount = \"chemistry\"\n");
  const auto batch = read_site({host, user}, kSbatch);
  ASSERT_EQ(batch.given.size(), 3u);
  EXPECT_EQ(batch.given.back().text, "chemistry");
  EXPECT_THAT(batch.given.back().where, HasSubstr("user.toml:2: account"));
  EXPECT_EQ(batch.data.at("drawn"), "synthetic,train=64");
  const auto train = read_site({host}, kTrain);
  ASSERT_EQ(train.given.size(), 1u);
  EXPECT_EQ(train.given.front().option->name(), "meet-within");
  EXPECT_TRUE(read_site({}, kTrain).given.empty());
}

TEST(Site, RefusesWhatCouldChangeAFigure) {
  for (const char* text :
       {"lr = 0.1\n", "[sbatch]\nlr = 0.1\n", "[launch]\nlr = 0.1\n", "[train]\nlr = 0.1\n"})
    EXPECT_THAT(refusal(text), AllOf(HasSubstr("site.toml:"), HasSubstr("figures"))) << text;
  EXPECT_THAT(refusal("[sbatch]\nacount = \"x\"\n"), HasSubstr("account"));
  EXPECT_THAT(refusal("[sbatch]\nmemory = \"much\"\n"), HasSubstr("site.toml:2: memory"));
  EXPECT_THAT(refusal("[data]\ncifar10 = \"synthetic\"\n"), HasSubstr("choose another name"));
  EXPECT_THAT(refusal("[sbatch\n"), HasSubstr("site.toml"));
}

TEST(Site, IsReadByTheProgramAndWhatIsTypedWins) {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "paceline");
  folder.write("paceline/site.toml", kSite);
  const RunConditions there{.directory = folder.path(),
                            .variables = {{"XDG_CONFIG_HOME", folder.path().string()}}};
  const auto run = [&](const std::vector<std::string>& words) {
    const auto outcome = run_program(words, there);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  const auto plan = run({"sbatch", "--plan", "--account", "own", "--", "train", "--data", "drawn",
                         "--local-batch", "16", "--steps", "2"});
  EXPECT_THAT(plan,
              AllOf(HasSubstr("account own   typed"), HasSubstr("memory 16G   "), HasSubstr("site.toml:3")));
  EXPECT_THAT(plan, HasSubstr("drawn is synthetic,train=64"));
  EXPECT_THAT(run({"launch", "-n", "2", "--print", "--", "train"}), HasSubstr("MASTER_ADDR=127.0.0.1"));
  folder.write("paceline/site.toml", "[launch]\nlr = 0.1\n");
  EXPECT_EQ(run_program({"train", "--steps", "1"}, there).code, 2);
}

}  // namespace
}  // namespace paceline::cli
