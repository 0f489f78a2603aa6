/// The rows of options about collectives, emulated links, processes and hosts.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

#include "base/error.h"
#include "cli/options/option_rows.h"
#include "comm/emulate.h"

namespace paceline::cli {
namespace {

constexpr const char* kBetween = "Between workers";
constexpr const char* kProcesses = "Processes and hosts";
constexpr unsigned kLinked = kTrain | kScale | kComm;

/// "64", "1K", "256M": units of 1024.
std::size_t size_of(Text text) {
  const auto unit = text.empty() ? std::string_view::npos : std::string_view("KMG").find(text.back());
  if (unit == std::string_view::npos) return static_cast<std::size_t>(whole_number(text, 4, kLargestBatch));
  const auto number = text.substr(0, text.size() - 1);
  return static_cast<std::size_t>(whole_number_in(text, "number", number, 1, 1024)) << (10 * (unit + 1));
}

void choose_sizes(Settings& settings, Text text) {
  const auto colon = text.find(':');
  settings.comm.smallest = size_of(text.substr(0, colon));
  settings.comm.largest = colon == Text::npos ? settings.comm.smallest : size_of(text.substr(colon + 1));
  if (settings.comm.largest < settings.comm.smallest)
    base::fail(base::ErrorKind::usage, "must go from small to large, such as 1K:256M, got '{}'", text);
}

std::string size_text(std::size_t bytes) {
  if (bytes % (1 << 20) == 0) return fmt::format("{}M", bytes >> 20);
  return bytes % 1024 == 0 ? fmt::format("{}K", bytes >> 10) : fmt::format("{}", bytes);
}

/// A word for the #SBATCH lines of a job script, without spaces. A job's name is also part of its log's name.
std::string job_word(Text text) {
  static const std::regex form("[A-Za-z0-9._][A-Za-z0-9._,-]*");
  const std::string word(text);
  if (!std::regex_match(word, form))
    base::fail(base::ErrorKind::usage, "must be of letters, digits, '.', '_', ',' and '-', got '{}'", word);
  return word;
}

/// A time in one of Slurm's forms: MM, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS.
std::string job_time(Text text) {
  static const std::regex form("[0-9]+(:[0-9]{1,2}){0,2}|[0-9]+-[0-9]{1,2}(:[0-9]{1,2}){0,2}");
  const std::string time(text);
  if (!std::regex_match(time, form))
    base::fail(base::ErrorKind::usage, "must be HH:MM:SS, D-HH:MM:SS or minutes, got '{}'", time);
  return time;
}

/// Slurm's --mem: "16G", "16000" (megabytes).
std::string job_memory(Text text) {
  static const std::regex form("[0-9]+[KMGT]?");
  const std::string memory(text);
  if (!std::regex_match(memory, form))
    base::fail(base::ErrorKind::usage, "must be a number followed by K, M, G or T, such as 16G, got '{}'",
               memory);
  return memory;
}

std::string job_constraint(Text text) {
  static const std::regex form("[A-Za-z0-9_.,:|&*!()\\[\\]=-]+");
  const std::string constraint(text);
  if (!std::regex_match(constraint, form))
    base::fail(base::ErrorKind::usage, "must be names of features joined by & or |, without blanks, got '{}'",
               constraint);
  return constraint;
}

std::string mail_address(Text text) {
  static const std::regex form("[A-Za-z0-9._%+-]+(@[A-Za-z0-9.-]+)?");
  const std::string address(text);
  if (!std::regex_match(address, form))
    base::fail(base::ErrorKind::usage, "must be one address, such as me@example.org, got '{}'", address);
  return address;
}

/// The values of an option that may be given several times.
std::vector<std::string> lines_of(Text text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::vector<std::string> slurm_options(Text text) {
  auto options = lines_of(text);
  for (const auto& one : options)
    if (!one.starts_with("-"))
      base::fail(base::ErrorKind::usage,
                 "must be an option as sbatch takes it, such as --slurm=--reservation=x, got '{}'", one);
  return options;
}

/// A directory that is written between double quotes in the script: variables are expanded on the node;
/// commands are refused.
std::string stage_directory(Text text) {
  static const std::regex form("[A-Za-z0-9_./${}:@%+-]+");
  const std::string directory(text);
  if (!std::regex_match(directory, form))
    base::fail(
        base::ErrorKind::usage,
        "must be a directory, in which variables may stand ('$SLURM_TMPDIR/data'), without blanks, got "
        "'{}'",
        directory);
  return directory;
}

/// A name that Linux allows for an interface: no blanks or slashes. Each host later checks that it exists.
std::string network_interface(Text text) {
  constexpr std::size_t kLongest = 15;
  static const std::regex form("[A-Za-z0-9_.:@-]+");
  const std::string name(text);
  if (name.size() > kLongest || !std::regex_match(name, form))
    base::fail(base::ErrorKind::usage,
               "must be the name of a network interface, such as eth0 or ib0, got '{}'", name);
  return name;
}

void choose_array(cluster::BatchOptions& options, Text text) {
  constexpr int kMostTasks = 1000;  // Slurm's default limit
  const auto percent = text.find('%');
  options.array =
      static_cast<int>(whole_number_in(text, "number of jobs", text.substr(0, percent), 1, kMostTasks));
  options.array_at_once = percent == Text::npos
                              ? 0
                              : static_cast<int>(whole_number_in(text, "number of jobs at once",
                                                                 text.substr(percent + 1), 1, kMostTasks));
}

const std::vector<std::string> kBatchMpis{"auto", "pmix", "none"};           // as BatchMpi
const std::vector<std::string> kStarters{"auto", "mpirun", "srun", "here"};  // as LaunchBy
const std::vector<std::string> kParallel{"all-reduce", "data-parallel"};

using train::Placement;

std::vector<Placement> placements_of(Text text) {
  if (text == "packed") return {Placement::packed};
  if (text == "spread") return {Placement::spread};
  if (text == "both" || text == "packed,spread") return {Placement::packed, Placement::spread};
  base::fail(base::ErrorKind::usage, "must be packed, spread or both, got '{}'", text);
}

std::string text_of_placements(const std::vector<Placement>& placements) {
  if (placements.size() > 1) return "both";
  return placements.front() == Placement::packed ? "packed" : "spread";
}

constexpr Option kLaunchRows[] = {
    {"sizes", "A:B", kBetween,
     "message sizes in bytes, from A to B, each 4 times the one before (K, M, G: 1024)", kComm,
     [](S& s, Text t) { choose_sizes(s, t); },
     [](const S& s) { return size_text(s.comm.smallest) + ":" + size_text(s.comm.largest); }, kNoRival,
     false},
    {"repeats", "N", kBetween, "measurements of each size (5 times as many up to 64K)", kComm,
     [](S& s, Text t) { s.comm.repeats = small(t, 1, 100000); },
     [](const S& s) { return whole(s.comm.repeats); }, kNoRival, false},
    {"parallel", "HOW", kBetween,
     "all-reduce: every worker has data, weights and optimizer, and gradients are summed among all; "
     "data-parallel: only worker 0 has them, and sends or receives all inputs, outputs, weights and "
     "gradients in each step, as in torch.nn.DataParallel (one process)",
     kRuns, [](S& s, Text t) { s.train.data_parallel = one_of(t, kParallel) == 1; },
     [](const S& s) { return kParallel[s.train.data_parallel ? 1 : 0]; }},
    {"gradients-as", "fp32|bf16", kBetween,
     "format in which gradients are sent between processes; bf16 halves the bytes, and sums are "
     "rounded to it",
     kTrain,
     [](S& s, Text t) {
       if (t != "fp32" && t != "bf16")
         base::fail(base::ErrorKind::usage, "must be fp32 or bf16, got '{}'", t);
       s.train.gradients_as_bf16 = t == "bf16";
     },
     [](const S& s) { return std::string(s.train.gradients_as_bf16 ? "bf16" : "fp32"); }},
    {"shared-memory", "", kBetween,
     "processes of one host reduce in shared memory; off: by messages, as between hosts", kRuns | kComm,
     [](S& s, Text t) { s.train.shared_memory = truth(t); },
     [](const S& s) { return yes_no(s.train.shared_memory); }},
    {"emulate-link", "SPEC", kBetween,
     "delay messages as this link between workers would: latency=50us,bandwidth=1GB/s; with "
     ",between=hosts only between hosts; every table says so",
     kLinked,
     [](S& s, Text t) {
       (void)comm::parse_link(t);
       s.train.emulate_link = t;
     },
     [](const S& s) { return s.train.emulate_link; }},
    {"emulate-straggler", "SPEC", kBetween,
     "slow down all of one worker's own work: rank=3,slower=1.3x; every table says so", kLinked,
     [](S& s, Text t) {
       (void)comm::parse_straggler(t);
       s.train.emulate_straggler = t;
     },
     [](const S& s) { return s.train.emulate_straggler; }},
    {"emulate-same-order", "", kBetween,
     "give every epoch the order of the first, as PyTorch's DistributedSampler does if set_epoch is not called",
     kTrain | kConverge, [](S& s, Text t) { s.train.same_order = truth(t); },
     [](const S& s) { return yes_no(s.train.same_order); }},
    {"placement", "packed|spread|both", kProcesses,
     "which processes get the workers, if there are fewer workers than processes: packed fills one "
     "node before the next, spread uses all nodes evenly; both runs each cell of a study both ways, "
     "where they differ",
     kRuns,
     [](S& s, Text t) {
       s.study.placements = placements_of(t);
       s.train.placement = s.study.placements.front();
     },
     [](const S& s) { return text_of_placements(s.study.placements); }},
    {"processes", "N", kProcesses,
     "processes to start; also written -n N (default: the places of --hosts; with --device cuda one for each GPU of this host)",
     kLaunch, [](S& s, Text t) { s.launch.processes = small(t, 1, kManyWorkers); },
     [](const S& s) { return whole_or_none(s.launch.processes); }, kNoRival, false},
    {"hosts", "LIST", kProcesses, "where: a:2,b:2 is two processes on each of hosts a and b (default: here)",
     kLaunch, [](S& s, Text t) { s.launch.hosts = t; }, [](const S& s) { return s.launch.hosts; }, kNoRival,
     false},
    {"by", "WHO", kProcesses,
     "what starts them: mpirun, srun, here (launch itself, on this host), or auto: mpirun for "
     "--hosts, srun in a Slurm allocation, else mpirun if installed, else here",
     kLaunch, [](S& s, Text t) { s.launch.by = static_cast<cluster::LaunchBy>(one_of(t, kStarters)); },
     [](const S& s) { return kStarters[static_cast<std::size_t>(s.launch.by)]; }, kNoRival, false},
    {"meet-within", "SECONDS", kProcesses,
     "how long processes wait at the start until all have come (default: 60; 600 where RANK or torchrun started "
     "them one by one)",
     kInProcesses, [](S& s, Text t) { s.meet_within_s = small(t, 1, 86400); },
     [](const S& s) { return whole_or_none(s.meet_within_s); }, kNoRival, false},
    {"meeting-secret", "FILE", kProcesses,
     "a file that you alone can read (mode 0600) with the secret by which processes recognise one another where they "
     "meet over TCP (default: PACELINE_SECRET, which launch and sbatch set; without one the meeting is open)",
     kInProcesses, [](S& s, Text t) { s.meeting_secret = t; },
     [](const S& s) { return s.meeting_secret.string(); }, kNoRival, false},
    {"interface", "NAME", kProcesses,
     "network interface between hosts, such as ib0 (default: the system's route to the first process)",
     kInProcesses | kLaunch, [](S& s, Text t) { s.interface = network_interface(t); },
     [](const S& s) { return s.interface; }, kNoRival, false},
    {"restarts", "K", kProcesses,
     "when a process is lost, start all again from the last checkpoint, at most K times", kLaunch,
     [](S& s, Text t) { s.launch.restarts = small(t, 0, 1000); },
     [](const S& s) { return whole(s.launch.restarts); }, kNoRival, false},
    {"grace", "SECONDS", kProcesses,
     "how long a run that is told to stop (SIGTERM, Ctrl-C) may take to end its step and write its checkpoint, "
     "before it is ended by force",
     kLaunch, [](S& s, Text t) { s.launch.grace_s = small(t, 0, 86400); },
     [](const S& s) { return whole(s.launch.grace_s); }, kNoRival, false},
    {"print", "", kProcesses, "print the command line that starts them, and start nothing", kLaunch,
     [](S& s, Text t) { s.launch.print = truth(t); }, [](const S& s) { return yes_no(s.launch.print); },
     kNoRival, false},
    {"nodes", "N", kProcesses, "hosts of the job", kSbatch,
     [](S& s, Text t) { s.batch.nodes = small(t, 1, 100000); },
     [](const S& s) { return whole(s.batch.nodes); }, kNoRival, false},
    {"workers-per-node", "N", kProcesses, "processes of one worker on each host", kSbatch,
     [](S& s, Text t) { s.batch.workers_per_node = small(t, 1, kManyWorkers); },
     [](const S& s) { return whole(s.batch.workers_per_node); }, kNoRival, false},
    {"cores", "N", kProcesses, "cores for each worker (default: the cluster's choice)", kSbatch,
     [](S& s, Text t) { s.batch.cores_per_worker = small(t, 1, kManyWorkers); },
     [](const S& s) { return whole_or_none(s.batch.cores_per_worker); }, kNoRival, false},
    {"gpus-per-node", "N", kProcesses,
     "GPUs on each host (default: none are asked for; with --device cuda one for each worker)", kSbatch,
     [](S& s, Text t) { s.batch.gpus_per_node = small(t, 1, 64); },
     [](const S& s) { return whole_or_none(s.batch.gpus_per_node); }, Setting("gpus"), false},
    {"gpus", "N", kProcesses, "older name of --gpus-per-node", kSbatch,
     [](S& s, Text t) { s.batch.gpus_per_node = small(t, 1, 64); },
     [](const S& s) { return whole_or_none(s.batch.gpus_per_node); }, Setting("gpus-per-node"), false},
    {"memory", "SIZE", kProcesses, "memory of each host, 16G (default: the cluster's choice)", kSbatch,
     [](S& s, Text t) { s.batch.memory = job_memory(t); }, [](const S& s) { return s.batch.memory; },
     kNoRival, false},
    {"time", "HH:MM:SS", kProcesses,
     "time limit, after which Slurm ends the job; a minute or two before it the run stops and keeps "
     "its results",
     kSbatch, [](S& s, Text t) { s.batch.time = job_time(t); }, [](const S& s) { return s.batch.time; },
     kNoRival, false},
    {"account", "NAME", kProcesses, "account that is charged (default: the cluster's choice)", kSbatch,
     [](S& s, Text t) { s.batch.account = job_word(t); }, [](const S& s) { return s.batch.account; },
     kNoRival, false},
    {"partition", "NAME", kProcesses, "partition of the cluster (default: the cluster's choice)", kSbatch,
     [](S& s, Text t) { s.batch.partition = job_word(t); }, [](const S& s) { return s.batch.partition; },
     kNoRival, false},
    {"qos", "NAME", kProcesses, "quality of service (default: the cluster's choice)", kSbatch,
     [](S& s, Text t) { s.batch.qos = job_word(t); }, [](const S& s) { return s.batch.qos; }, kNoRival,
     false},
    {"constraint", "EXPRESSION", kProcesses, "features that hosts must have, such as avx512|bigmem", kSbatch,
     [](S& s, Text t) { s.batch.constraint = job_constraint(t); },
     [](const S& s) { return s.batch.constraint; }, kNoRival, false},
    {"mail", "ADDRESS", kProcesses, "address that gets a mail when the job ends, fails or is requeued",
     kSbatch, [](S& s, Text t) { s.batch.mail = mail_address(t); }, [](const S& s) { return s.batch.mail; },
     kNoRival, false},
    {.setting = "setup",
     .value = "COMMAND",
     .group = kProcesses,
     .help = "a line of shell at the beginning of the script, \"module load openmpi\"; may be given several "
             "times",
     .commands = kSbatch,
     .set = [](S& s, Text t) { s.batch.setup = lines_of(t); },
     .get = [](const S& s) { return fmt::format("{}", fmt::join(s.batch.setup, "; ")); },
     .in_recipes = false,
     .is_list = true},
    {"container", "FILE", kProcesses,
     "run the program of this image, by apptainer or singularity, whichever is there", kSbatch,
     [](S& s, Text t) { s.batch.container = t; }, [](const S& s) { return s.batch.container; }, kNoRival,
     false},
    {"stage", "DIR", kProcesses,
     "copy the data to this directory of each host first, such as '$SLURM_TMPDIR', and read them there",
     kSbatch, [](S& s, Text t) { s.batch.stage = stage_directory(t); },
     [](const S& s) { return s.batch.stage; }, kNoRival, false},
    {"mpi", "auto|pmix|none", kProcesses,
     "what joins the processes: MPI through PMIx, or TCP (none); auto: MPI where Slurm offers PMIx", kSbatch,
     [](S& s, Text t) { s.batch.mpi = static_cast<cluster::BatchMpi>(one_of(t, kBatchMpis)); },
     [](const S& s) { return kBatchMpis[static_cast<std::size_t>(s.batch.mpi)]; }, kNoRival, false},
    {.setting = "slurm",
     .value = "OPTION",
     .group = kProcesses,
     .help = "any other option of sbatch as it takes it, \"--reservation=x\"; may be given several times",
     .commands = kSbatch,
     .set = [](S& s, Text t) { s.batch.slurm = slurm_options(t); },
     .get = [](const S& s) { return fmt::format("{}", fmt::join(s.batch.slurm, "; ")); },
     .in_recipes = false,
     .is_list = true},
    {"array", "N[%M]", kProcesses,
     "divide the cells of a study among N jobs, of which at most M run at once; a last job joins "
     "them into one report",
     kSbatch, [](S& s, Text t) { choose_array(s.batch, t); },
     [](const S& s) {
       if (s.batch.array == 0) return std::string();
       return s.batch.array_at_once == 0 ? whole(s.batch.array)
                                         : fmt::format("{}%{}", s.batch.array, s.batch.array_at_once);
     },
     kNoRival, false},
    {"name", "NAME", kProcesses, "name of the job, and beginning of its log's name", kSbatch,
     [](S& s, Text t) { s.batch.name = job_word(t); }, [](const S& s) { return s.batch.name; }, kNoRival,
     false},
    {"requeue", "", kProcesses, "restart from the last checkpoint when a host or a process is lost", kSbatch,
     [](S& s, Text t) { s.batch.requeue = truth(t); }, [](const S& s) { return yes_no(s.batch.requeue); },
     kNoRival, false},
    {"script", "FILE", kProcesses, "the job script to write; its directory must exist", kSbatch,
     [](S& s, Text t) { s.batch.script = t; }, [](const S& s) { return s.batch.script.string(); }, kNoRival,
     false},
    {"submit", "", kProcesses, "hand the script to sbatch", kSbatch,
     [](S& s, Text t) { s.batch.submit = truth(t); }, [](const S& s) { return yes_no(s.batch.submit); },
     kNoRival, false},
    {"status", "JOB", kProcesses,
     "instead of writing a script: ask Slurm why JOB waits and until when, and say what begins earlier",
     kSbatch, [](S& s, Text t) { s.batch.status = t; }, [](const S& s) { return s.batch.status; }, kNoRival,
     false},
    {"plan", "", kProcesses,
     "show what the command would do, and do nothing: each setting and where it comes from, steps, "
     "memory, files, disk, and the time, from older records or a few steps that are timed now",
     kRuns | kLaunch | kSbatch, [](S& s, Text t) { s.plan = truth(t); },
     [](const S& s) { return yes_no(s.plan); }, kNoRival, false},
    {"calibrate", "", kProcesses,
     "with --plan: time a few steps, for some seconds, where no older record tells the time",
     kRuns | kLaunch | kSbatch, [](S& s, Text t) { s.calibrate = truth(t); },
     [](const S& s) { return yes_no(s.calibrate); }, kNoRival, false},
};
static_assert(reads_all(kLaunchRows, kLaunchPart, kStudyPart),
              "a setting of this part of measure/setting.h has no row here");

}  // namespace

std::span<const Option> launch_rows() { return kLaunchRows; }

}  // namespace paceline::cli
