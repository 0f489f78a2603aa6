#include "cluster/batch_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "cluster/launch_line.h"
#include "data/spec.h"

namespace paceline::cluster {
namespace {

struct Answer {
  std::string state, reason, start;
};

/// Parses "PENDING|Priority|2026-11-25T08:00:00".
std::optional<Answer> read_answer(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  const auto first = text.find('|');
  const auto second = first == std::string_view::npos ? first : text.find('|', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  return Answer{.state = std::string(text.substr(0, first)),
                .reason = std::string(text.substr(first + 1, second - first - 1)),
                .start = std::string(text.substr(second + 1))};
}

bool is_known(const std::string& start) { return !start.empty() && start != "N/A" && start != "Unknown"; }

/// Explanations of the most frequent reasons, and what to do; others explain themselves.
struct Reason {
  std::string_view name, meaning, advice;
};

constexpr std::string_view kAskLess =
    "ask for a shorter --time or fewer --nodes, which fit into gaps; sinfo shows partitions with idle nodes, for "
    "--partition";

constexpr Reason kReasons[] = {
    {"Priority", "jobs before it come first", kAskLess},
    {"Resources", "it is next, and waits until enough nodes are free", kAskLess},
    {"Dependency", "it waits for another job", "scontrol show job names that one"},
    {"BeginTime", "its start time (--begin) has not come", "scontrol update StartTime=now starts it earlier"},
    {"JobHeldUser", "a user holds it", "scontrol release lets it go"},
    {"JobHeldAdmin", "an administrator holds it", "ask the operators"},
    {"PartitionTimeLimit", "it asks for more time than the partition gives",
     "it never begins so: scancel it and submit with a shorter --time (sinfo -o '%P %l' shows the limits)"},
    {"PartitionNodeLimit", "it asks for more nodes than the partition gives",
     "it never begins so: scancel it and submit with fewer --nodes"},
    {"PartitionDown", "the partition takes no jobs now",
     "submit with another --partition (sinfo shows them)"},
    {"ReqNodeNotAvail", "nodes that it needs are down or reserved",
     "a shorter --time may end before the reservation; sinfo -R says why nodes are down"},
    {"QOS", "a limit of the account is reached",
     "it begins when other jobs of the account end, or ask for less"},
    {"Assoc", "a limit of the account is reached",
     "it begins when other jobs of the account end, or ask for less"},
};

const Reason* found_reason(std::string_view reason) {
  const auto found =
      std::ranges::find_if(kReasons, [&](const auto& one) { return reason.starts_with(one.name); });
  return found == std::end(kReasons) ? nullptr : &*found;
}

/// The script's lines before the command that let a requeued job continue; `$out` is its --out.
std::string going_on(const std::string& command) {
  static const std::string kSetAside =
      " ((${SLURM_RESTART_COUNT:-0})) && [[ -e $out/record.json ]]; then\n"
      "  mv \"$out/record.json\" \"$out/lost.json\"";
  if (command == "train")
    return "# A job that was requeued goes on from its last checkpoint.\n"
           "resume=()\n"
           "if compgen -G \"$out/checkpoint-*.safetensors\" >/dev/null; then\n"
           "  resume=(--resume \"$out\")\n"
           "elif" +
           kSetAside +
           "  # lost before its first checkpoint: from the beginning\n"
           "fi\n";
  if (command == "comm") return "# A job that was requeued measures again.\nif" + kSetAside + "\nfi\n";
  return "# A job that was requeued goes on with the cells that are not measured yet.\n";
}

/// An option for an #SBATCH line. A value with blanks is quoted again, since the shell has removed the
/// quotes.
std::string as_directive(const std::string& option) {
  const auto equals = option.find('=');
  if (equals == std::string::npos || option.find_first_of(" \t", equals) == std::string::npos ||
      option.find_first_of("\"'") != std::string::npos)
    return option;
  return fmt::format("{}=\"{}\"", option.substr(0, equals), option.substr(equals + 1));
}

/// An #SBATCH line; none without a value.
std::string directive(const char* what, const std::string& value) {
  return value.empty() ? "" : fmt::format("#SBATCH --{}={}\n", what, value);
}

/// The #SBATCH lines for account and mail, used by the job and by the job that joins its parts.
std::string who_asks(const BatchOptions& options) {
  const char* const mails = options.requeue ? "END,FAIL,REQUEUE" : "END,FAIL";
  return directive("account", options.account) + directive("partition", options.partition) +
         directive("qos", options.qos) + directive("constraint", options.constraint) +
         directive("mail-user", options.mail) + directive("mail-type", options.mail.empty() ? "" : mails);
}

std::string requests(const BatchOptions& options) {
  const auto number = [](int count) { return count > 0 ? std::to_string(count) : std::string(); };
  auto text = directive("job-name", options.name) + directive("nodes", number(options.nodes)) +
              directive("ntasks-per-node", number(options.workers_per_node)) +
              directive("cpus-per-task", number(options.cores_per_worker)) +
              directive("gpus-per-node", number(options.gpus_per_node)) + directive("mem", options.memory) +
              directive("time", options.time) + who_asks(options);
  if (options.array > 0)
    text +=
        directive("array", fmt::format("1-{}{}", options.array,
                                       options.array_at_once > 0 ? "%" + number(options.array_at_once) : ""));
  text += options.requeue ? "#SBATCH --requeue\n" : "#SBATCH --no-requeue\n";
  text += directive("output", options.name + (options.array > 0 ? "-%A-%a.log" : "-%j.log"));
  text += directive("open-mode", "append");  // a requeued job appends to the log of the first run
  // Slurm signals 60 s before it ends a job, so that the run stops after its step and keeps record and
  // checkpoint.
  text += directive("signal", "TERM@60");
  for (const auto& line : options.slurm) text += "#SBATCH " + as_directive(line) + "\n";
  return text;
}

/// The lines that copy the data to each node, and set `data` to the spec of the copy. `program`: as in a
/// shell.
std::string staging(const BatchOptions& options, const std::string& text, const std::string& program) {
  const auto spec = data::parse_spec(text);
  if (spec.directory.empty())
    base::fail(base::ErrorKind::usage,
               "--stage {} copies the files of the data to each node, but {} has none; leave it out",
               options.stage, text);
  return fmt::format(
      "# The data are copied to a disk of each node first, except files that are there and up to date, and verified.\n"
      "# Where nodes share the disk, one node copies and the others use that copy.\n"
      "stage=\"{}\"\n"
      "data=$(srun --mpi=none --nodes={} --ntasks={} --ntasks-per-node=1{} {} data stage {} --to \"$stage\") || exit\n"
      "data=${{data##*$'\\n'}}  # each node prints the same\n",
      options.stage, options.nodes, options.nodes,
      options.cores_per_worker > 0
          ? fmt::format(" --cpus-per-task={}", options.cores_per_worker * options.workers_per_node)
          : "",
      program, shell_line({text}));
}

/// The words without --data and its value, which the path of the copy replaces.
std::vector<std::string> without_data(const std::vector<std::string>& words) {
  std::vector<std::string> left;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--data")
      ++i;
    else if (!words[i].starts_with("--data="))
      left.push_back(words[i]);
  }
  return left;
}

/// The line that starts the processes, up to the program, and the lines before it.
struct Step {
  std::string before, line;
  std::string program;  ///< as in a shell
};

Step job_step_of(const BatchOptions& options, const BatchCommand& command) {
  Step step;
  // The MPI in a container rarely fits Slurm's PMIx, so containers use TCP.
  const bool asks = options.mpi == BatchMpi::automatic && command.has_mpi && options.container.empty();
  if (asks)
    step.before =
        "# MPI joins the processes where this Slurm offers PMIx, TCP elsewhere.\n"
        "mpi=none\n"
        "if srun --mpi=list 2>&1 | grep -q pmix; then mpi=pmix; fi\n";
  const char* const mpi = asks ? "\"$mpi\"" : options.mpi == BatchMpi::pmix ? "pmix" : "none";
  // Made when the job begins, so that it is in no file; srun passes it on in the environment.
  if (options.mpi != BatchMpi::pmix)
    step.before +=
        "# Only the processes of this job know it, where they meet by TCP (docs/security.md).\n"
        "PACELINE_SECRET=${PACELINE_SECRET:-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')}\n"
        "export PACELINE_SECRET\n";
  step.line = fmt::format("srun --mpi={} --kill-on-bad-exit=1", mpi);
  // Since Slurm 22.05 a step does not inherit the job's cores for each task.
  if (options.cores_per_worker > 0) step.line += fmt::format(" --cpus-per-task={}", options.cores_per_worker);
  step.program = shell_line({command.program});
  if (options.container.empty()) {
    step.line += " " + step.program;
    return step;
  }
  step.before +=
      "container=$(command -v apptainer || command -v singularity) ||\n"
      "  { echo 'neither apptainer nor singularity is here, and the job runs in a container' >&2; exit 4; }\n";
  const auto image = shell_line({options.container});
  step.program = fmt::format("\"$container\" exec {} paceline", image);
  step.line +=
      fmt::format(" \"$container\" exec{} {} paceline", options.gpus_per_node > 0 ? " --nv" : "", image);
  return step;
}

void require_cells(const BatchOptions& options, const BatchCommand& command) {
  const auto& name = command.words.front();
  if (name == "sweep" || name == "scale" || name == "converge" || name == "study") return;
  base::fail(base::ErrorKind::usage,
             "--array {} divides the cells of sweep, scale, converge or study among jobs, but {} {}; leave "
             "it out",
             options.array, name,
             name == "search" ? "chooses its cells as it goes" : "is one run without cells");
}

}  // namespace

std::vector<std::string> queue_line(const std::string& job) {
  return {"squeue", "--noheader", "--jobs", job, "--format", "%T|%r|%S"};
}

bool is_considered(std::string_view text) {
  const auto answer = read_answer(text);
  return !answer || answer->state != "PENDING" || answer->reason != "None" || is_known(answer->start);
}

std::string queue_advice(std::string_view text, const std::string& job) {
  const auto answer = read_answer(text);
  if (!answer || answer->state != "PENDING") return "";
  const Reason* const known = found_reason(answer->reason);
  return fmt::format("{}; squeue --jobs {} --start gives the expected start{}",
                     known != nullptr ? known->advice : kAskLess, job,
                     is_known(answer->start) ? "" : " as soon as Slurm has planned it");
}

std::string queue_sentence(std::string_view text) {
  const auto answer = read_answer(text);
  if (!answer || answer->state.empty()) return "";
  if (answer->state != "PENDING")
    return fmt::format("queue: {}{}", answer->state,
                       is_known(answer->start) ? ", started " + answer->start : "");
  const bool has_reason = !answer->reason.empty() && answer->reason != "None";
  const Reason* const known = found_reason(answer->reason);
  return fmt::format("queue: PENDING, {}{}; {}", has_reason ? answer->reason : "no reason yet",
                     known == nullptr ? "" : fmt::format(" ({})", known->meaning),
                     is_known(answer->start) ? "expected start " + answer->start : "no expected start yet");
}

BatchOptions a_worker_a_gpu(BatchOptions options, const std::string& device, bool are_workers_given,
                            std::string& sentence) {
  if (device != "cuda") return options;
  // GPUs are not requested again if the user requested them with --slurm.
  const auto asks = [](const std::string& option) {
    return option.starts_with("--gres") || option.starts_with("--gpus") || option.starts_with("-G");
  };
  if (std::ranges::any_of(options.slurm, asks)) return options;
  if (options.gpus_per_node == 0) {
    options.gpus_per_node = options.workers_per_node;
    sentence =
        fmt::format("--device cuda: --gpus-per-node {}, one GPU for each worker", options.gpus_per_node);
  } else if (!are_workers_given && options.workers_per_node != options.gpus_per_node) {
    options.workers_per_node = options.gpus_per_node;
    sentence = fmt::format("--device cuda: --workers-per-node {}, one worker for each GPU",
                           options.workers_per_node);
  }
  return options;
}

std::filesystem::path join_path(const std::filesystem::path& script) {
  auto path = script;
  path.replace_filename(script.stem().string() + "-join" + script.extension().string());
  return path;
}

std::string join_script(const BatchOptions& options, const BatchCommand& command) {
  require_cells(options, command);
  const auto out = shell_line({command.out.string()});
  std::string program = shell_line({command.program});
  if (!options.container.empty())
    program = fmt::format("\"$(command -v apptainer || command -v singularity)\" exec {} paceline",
                          shell_line({options.container}));
  std::string text = fmt::format(
      "#!/bin/bash\n#SBATCH --job-name={0}-join\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --time=00:10:00\n"
      "{1}#SBATCH --output={0}-join-%j.log\n\n"
      "# Written by: paceline sbatch. Submitted behind the job whose parts it joins:\n"
      "#   sbatch --dependency=afterany:JOB ...\n",
      options.name, who_asks(options));
  for (const auto& line : options.setup) text += line + "\n";
  return text +
         fmt::format(
             "out={0}\n"
             "for part in {{1..{1}}}; do\n"
             "  [[ -d $out/part-$part ]] || echo \"part $part of {1} left nothing in $out/part-$part: the report "
             "lacks its cells\" >&2\n"
             "done\n"
             "exec {2} report \"$out\"/part-* --html \"$out/report.html\" --markdown \"$out/report.md\" --json "
             "\"$out/report.json\" --csv \"$out/csv\"\n",
             out, options.array, program);
}

std::string batch_script(const BatchOptions& options, const BatchCommand& command) {
  const bool trains = command.words.front() == "train", stages = !options.stage.empty();
  const bool shares = options.array > 0;
  if (shares) require_cells(options, command);
  const auto step = job_step_of(options, command);
  std::string text = "#!/bin/bash\n" + requests(options) + "\n# Written by: paceline sbatch.\n";
  for (const auto& line : options.setup) text += line + "\n";
  text += fmt::format("out={}{}\n{}", shell_line({command.out.string()}),
                      shares ? "/part-$SLURM_ARRAY_TASK_ID" : "", going_on(command.words.front()));
  text += step.before;
  if (stages) text += staging(options, command.data, step.program);
  text += fmt::format("{} {}{}{} --out \"$out\"{}\ncode=$?\n", step.line,
                      shell_line(stages ? without_data(command.words) : command.words),
                      stages ? " --data \"$data\"" : "",
                      shares ? fmt::format(" --only-cells \"$SLURM_ARRAY_TASK_ID/{}\"", options.array) : "",
                      trains ? " \"${resume[@]}\"" : "");
  constexpr int kMostRequeues = 5;  // so that a job that always fails ends
  if (options.requeue)
    text += fmt::format(
        "# Slurm requeues the job when a host is lost; this does it for a lost process: 5, or the signal that\n"
        "# ended it. A signal that asks to stop (129, 130, 143) is none.\n"
        "lost=$((code == 5 || (code > 128 && code != 129 && code != 130 && code != 143)))\n"
        "if grep -qs '\"status\": \"complete\"' \"$out/record.json\"; then lost=0; fi  # on its way out\n"
        "if ((lost && ${{SLURM_RESTART_COUNT:-0}} < {})); then scontrol requeue \"$SLURM_JOB_ID\"; fi\n",
        kMostRequeues);
  return text + "exit $code\n";
}

}  // namespace paceline::cluster
