#include "comm/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace paceline::comm {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Launch launch_of(const Variables& variables) {
  return read_launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launch, WithoutALauncherAProcessIsAlone) {
  EXPECT_TRUE(launch_of({}).alone());
  EXPECT_EQ(launch_of({}).by, "");
}

TEST(Launch, KnowsEachLaunchersVariables) {
  const struct {
    Variables variables;
    std::string by;
    int process, processes;
  } cases[] = {
      {{{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "3"}}, "mpirun", 3, 4},
      {{{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_ID", "0"}}, "srun", 1, 2},
      {{{"PMIX_RANK", "5"}}, "PMIx", 5, 0},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}},
       "the environment",
       0,
       2},
  };
  for (const auto& one : cases) {
    const auto launch = launch_of(one.variables);
    EXPECT_THAT(launch.by, HasSubstr(one.by));
    EXPECT_EQ(launch.process, one.process);
    EXPECT_EQ(launch.processes, one.processes);
    EXPECT_FALSE(launch.alone());
  }
}

TEST(Launch, ProcessesThatMustMeetAreToldWhere) {
  Variables variables{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(launch_of(variables).meeting_host, "a");
  EXPECT_EQ(launch_of(variables).meeting_port, 29500);
  for (const auto& [name, value] : Variables{{"MASTER_ADDR", ""}, {"MASTER_PORT", "70000"}}) {
    auto wrong = variables;
    wrong[name] = value;
    EXPECT_THROW((void)launch_of(wrong), base::Error) << name;
    wrong.erase(name);
    EXPECT_THROW((void)launch_of(wrong), base::Error) << name;
  }
  // One process has nobody to meet; mpirun's own variables come first.
  EXPECT_TRUE(launch_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).alone());
  variables.insert({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
  EXPECT_EQ(launch_of(variables).meeting_host, "");
}

TEST(Launch, KnowsWhoSharesTheHostWhereTheLauncherSaysIt) {
  const auto mpirun = launch_of({{"OMPI_COMM_WORLD_RANK", "3"},
                                 {"OMPI_COMM_WORLD_SIZE", "4"},
                                 {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                 {"PMIX_NAMESPACE", "812"}});
  EXPECT_EQ(mpirun.job, "812");
  EXPECT_EQ(mpirun.local, 1);
  EXPECT_EQ(mpirun.locals, 2);
  Variables slurm{{"SLURM_PROCID", "5"},  {"SLURM_STEP_NUM_TASKS", "9"},
                  {"SLURM_STEP_ID", "0"}, {"SLURM_JOB_ID", "7"},
                  {"SLURM_LOCALID", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "3(x2),2,1"}};
  for (const auto& [node, tasks] : {std::pair{"0", 3}, {"1", 3}, {"2", 2}, {"3", 1}, {"4", 0}}) {
    slurm["SLURM_NODEID"] = node;
    EXPECT_EQ(launch_of(slurm).locals, tasks) << "host " << node;
  }
  EXPECT_EQ(launch_of(slurm).job, "7.0");
  EXPECT_EQ(launch_of(slurm).local, 1);
  slurm.erase("SLURM_STEP_TASKS_PER_NODE");
  EXPECT_EQ(launch_of(slurm).locals, 0);
  EXPECT_EQ(launch_of({{"PMIX_RANK", "5"}}).local, -1);
}

TEST(Launch, MpirunInsideAnAllocationIsBelievedBeforeSlurm) {
  const auto launch = launch_of({{"SLURM_PROCID", "0"},
                                 {"SLURM_STEP_NUM_TASKS", "1"},
                                 {"SLURM_STEP_ID", "0"},
                                 {"OMPI_COMM_WORLD_RANK", "2"},
                                 {"OMPI_COMM_WORLD_SIZE", "8"}});
  EXPECT_EQ(launch.processes, 8);
}

TEST(Launch, ABatchScriptWithoutAStepIsAlone) {
  EXPECT_TRUE(launch_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}}).alone());
}

TEST(Launch, ALauncherOfAnotherMpiIsNotTakenForNone) {
  EXPECT_TRUE(launch_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).alone());
  try {
    (void)launch_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}});
    FAIL() << "four processes would each train alone";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::comm);
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("4 processes"), HasSubstr("paceline launch -n 4")));
  }
}

TEST(Launch, AnswersNonsenseWithASentence) {
  for (const Variables& variables :
       {Variables{{"RANK", "two"}, {"WORLD_SIZE", "4"}}, Variables{{"RANK", "4"}, {"WORLD_SIZE", "4"}},
        Variables{{"WORLD_SIZE", "4"}},
        Variables{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "0"}}})
    EXPECT_THROW((void)launch_of(variables), base::Error);
}

}  // namespace
}  // namespace paceline::comm
