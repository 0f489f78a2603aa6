/// The rows of options about the messages of `comm`, processes, hosts and jobs.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <regex.h>  // std::regex would take seconds to compile

#include "base/error.h"
#include "cli/options/option_rows.h"

namespace paceline::cli {
namespace {

using Batch = cluster::BatchOptions;
using Launch = cluster::LaunchOptions;

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
    base::fail(ErrorKind::usage, "must go from small to large, such as 1K:256M, got '{}'", text);
}

std::string size_text(std::size_t bytes) {
  if (bytes % (1 << 20) == 0) return fmt::format("{}M", bytes >> 20);
  return bytes % 1024 == 0 ? fmt::format("{}K", bytes >> 10) : fmt::format("{}", bytes);
}

/// What all of a text must look like: an extended regular expression of POSIX, and the rule in words.
struct Form {
  const char *pattern, *rule;
};
template <const Form& form>
std::string formed(Text text) {
  static const auto pattern = [] {
    regex_t compiled{};
    ::regcomp(&compiled, fmt::format("^({})$", form.pattern).c_str(), REG_EXTENDED | REG_NOSUB);
    return compiled;
  }();
  std::string word(text);
  const bool is_cut = word.find('\0') != std::string::npos;  // regexec() would see what stands before it
  if (is_cut || ::regexec(&pattern, word.c_str(), 0, nullptr, 0) != 0)
    base::fail(ErrorKind::usage, "must be {}, got '{}'", form.rule, word);
  return word;
}

/// For the #SBATCH lines of a job script, without spaces. A job's name is also part of its log's name.
constexpr Form kJobWord{"[A-Za-z0-9._][A-Za-z0-9._,-]*", "of letters, digits, '.', '_', ',' and '-'"};
/// Slurm's: MM, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS.
constexpr Form kJobTime{"[0-9]+(:[0-9]{1,2}){0,2}|[0-9]+-[0-9]{1,2}(:[0-9]{1,2}){0,2}",
                        "HH:MM:SS, D-HH:MM:SS or minutes"};
/// Slurm's --mem: "16G", "16000" (megabytes).
constexpr Form kJobMemory{"[0-9]+[KMGT]?", "a number followed by K, M, G or T, such as 16G"};
constexpr Form kJobConstraint{"[][A-Za-z0-9_.,:|&*!()=-]+",
                              "names of features joined by & or |, without blanks"};
constexpr Form kMailAddress{"[A-Za-z0-9._%+-]+(@[A-Za-z0-9.-]+)?", "one address, such as me@example.org"};
/// Written between double quotes in the script: variables are expanded on the node; commands are refused.
constexpr Form kStageDirectory{
    "[A-Za-z0-9_./${}:@%+-]+",
    "a directory, in which variables may stand ('$SLURM_TMPDIR/data'), without blanks"};
/// As Linux allows it: no blanks or slashes. Each host later checks that it exists.
constexpr Form kInterface{"[A-Za-z0-9_.:@-]{1,15}", "the name of a network interface, such as eth0 or ib0"};

std::vector<std::string> slurm_options(Text text) {
  auto options = lines_of(text);
  for (const auto& one : options)
    if (!one.starts_with("-"))
      base::fail(ErrorKind::usage,
                 "must be an option as sbatch takes it, such as --slurm=--reservation=x, got '{}'", one);
  return options;
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

constexpr Row kCommRows[] = {
    {"sizes", "A:B", kBetween,
     "message sizes in bytes, from A to B, each 4 times the one before (K, M, G: 1024)", kComm,
     Field<S>([](S& s, Text t) { choose_sizes(s, t); },
              [](const S& s) { return size_text(s.comm.smallest) + ":" + size_text(s.comm.largest); })},
    {"repeats", "N", kBetween, "measurements of each size (5 times as many up to 64K)", kComm,
     at<&S::comm, &S::Comm::repeats>({.least = 1, .most = 100000})},
};

constexpr Row kLaunchRows[] = {
    {"processes", "N", kProcesses,
     "processes to start; also written -n N (default: the places of --hosts; with --device cuda one for each GPU of this host)",
     kLaunch, at<&S::launch, &Launch::processes>({.least = 1, .most = kManyWorkers})},
    {"hosts", "LIST", kProcesses, "where: a:2,b:2 is two processes on each of hosts a and b (default: here)",
     kLaunch, at<&S::launch, &Launch::hosts>()},
    {"by", "WHO", kProcesses,
     "what starts them: mpirun, srun, here (launch itself, on this host), or auto: mpirun for --hosts, srun "
     "in a Slurm allocation, else mpirun if installed, else here",
     kLaunch, at<&S::launch, &Launch::by>({.words = "auto|mpirun|srun|here"})},
    {"meet-within", "SECONDS", kProcesses,
     "how long processes wait at the start until all have come (default: 60; 600 where RANK or torchrun "
     "started them one by one)",
     kInProcesses, at<&S::meet_within_s>({.least = 1, .most = 86400}), kOnlyTyped},
    {"meeting-secret", "FILE", kProcesses,
     "a file that you alone can read (mode 0600) with the secret by which processes recognise one another "
     "where they meet over TCP (default: PACELINE_SECRET, which launch and sbatch set; without one the "
     "meeting is open)",
     kInProcesses, at<&S::meeting_secret>(), kOnlyTyped},
    {"interface", "NAME", kProcesses,
     "network interface between hosts, such as ib0 (default: the system's route to the first process)",
     kInProcesses | kLaunch, parsed_at<formed<kInterface>, &S::interface>(), kOnlyTyped},
    {"restarts", "K", kProcesses,
     "when a process is lost, start all again from the last checkpoint, at most K times", kLaunch,
     at<&S::launch, &Launch::restarts>({.most = 1000})},
    {"grace", "SECONDS", kProcesses,
     "how long a run that is told to stop (SIGTERM, Ctrl-C) may take to end its step and write its "
     "checkpoint, before it is ended by force",
     kLaunch, at<&S::launch, &Launch::grace_s>({.most = 86400})},
    {"print", "", kProcesses, "print the command line that starts them, and start nothing", kLaunch,
     at<&S::launch, &Launch::print>()},
    {"nodes", "N", kProcesses, "hosts of the job", kSbatch,
     at<&S::batch, &Batch::nodes>({.least = 1, .most = 100000})},
    {"workers-per-node", "N", kProcesses, "processes of one worker on each host", kSbatch,
     at<&S::batch, &Batch::workers_per_node>({.least = 1, .most = kManyWorkers})},
    {"cores", "N", kProcesses, "cores for each worker (default: the cluster's choice)", kSbatch,
     at<&S::batch, &Batch::cores_per_worker>({.least = 1, .most = kManyWorkers})},
    {"gpus-per-node", "N", kProcesses,
     "GPUs on each host (default: none are asked for; with --device cuda one for each worker)", kSbatch,
     at<&S::batch, &Batch::gpus_per_node>({.least = 1, .most = 64}), rival("gpus")},
    {"gpus", "N", kProcesses, "older name of --gpus-per-node", kSbatch,
     at<&S::batch, &Batch::gpus_per_node>({.least = 1, .most = 64}), rival("gpus-per-node")},
    {"memory", "SIZE", kProcesses, "memory of each host, 16G (default: the cluster's choice)", kSbatch,
     parsed_at<formed<kJobMemory>, &S::batch, &Batch::memory>()},
    {"time", "HH:MM:SS", kProcesses,
     "time limit, after which Slurm ends the job; a minute or two before it the run stops and keeps its "
     "results",
     kSbatch, parsed_at<formed<kJobTime>, &S::batch, &Batch::time>()},
    {"account", "NAME", kProcesses, "account that is charged (default: the cluster's choice)", kSbatch,
     parsed_at<formed<kJobWord>, &S::batch, &Batch::account>()},
    {"partition", "NAME", kProcesses, "partition of the cluster (default: the cluster's choice)", kSbatch,
     parsed_at<formed<kJobWord>, &S::batch, &Batch::partition>()},
    {"qos", "NAME", kProcesses, "quality of service (default: the cluster's choice)", kSbatch,
     parsed_at<formed<kJobWord>, &S::batch, &Batch::qos>()},
    {"constraint", "EXPRESSION", kProcesses, "features that hosts must have, such as avx512|bigmem", kSbatch,
     parsed_at<formed<kJobConstraint>, &S::batch, &Batch::constraint>()},
    {"mail", "ADDRESS", kProcesses, "address that gets a mail when the job ends, fails or is requeued",
     kSbatch, parsed_at<formed<kMailAddress>, &S::batch, &Batch::mail>()},
    {"setup", "COMMAND", kProcesses,
     "a line of shell at the beginning of the script, \"module load openmpi\"; may be given several times",
     kSbatch,
     Field<S>([](S& s, Text t) { s.batch.setup = lines_of(t); },
              [](const S& s) { return fmt::format("{}", fmt::join(s.batch.setup, "; ")); }),
     kList},
    {"container", "FILE", kProcesses,
     "run the program of this image, by apptainer or singularity, whichever is there", kSbatch,
     at<&S::batch, &Batch::container>()},
    {"stage", "DIR", kProcesses,
     "copy the data to this directory of each host first, such as '$SLURM_TMPDIR', and read them there",
     kSbatch, parsed_at<formed<kStageDirectory>, &S::batch, &Batch::stage>()},
    {"mpi", "auto|pmix|none", kProcesses,
     "what joins the processes: MPI through PMIx, or TCP (none); auto: MPI where Slurm offers PMIx", kSbatch,
     at<&S::batch, &Batch::mpi>({.words = "auto|pmix|none"})},
    {"slurm", "OPTION", kProcesses,
     "any other option of sbatch as it takes it, \"--reservation=x\"; may be given several times", kSbatch,
     Field<S>([](S& s, Text t) { s.batch.slurm = slurm_options(t); },
              [](const S& s) { return fmt::format("{}", fmt::join(s.batch.slurm, "; ")); }),
     kList},
    {"array", "N[%M]", kProcesses,
     "divide the cells of a study among N jobs, of which at most M run at once; a last job joins them into "
     "one report",
     kSbatch,
     Field<S>([](S& s, Text t) { choose_array(s.batch, t); },
              [](const S& s) {
                if (s.batch.array == 0) return std::string();
                return s.batch.array_at_once == 0
                           ? std::to_string(s.batch.array)
                           : fmt::format("{}%{}", s.batch.array, s.batch.array_at_once);
              })},
    {"name", "NAME", kProcesses, "name of the job, and beginning of its log's name", kSbatch,
     parsed_at<formed<kJobWord>, &S::batch, &Batch::name>()},
    {"requeue", "", kProcesses, "restart from the last checkpoint when a host or a process is lost", kSbatch,
     at<&S::batch, &Batch::requeue>()},
    {"script", "FILE", kProcesses, "the job script to write; its directory must exist", kSbatch,
     at<&S::batch, &Batch::script>()},
    {"submit", "", kProcesses, "hand the script to sbatch", kSbatch, at<&S::batch, &Batch::submit>()},
    {"status", "JOB", kProcesses,
     "instead of writing a script: ask Slurm why JOB waits and until when, and say what begins earlier",
     kSbatch, at<&S::batch, &Batch::status>()},
    {"plan", "", kProcesses,
     "show what the command would do, and do nothing: each setting and where it comes from, steps, memory, "
     "files, disk, and the time, from older records or a few steps that are timed now",
     kRuns | kLaunch | kSbatch, at<&S::plan>(), kOnlyTyped},
    {"calibrate", "", kProcesses,
     "with --plan: time a few steps, for some seconds, where no older record tells the time",
     kRuns | kLaunch | kSbatch, at<&S::calibrate>(), kOnlyTyped},
};
static_assert(train::has_rows<S>(kCommRows, "sizes", "sizes"));
static_assert(train::has_rows<S>(kLaunchRows, "processes", "calibrate"));

}  // namespace

std::span<const Row> comm_rows() { return kCommRows; }
std::span<const Row> launch_rows() { return kLaunchRows; }

}  // namespace paceline::cli
