#include "comm/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

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
      {{{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_ID", "0"}, {"PMIX_RANK", "1"}},
       "srun",
       1,
       2},
      {{{"PMIX_RANK", "5"}}, "PMIx", 5, 0},
      {{{"RANK", "1"},
        {"WORLD_SIZE", "4"},
        {"MASTER_ADDR", "a"},
        {"MASTER_PORT", "29500"},
        {"TORCHELASTIC_RUN_ID", "none"},
        {"SLURM_PROCID", "0"},  // srun started torchrun, once a host
        {"SLURM_STEP_NUM_TASKS", "2"},
        {"SLURM_STEP_ID", "0"}},
       "torchrun",
       1,
       4},
      {{{"PACELINE_JOB", "12.5"},
        {"RANK", "1"},
        {"WORLD_SIZE", "2"},
        {"LOCAL_RANK", "1"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", "29500"}},
       "paceline launch",
       1,
       2},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}},
       "mpiexec",
       1,
       2},
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

EnvironmentLookup lookup_in(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

TEST(Launch, RefusesHalfOfALauncher) {
  const struct {
    Variables variables;
    std::string set, missing;
  } cases[] = {
      {{{"RANK", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29533"}},
       "RANK is set (3)",
       "WORLD_SIZE is not"},
      {{{"RANK", "0"}, {"WORLD_SIZE", ""}}, "RANK is set (0)", "WORLD_SIZE is not"},
      {{{"LOCAL_RANK", "0"}}, "LOCAL_RANK is set", "RANK and WORLD_SIZE are not"},
      {{{"TORCHELASTIC_RUN_ID", "none"}, {"WORLD_SIZE", "1"}}, "TORCHELASTIC_RUN_ID", "RANK and WORLD_SIZE"},
      {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}, "MASTER_ADDR is set (a)", "RANK and WORLD_SIZE are not"},
      {{{"OMPI_COMM_WORLD_RANK", "1"}}, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE is not"},
      {{{"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK"},
      {{{"PMI_RANK", "1"}}, "PMI_RANK", "PMI_SIZE is not"},
      {{{"PMIX_NAMESPACE", "job"}}, "PMIX_NAMESPACE", "PMIX_RANK is not"},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}},
       "SLURM_PROCID is set (0)",
       "SLURM_STEP_NUM_TASKS is not"},
      {{{"SLURM_PROCID", "2"}, {"SLURM_JOB_ID", "7"}},
       "SLURM_PROCID is set (2)",
       "SLURM_STEP_NUM_TASKS is not"},
      {{{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}}, "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
      {{{"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "2"}}, "HOROVOD_RANK", "RANK and WORLD_SIZE"},
      {{{"NODE_RANK", "1"}, {"LOCAL_RANK", "0"}}, "LOCAL_RANK is set (0)", "RANK and WORLD_SIZE are not"},
      {{{"GROUP_RANK", "0"}, {"RANK", "0"}}, "RANK is set (0)", "WORLD_SIZE is not"},
      {{{"NODE_RANK", "0"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}},
       "MASTER_ADDR",
       "RANK and WORLD_SIZE"},
      {{{"NODE_RANK", "0"}, {"LOCAL_WORLD_SIZE", "4"}}, "LOCAL_WORLD_SIZE", "RANK and WORLD_SIZE"},
  };
  for (const auto& one : cases) try {
      require_whole_launcher(lookup_in(one.variables));
      ADD_FAILURE() << one.set << " counts as no launcher";
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::usage);
      EXPECT_THAT(error.what(), AllOf(HasSubstr(one.set), HasSubstr(one.missing)));
    }
}

TEST(Launch, LeavesAloneWhatIsWholeOrNone) {
  for (const Variables& variables : std::vector<Variables>{
           {},
           {{"WORLD_SIZE", "1"}},
           {{"RANK", "0"}, {"WORLD_SIZE", "1"}},
           {{"LOCAL_RANK", "-1"}},
           {{"NODE_RANK", "0"}},
           {{"NODE_RANK", "3"}, {"NNODES", "8"}},  // of a machine, for every shell on it
           {{"GROUP_RANK", "0"}, {"MASTER_ADDR", "a"}},
           {{"NODE_RANK", "1"}, {"WORLD_SIZE", "1"}, {"RANK", "0"}},
           {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}, {"SLURM_JOB_ID", "7"}},  // for an srun in the script
           {{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}},
           {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}, {"RANK", "3"}},
           {{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "job"}}})
    EXPECT_NO_THROW(require_whole_launcher(lookup_in(variables)));
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

TEST(Launch, KnowsTheAddressesOfThisHostAlone) {
  Variables variables{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "29500"}};
  for (const auto& [host, listens] : {std::pair{"127.0.0.1", "127.0.0.1"},
                                      {"127.8.0.2", "127.8.0.2"},
                                      {"localhost", "127.0.0.1"},
                                      {"::1", "::1"},
                                      {"10.0.0.1", ""},
                                      {"0.0.0.0", ""},
                                      {"::", ""},
                                      {"localhost.evil", ""},
                                      {"a", ""}}) {
    variables["MASTER_ADDR"] = host;
    const auto launch = launch_of(variables);
    EXPECT_EQ(launch.listen_at, listens) << host;
    EXPECT_EQ(launch.is_on_this_host(), !std::string(listens).empty()) << host;
  }
  EXPECT_TRUE(launch_of({{"OMPI_COMM_WORLD_RANK", "0"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}})
                  .is_on_this_host());
}

TEST(Launch, TakesASecretWhereProcessesMeet) {
  Variables variables{{"RANK", "1"},
                      {"WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "a"},
                      {"MASTER_PORT", "29500"},
                      {"PACELINE_SECRET", "0123456789abcdef"}};
  EXPECT_EQ(launch_of(variables).secret, "0123456789abcdef");
  variables["PACELINE_SECRET"] = "";
  EXPECT_EQ(launch_of(variables).secret, "");
  variables["PACELINE_SECRET"] = "not a secret";
  try {
    (void)launch_of(variables);
    FAIL() << "it is too short";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("PACELINE_SECRET must have at least 16 characters"),
                                               ::testing::Not(HasSubstr("not a secret"))));
  }
}

TEST(Launch, TasksOfSrunMeetByTcpUnlessPmixJoinsThem) {
  Variables step{{"SLURM_PROCID", "1"},
                 {"SLURM_STEP_NUM_TASKS", "2"},
                 {"SLURM_STEP_ID", "3"},
                 {"SLURM_JOB_ID", "7"},
                 {"SLURM_STEP_NODELIST", "n[03-04],a"}};
  const auto none = launch_of(step);
  EXPECT_EQ(none.meeting_host, "n03");
  EXPECT_EQ(none.meeting_port, 20000 + 8 * (7 * 37 + 3));
  EXPECT_EQ(none.meeting_ports, 8);
  EXPECT_EQ(none.job, "7.3");
  EXPECT_EQ(none.meet_within.count(), 60);
  auto next = step;
  next["SLURM_STEP_ID"] = "4";
  EXPECT_EQ(launch_of(next).meeting_port, none.meeting_port + 8) << "steps of a job must not meet";
  for (const char* job : {"1", "4294967", "2147483647"}) {
    next["SLURM_JOB_ID"] = job;
    EXPECT_THAT(launch_of(next).meeting_port, ::testing::AllOf(::testing::Ge(20000), ::testing::Lt(30000)));
  }
  for (const char* pmix : {"PMIX_RANK", "PMIX_NAMESPACE"}) {
    auto joined = step;
    joined[pmix] = "1";
    EXPECT_EQ(launch_of(joined).meeting_host, "") << pmix;
  }
  auto told = step;
  told["MASTER_ADDR"] = "login";
  told["MASTER_PORT"] = "4000";
  told["SLURM_DISTRIBUTION"] = "arbitrary";
  EXPECT_EQ(launch_of(told).meeting_host, "login");
  EXPECT_EQ(launch_of(told).meeting_port, 4000);
  told.erase("MASTER_ADDR");
  EXPECT_THROW((void)launch_of(told), base::Error) << "task 0 may be on any of the hosts";
  step.erase("SLURM_STEP_NODELIST");
  EXPECT_THROW((void)launch_of(step), base::Error);
}

TEST(Launch, FindsTheFirstHostOfAList) {
  for (const auto& [list, first] : {std::pair{"n1", "n1"},
                                    {"n[1-2]", "n1"},
                                    {"node[003-004,9],login", "node003"},
                                    {"a,b", "a"},
                                    {"rack[2-3]n[05,07]-ib", "rack2n05-ib"},
                                    {"n[1", ""},
                                    {"", ""}})
    EXPECT_EQ(first_host(list), first) << list;
}

TEST(Launch, TorchrunHoldsItsPortItself) {
  Variables run{{"RANK", "1"},
                {"WORLD_SIZE", "4"},
                {"LOCAL_RANK", "1"},
                {"MASTER_ADDR", "a"},
                {"MASTER_PORT", "29500"},
                {"LOCAL_WORLD_SIZE", "2"},
                {"TORCHELASTIC_RUN_ID", "x"},
                {"TORCHELASTIC_RESTART_COUNT", "1"},
                {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  const auto launch = launch_of(run);
  EXPECT_EQ(launch.meeting_port, 29501);
  EXPECT_EQ(launch.meeting_ports, 8);
  EXPECT_EQ(launch.job, "x.1");
  EXPECT_EQ(launch.locals, 2);
  EXPECT_EQ(launch.meet_within.count(), 600);
  run["MASTER_PORT"] = "65530";
  EXPECT_EQ(launch_of(run).meeting_ports, 5);
  run["MASTER_PORT"] = "65535";
  EXPECT_THROW((void)launch_of(run), base::Error);
  run["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ(launch_of(run).meeting_port, 65535);
  EXPECT_EQ(launch_of(run).meeting_ports, 1);
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
  Variables slurm{{"SLURM_PROCID", "5"},
                  {"SLURM_STEP_NUM_TASKS", "9"},
                  {"SLURM_STEP_ID", "0"},
                  {"SLURM_JOB_ID", "7"},
                  {"SLURM_LOCALID", "1"},
                  {"SLURM_STEP_TASKS_PER_NODE", "3(x2),2,1"},
                  {"SLURM_STEP_NODELIST", "n[1-4]"}};
  for (const auto& [node, tasks] : {std::pair{"0", 3}, {"1", 3}, {"2", 2}, {"3", 1}, {"4", 0}}) {
    slurm["SLURM_NODEID"] = node;
    EXPECT_EQ(launch_of(slurm).locals, tasks) << "host " << node;
  }
  EXPECT_EQ(launch_of(slurm).job, "7.0");
  EXPECT_EQ(launch_of(slurm).local, 1);
  EXPECT_EQ(launch_of(slurm).meeting_host, "n1");
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

TEST(Launch, AnMpiexecOfMpichJoinsThemByItsMpi) {
  EXPECT_TRUE(launch_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).alone());
  const auto launch =
      launch_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_TRUE(launch.is_mpich);
  EXPECT_TRUE(launch.kills_at_a_loss);
  EXPECT_EQ(launch.process, 1);
  EXPECT_EQ(launch.processes, 4);
  EXPECT_EQ(launch.locals, 2);
  EXPECT_EQ(launch.meeting_host, "");
  const auto by_tcp =
      launch_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}});
  EXPECT_FALSE(by_tcp.is_mpich);
  EXPECT_TRUE(by_tcp.kills_at_a_loss);
  EXPECT_EQ(by_tcp.meeting_host, "a");
  EXPECT_FALSE(launch_of({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "8"}}).is_mpich);
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
