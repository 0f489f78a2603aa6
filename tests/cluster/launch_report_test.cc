#include "cluster/launch_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

namespace paceline::cluster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(OddAbout, NothingWhereEveryProcessHasItsShareOfAllCores) {
  EXPECT_THAT(odd_about({{0, "a", {0, 1}, 4}, {1, "a", {2, 3}, 4}}), IsEmpty());
  EXPECT_THAT(odd_about({{0, "a", {0, 1}, 2}, {1, "b", {0, 1}, 2}}), IsEmpty());
  EXPECT_THAT(odd_about({{0, "a", {0, 1, 2, 3}, 4}, {1, "a", {0, 1, 2, 3}, 4}}),
              IsEmpty());  // they share them out
}

TEST(OddAbout, ProcessesBoundToACoreEachWhereTheHostHasEight) {
  EXPECT_THAT(odd_about({{0, "a", {0}, 8}, {1, "a", {1}, 8}}),
              ElementsAre(AllOf(HasSubstr("may use 2 of its 8 cores"), HasSubstr("--bind-to none"),
                                HasSubstr("PE=4"), HasSubstr("--cpus-per-task=4"))));
}

TEST(OddAbout, MoreProcessesThanCores) {
  EXPECT_THAT(odd_about({{0, "a", {0, 1}, 2}, {1, "a", {0, 1}, 2}, {2, "a", {0, 1}, 2}}),
              ElementsAre(HasSubstr("3 processes share 2 cores of a")));
}

TEST(OddAbout, HostsThatAreUnevenlyFull) {
  EXPECT_THAT(odd_about({{0, "a", {0}, 2}, {1, "a", {1}, 2}, {2, "b", {0, 1}, 2}}),
              ElementsAre(HasSubstr("between 1 and 2 processes")));
}

TEST(OddAbout, AProcessWithOneCoreBesideOneWithSeven) {
  EXPECT_THAT(odd_about({{0, "a", {0}, 8}, {1, "a", {1, 2, 3, 4, 5, 6, 7}, 8}}),
              ElementsAre(AllOf(HasSubstr("rank 0 may use 1 core"), HasSubstr("PE=4"))));
}

TEST(OddAbout, AJobOfSeveralTasksOfWhichNobodyStartedMoreThanOne) {
  std::map<std::string, std::string> variables{{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}};
  const auto odd = [&] {
    return odd_about_one_alone([&](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  EXPECT_THAT(odd(), AllOf(HasSubstr("4 tasks"), HasSubstr("put srun before the command")));
  variables["SLURM_NTASKS"] = "1";
  EXPECT_EQ(odd(), "");
  variables["SLURM_JOB_NUM_NODES"] = "2";
  EXPECT_THAT(odd(), HasSubstr("2 nodes"));
  variables["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(odd(), "");
  EXPECT_EQ(odd_about_one_alone([](const char*) -> const char* { return nullptr; }), "");
}

TEST(ShowLaunch, NamesWhatOfALauncherIsMissing) {
  using Variables = std::map<std::string, std::string>;
  for (const auto& [variables, said] : std::vector<std::pair<Variables, std::string>>{
           {{}, "started alone: no launcher has set its variables"},
           {{{"NODE_RANK", "0"}}, "started alone: no launcher has set its variables"},
           {{{"RANK", "0"}},
            "started alone, and a training would be refused: RANK is set (0), but WORLD_SIZE is not"},
           {{{"OMPI_COMM_WORLD_RANK", "1"}},
            "started alone, and a training would be refused: OMPI_COMM_WORLD_RANK is set (1), but "
            "OMPI_COMM_WORLD_SIZE is not"},
           {{{"LOCAL_RANK", "2"}},
            "started alone, and a training would be refused: LOCAL_RANK is set (2), but RANK and WORLD_SIZE "
            "are not"},
           {{{"RANK", "0"}, {"WORLD_SIZE", "1"}},
            "started as the only process by the environment (WORLD_SIZE)"}})
    EXPECT_EQ(how_alone([&](const char* name) {
                const auto found = variables.find(name);
                return found == variables.end() ? nullptr : found->second.c_str();
              }),
              said);
}

TEST(ShowMembers, IsOneTableOfRankHostLocalRankCoresAndGpu) {
  std::ostringstream out;
  show_members(
      {{.process = 0, .host = "a", .cores = {0, 1, 2, 5}, .cores_of_host = 8, .gpus = "none"},
       {.process = 11, .host = "node17", .cores = {3}, .cores_of_host = 4, .local = 3, .gpus = "0,1 of 4"}},
      out);
  EXPECT_EQ(out.str(),
            "  rank  host    local rank  cores           GPU\n"
            "  0     a       0           0-2,5 (4 of 8)  none\n"
            "  11    node17  3           3 (1 of 4)      0,1 of 4\n");
}

TEST(ShowLaunch, SaysWhatWouldStartSeveralProcessesWhereNobodyDid) {
  std::ostringstream out;
  show_launch(nullptr, out);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("started alone"), HasSubstr("mpirun"), HasSubstr("MPI")));
}

}  // namespace
}  // namespace paceline::cluster
