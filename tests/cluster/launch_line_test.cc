#include "cluster/launch_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/error.h"
#include "cli/options/arguments.h"
#include "cli/program.h"

namespace paceline::cluster {
namespace {

using cli::Folder;
using cli::run_program;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kTrainWords{"train", "--model", "mnist-cnn"};

TEST(LaunchLine, IsAnMpirunLineThatAShellTakes) {
  const auto line = launch_line({.processes = 4}, "/opt/paceline", kTrainWords);
  EXPECT_THAT(shell_line(line),
              AllOf(HasSubstr("mpirun --quiet"),
                    HasSubstr(" -np 4 --bind-to none /opt/paceline train --model mnist-cnn"),
                    Not(HasSubstr("oversubscribe")), Not(HasSubstr("root"))));
  EXPECT_EQ(shell_line({"a b", "it's", "x"}), "'a b' 'it'\\''s' x");
}

TEST(LaunchLine, TakesTheNumberOfProcessesFromTheHosts) {
  const auto line = shell_line(launch_line({.hosts = "a:2,b:3,c"}, "p", kTrainWords));
  EXPECT_THAT(line, AllOf(HasSubstr("-np 6"), HasSubstr("--host a:2,b:3,c")));
  EXPECT_THROW((void)launch_line({.processes = 3, .hosts = "a:2"}, "p", kTrainWords), base::Error);
  const auto complaint = [](const std::string& hosts) -> std::string {
    try {
      (void)launch_line({.hosts = hosts}, "p", kTrainWords);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  };
  for (const std::string bad : {"b:two", "b:2x", "b:1.5", "b:0", "b:"})
    EXPECT_THAT(complaint("a:2," + bad), HasSubstr("as its number of processes, got '" + bad + "'"));
  EXPECT_THAT(complaint("a:2,,b"), HasSubstr("--hosts must be a list"));
  // ssh would take them for options, and a file of hosts for more lines.
  for (const std::string bad : {"-oProxyCommand=x:1", "-V:1", "b\nc:1", "b;c:1", "$(x):1", ".b", "@b"})
    EXPECT_THAT(complaint("a:2," + bad), HasSubstr("a name of letters, digits")) << bad;
  for (const char* good : {"node-01.example.org:2", "me@node_2", "10.0.0.1:4"})
    EXPECT_EQ(complaint(good), "") << good;
  EXPECT_THROW((void)launch_line({}, "p", kTrainWords), base::Error);
}

TEST(LaunchLine, OfSrunTakesWhatJoinsTheTasks) {
  const auto line = shell_line(
      launch_line({.by = LaunchBy::srun, .processes = 4, .cores_per_task = 2}, "/opt/paceline", kTrainWords));
  EXPECT_EQ(line,
            "srun --mpi=pmix --kill-on-bad-exit=1 --ntasks=4 --cpus-per-task=2 /opt/paceline train --model "
            "mnist-cnn");
  EXPECT_THAT(
      shell_line(launch_line({.by = LaunchBy::srun, .processes = 4, .has_pmix = false}, "p", kTrainWords)),
      AllOf(HasSubstr("--mpi=none"), Not(HasSubstr("cpus-per-task"))));
  EXPECT_THROW((void)launch_line({.by = LaunchBy::srun}, "p", kTrainWords), base::Error);
}

TEST(LaunchLine, HereStartsItselfAndShowsWhatAShellWouldDo) {
  EXPECT_EQ(shell_line(launch_line({.by = LaunchBy::here, .processes = 3}, "/opt/paceline", kTrainWords)),
            "/opt/paceline launch --by here --processes 3 -- train --model mnist-cnn");
  EXPECT_THAT(here_in_shell({.processes = 3}, "/opt/paceline", kTrainWords),
              AllOf(HasSubstr("$(seq 0 2)"), HasSubstr("WORLD_SIZE=3"),
                    HasSubstr("/opt/paceline train --model mnist-cnn & done")));
  EXPECT_THROW((void)launch_line({.by = LaunchBy::here}, "p", kTrainWords), base::Error);
}

TEST(LaunchLine, ChoosesWhoStartsTheProcesses) {
  const Surroundings bare, with_mpirun{.has_mpirun = true};
  const Surroundings job{.has_mpirun = true, .in_allocation = true};
  EXPECT_EQ(choose_starter({}, bare), LaunchBy::here);
  EXPECT_EQ(choose_starter({}, with_mpirun), LaunchBy::mpirun);
  EXPECT_EQ(choose_starter({}, job), LaunchBy::srun);
  EXPECT_EQ(choose_starter({.hosts = "a:2"}, job), LaunchBy::mpirun);
  EXPECT_EQ(choose_starter({.hosts = "a:2"}, bare), LaunchBy::mpirun) << "which then says what to install";
  for (const auto by : {LaunchBy::mpirun, LaunchBy::srun, LaunchBy::here})
    EXPECT_EQ(choose_starter({.by = by}, job), by);
  for (const auto by : {LaunchBy::srun, LaunchBy::here})
    EXPECT_THROW((void)choose_starter({.by = by, .hosts = "a:2"}, job), base::Error);
}

TEST(LaunchLine, GoesOnWithTheHostsThatAnswer) {
  const auto answers = [](const std::string& host) { return host != "b"; };
  const auto left = on_hosts_left({.processes = 5, .hosts = "a:2,b:3,c"}, answers);
  EXPECT_EQ(left.hosts, "a:2,c");
  EXPECT_EQ(left.processes, 3);
  EXPECT_EQ(on_hosts_left({.processes = 2, .hosts = "a:2,b"}, answers).processes, 2);
  EXPECT_EQ(on_hosts_left({.processes = 4}, answers).processes, 4);  // here: nobody to ask
  EXPECT_THROW((void)on_hosts_left({.hosts = "b:4"}, answers), base::Error);
  EXPECT_THAT(shell_line(reach_line({.hosts = "a:2,b"}, "b")), HasSubstr("--host b"));
  const auto again = shell_line(launch_line({.processes = 2, .lost = "at=12.5"}, "p", kTrainWords));
  EXPECT_THAT(again, HasSubstr(" -x PACELINE_LOST=at=12.5 p train"));
  EXPECT_THAT(shell_line(launch_line({.processes = 2, .ear = "7 80 a"}, "p", kTrainWords)),
              AllOf(HasSubstr(" -x PACELINE_EAR p train"), Not(HasSubstr("7 80"))))
      << "the token is for no command line";
  EXPECT_THAT(shell_line(launch_line({.processes = 2, .hosts = "a,b", .is_plain = true}, "p", kTrainWords)),
              HasSubstr(" -x NO_COLOR p train"));
}

TEST(LaunchLine, KnowsWhereOtherHostsMustReachLaunch) {
  const Folder folder;
  const auto file = [&](const char* name, const char* lines) {
    std::ofstream(folder.path() / name) << lines;
    return (folder.path() / name).string();
  };
  const auto own = file("own", "# hosts\nnode1 slots=2\n\nnode1.site 2 all.q UNDEFINED\n");
  const auto two = file("two", "node1\nnode1\nnode2\n");
  const auto job = [](const char* nodes) {
    return std::map<std::string, std::string>{{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", nodes}};
  };
  auto het = job("node1");
  het["SLURM_HET_SIZE"] = "2";
  const struct {
    LaunchOptions options;
    std::map<std::string, std::string> variables;
    bool others;
  } cases[] = {
      {{}, {}, false},
      {{.hosts = "node1:2"}, {}, false},
      {{.hosts = "localhost:2,me@node1.site,127.0.0.1"}, {}, false},
      {{.hosts = "node1:2,node10:2"}, {}, true},
      {{.hosts = "10.0.0.1:2"}, {}, true},
      {{.hosts = "localhost:2"}, job("node[1-2]"), false},
      {{}, job("node[1-2]"), true},
      {{}, job("node2"), true},  // an salloc on the login node
      {{}, job("node1,other"), true},
      {{}, job("node1"), false},
      {{}, {{"SLURM_JOB_ID", "7"}}, true},
      {{}, het, true},
      {{.by = LaunchBy::here}, job("node[1-2]"), false},
      {{.by = LaunchBy::srun}, job("node1"), false},
      {{.by = LaunchBy::srun}, {}, true},
      {{}, {{"PBS_NODEFILE", two}}, true},
      {{}, {{"PBS_NODEFILE", own}}, false},
      {{}, {{"PE_HOSTFILE", own}, {"OMPI_MCA_orte_default_hostfile", two}}, true},
      {{}, {{"LSB_DJOB_HOSTFILE", (folder.path() / "absent").string()}}, true},
  };
  for (const auto& one : cases)
    EXPECT_EQ(may_use_other_hosts(
                  one.options,
                  [&](const char* name) {
                    const auto found = one.variables.find(name);
                    return found == one.variables.end() ? nullptr : found->second.c_str();
                  },
                  "node1"),
              one.others)
        << one.options.hosts << " " << testing::PrintToString(one.variables);
}

TEST(BatchScript, AsksForWhatWasSaidAndGoesOnAfterARequeue) {
  const auto script =
      batch_script({.nodes = 2, .workers_per_node = 4, .cores_per_worker = 8, .time = "02:00:00"},
                   {.program = "/opt/paceline", .words = kTrainWords, .out = "out dir"});
  EXPECT_THAT(
      script,
      AllOf(
          HasSubstr("#!/bin/bash\n"), HasSubstr("#SBATCH --nodes=2\n"),
          HasSubstr("#SBATCH --ntasks-per-node=4\n"), HasSubstr("#SBATCH --cpus-per-task=8\n"),
          HasSubstr("#SBATCH --time=02:00:00\n"), HasSubstr("#SBATCH --requeue\n"), Not(HasSubstr("gpus")),
          HasSubstr("out='out dir'\n"), HasSubstr("--resume \"$out\""),
          HasSubstr("srun --mpi=\"$mpi\" --kill-on-bad-exit=1 --cpus-per-task=8 /opt/paceline train --model "
                    "mnist-cnn --out \"$out\""),
          HasSubstr("scontrol requeue"), HasSubstr("lost.json"), HasSubstr("exit $code\n")));
  EXPECT_THAT(batch_script({.gpus_per_node = 2, .requeue = false},
                           {.program = "p", .words = kTrainWords, .out = "o"}),
              AllOf(HasSubstr("--gpus-per-node=2\n"), HasSubstr("--no-requeue\n"), Not(HasSubstr("scontrol")),
                    Not(HasSubstr("cpus-per-task"))));
}

TEST(BatchScript, OnGpusAsksForOneForEachWorker) {
  std::string said;
  EXPECT_EQ(a_worker_a_gpu({.workers_per_node = 4}, "cuda", true, said).gpus_per_node, 4);
  EXPECT_EQ(said, "--device cuda: --gpus-per-node 4, one GPU for each worker");
  said.clear();
  EXPECT_EQ(a_worker_a_gpu({.gpus_per_node = 8}, "cuda", false, said).workers_per_node, 8);
  EXPECT_EQ(said, "--device cuda: --workers-per-node 8, one worker for each GPU");
  said.clear();
  const auto shared = a_worker_a_gpu({.workers_per_node = 4, .gpus_per_node = 2}, "cuda", true, said);
  EXPECT_EQ(shared.workers_per_node, 4);
  EXPECT_EQ(shared.gpus_per_node, 2);
  for (const char* asked : {"--gres=gpu:h100:4", "--gpus-per-task=1", "-G4"})
    EXPECT_EQ(a_worker_a_gpu({.workers_per_node = 4, .slurm = {asked}}, "cuda", true, said).gpus_per_node, 0)
        << "Slurm is asked already";
  for (const char* device : {"cpu", "cuda-on-host", "cuda:1"})
    EXPECT_EQ(a_worker_a_gpu({.workers_per_node = 4}, device, true, said).gpus_per_node, 0) << device;
  EXPECT_EQ(said, "");
}

TEST(BatchScript, OfCellsKeepsWhatIsMeasuredAndResumesNothing) {
  for (const std::string command : {"sweep", "scale", "converge", "study"}) {
    const auto script = batch_script(
        {.nodes = 2}, {.program = "/opt/paceline", .words = {command, "--repeats", "3"}, .out = "o"});
    EXPECT_THAT(script,
                AllOf(HasSubstr("/opt/paceline " + command + " --repeats 3 --out \"$out\"\n"),
                      Not(HasSubstr("resume")), Not(HasSubstr("lost.json")), HasSubstr("scontrol requeue")));
  }
}

TEST(BatchScript, OfCollectivesBeginsAgain) {
  const auto script = batch_script({}, {.program = "/opt/paceline", .words = {"comm"}, .out = "o"});
  EXPECT_THAT(script, AllOf(HasSubstr("/opt/paceline comm --out \"$out\"\n"), HasSubstr("lost.json"),
                            Not(HasSubstr("resume"))));
}

TEST(BatchScript, AsksForWhatASiteWants) {
  const BatchOptions options{.memory = "16G",
                             .account = "physics",
                             .partition = "short",
                             .qos = "high",
                             .constraint = "avx512|bigmem",
                             .mail = "a@b.c",
                             .setup = {"module load gcc", "export A=1"},
                             .slurm = {"--reservation=x", "--comment=two words"}};
  const auto script = batch_script(options, {.program = "p", .words = kTrainWords, .out = "o"});
  for (const char* line :
       {"mem=16G", "account=physics", "partition=short", "qos=high", "constraint=avx512|bigmem",
        "mail-user=a@b.c", "mail-type=END,FAIL,REQUEUE", "reservation=x", "comment=\"two words\""})
    EXPECT_THAT(script, HasSubstr(std::string("\n#SBATCH --") + line + "\n"));
  EXPECT_LT(script.find("module load gcc\nexport A=1\n"), script.find("srun"));
  EXPECT_LT(script.rfind("#SBATCH"), script.find("module load")) << "Slurm reads up to the first command";
}

TEST(BatchScript, JoinsByTcpWhereNothingElseCan) {
  const BatchCommand command{.program = "/opt/paceline", .words = kTrainWords, .out = "o", .has_mpi = false};
  EXPECT_THAT(batch_script({}, command), AllOf(HasSubstr("srun --mpi=none "), Not(HasSubstr("pmix"))));
  EXPECT_THAT(batch_script({.mpi = BatchMpi::pmix}, command), HasSubstr("srun --mpi=pmix "));
  const auto contained = batch_script({.gpus_per_node = 1, .container = "my image.sif"}, command);
  EXPECT_THAT(contained, AllOf(HasSubstr("apptainer"),
                               HasSubstr("\"$container\" exec --nv 'my image.sif' paceline train"),
                               Not(HasSubstr("/opt/paceline"))));
}

TEST(BatchScript, CopiesTheDataToEachNodeFirst) {
  const BatchCommand command{.program = "p",
                             .words = {"train", "--data", "cifar10:/data/cifar,train=100", "--lr", "1"},
                             .out = "o",
                             .data = "cifar10:/data/cifar,train=100"};
  const auto script = batch_script({.nodes = 2, .stage = "$SLURM_TMPDIR"}, command);
  EXPECT_THAT(script,
              AllOf(HasSubstr("stage=\"$SLURM_TMPDIR\"\n"), HasSubstr("--ntasks=2 --ntasks-per-node=1"),
                    HasSubstr(" p data stage cifar10:/data/cifar,train=100 --to \"$stage\") || exit\n"),
                    HasSubstr(" train --lr 1 --data \"$data\" --out")));
  EXPECT_THROW((void)batch_script({.stage = "/tmp"},
                                  {.program = "p", .words = kTrainWords, .out = "o", .data = "synthetic"}),
               base::Error);
}

TEST(LaunchCommand, PrintsTheLineAndRefusesAWrongCommandBeforeAnythingIsStarted) {
  const auto printed =
      run_program({"launch", "-n", "3", "--by", "mpirun", "--print", "--", "train", "--steps", "5"});
  EXPECT_EQ(printed.code, 0);
  EXPECT_THAT(printed.out, AllOf(HasSubstr("-np 3 "), HasSubstr(" train --steps 5\n")));
  const auto wrong = run_program({"launch", "-n", "3", "--", "train", "--stpes", "5"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--steps"));
  EXPECT_THAT(run_program({"launch", "-n", "2"}).err, HasSubstr("needs the command"));
  EXPECT_THAT(run_program({"launch", "-n", "2", "--", "report"}).err, HasSubstr("not 'report'"));
  EXPECT_THAT(run_program({"launch", "-n", "2", "--", "trian"}).err, HasSubstr("did you mean 'train'?"));
}

TEST(LaunchCommand, NamesTheInterfaceToWhatItStarts) {
  const auto mpirun = run_program(
      {"launch", "-n", "2", "--by", "mpirun", "--interface", "lo", "--print", "--", "train", "--steps", "5"});
  EXPECT_THAT(mpirun.out, AllOf(HasSubstr("--mca btl_tcp_if_include lo --mca oob_tcp_if_include lo"),
                                HasSubstr(" train --interface lo --steps 5\n")));
  const auto wrong =
      run_program({"launch", "-n", "2", "--by", "here", "--interface", "ib7", "--print", "--", "train"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("no network interface of that name"), HasSubstr("it has ")));
  EXPECT_EQ(run_program({"launch", "-n", "2", "--interface", "a/b", "--print", "--", "train"}).code, 2);
}

TEST(LaunchCommand, StartsWhateverSeveralProcessesCanRun) {
  for (const char* command : {"train", "sweep", "scale", "converge", "study", "comm", "doctor"}) {
    const auto printed = run_program({"launch", "-n", "2", "--print", "--", command});
    EXPECT_EQ(printed.code, 0) << command << ": " << printed.err;
    EXPECT_THAT(printed.out, HasSubstr(std::string(" ") + command));
  }
}

TEST(SbatchCommand, RefusesWhatWouldBreakTheScriptsLines) {
  const Folder folder;
  const auto script = (folder.path() / "job.sh").string();
  const auto written = [&](const std::string& option, const std::string& value) {
    return run_program({"sbatch", option, value, "--script", script, "--", "train"});
  };
  for (const auto& [option, value] : {std::pair{"--name", "my run"},
                                      {"--name", "a/b"},
                                      {"--partition", "a b"},
                                      {"--time", "tomorrow"},
                                      {"--time", "1h"},
                                      {"--time", "1:2:3:4"}}) {
    const auto refused = written(option, value);
    EXPECT_EQ(refused.code, 2) << option << " " << value;
    EXPECT_THAT(refused.err, AllOf(HasSubstr(option), HasSubstr(value)));
  }
  for (const char* time : {"90", "10:30", "04:00:00", "2-12", "2-12:30:00"})
    EXPECT_EQ(written("--time", time).code, 0) << time;
  EXPECT_EQ(written("--partition", "short,long").code, 0);
}

TEST(SbatchCommand, WritesAScriptThatAShellReads) {
  const Folder folder;
  const auto script = (folder.path() / "job.sh").string();
  const auto written =
      run_program({"sbatch", "--nodes", "2", "--script", script, "--", "train", "--epochs", "3"});
  EXPECT_EQ(written.code, 0);
  EXPECT_THAT(written.out, HasSubstr("sbatch --parsable"));
  EXPECT_EQ(std::system(("bash -n '" + script + "'").c_str()), 0);
  for (const char* command : {"sweep", "scale", "converge", "study", "comm"}) {
    EXPECT_EQ(run_program({"sbatch", "--script", script, "--", command}).code, 0) << command;
    EXPECT_EQ(std::system(("bash -n '" + script + "'").c_str()), 0) << command;
  }
}

}  // namespace
}  // namespace paceline::cluster
