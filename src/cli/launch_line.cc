#include "cli/launch_line.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/shell_word.h"
#include "cli/log.h"
#include "cli/restart.h"
#include "cli/values.h"

namespace paceline::cli {
namespace {

/// The places of "a:2": 2. A host without a number has one.
int places_on(const std::string& host) {
  const auto colon = host.find(':');
  if (colon == 0 || host.find_first_of(" \t'\"") != std::string::npos)
    base::fail(base::ErrorKind::usage, "must be a list such as a:2,b:2 (a name and its processes), got '{}'",
               host);
  if (colon == std::string::npos) return 1;
  return static_cast<int>(whole_number_in(host, "number of processes", host.substr(colon + 1), 1, 4096));
}

/// The places of "a:2,b:2": 4.
int places_of(const std::string& hosts) {
  int places = 0;
  try {
    for (const auto& host : parts(hosts)) places += places_on(host);
  } catch (const base::Error& error) {
    base::fail(base::ErrorKind::usage, "--hosts {}", error.what());
  }
  return places;
}

}  // namespace

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) {
    if (!line.empty()) line += ' ';
    line += base::shell_word(word);
  }
  return line;
}

std::vector<std::string> mpirun_line(const LaunchOptions& options, const std::string& program,
                                     const std::vector<std::string>& words) {
  const int places = options.hosts.empty() ? 0 : places_of(options.hosts);
  const int processes = options.processes > 0 ? options.processes : places;
  if (processes == 0)
    base::fail(
        base::ErrorKind::usage,
        "launch needs a number of processes: paceline launch --processes 4 -- train ..., or --hosts a:2,b:2");
  if (places > 0 && places < processes)
    base::fail(base::ErrorKind::usage, "--hosts {} has places for {} processes, and --processes is {}",
               options.hosts, places, processes);
  // --quiet: what went wrong is said by Paceline, once. The second gives the first process time to write its
  // record when another one is lost.
  std::vector<std::string> line{
      "mpirun", "--quiet", "--mca", "odls_base_sigkill_timeout", "4", "-np", std::to_string(processes)};
  if (!options.hosts.empty()) line.insert(line.end(), {"--host", options.hosts});
  // mpirun would bind each of two processes to one core, on a host of eight too; which cores a worker takes
  // is the program's own care.
  line.insert(line.end(), {"--bind-to", "none"});
  if (options.oversubscribe) line.push_back("--oversubscribe");
  if (options.as_root) line.push_back("--allow-run-as-root");
  if (!options.lost.empty()) line.insert(line.end(), {"-x", fmt::format("{}={}", kLost, options.lost)});
  if (!options.ear.empty()) line.insert(line.end(), {"-x", fmt::format("{}={}", kEar, options.ear)});
  line.push_back(program);
  line.insert(line.end(), words.begin(), words.end());
  return line;
}

std::vector<std::string> reach_line(const LaunchOptions& options, const std::string& host) {
  std::vector<std::string> line{"timeout", "30", "mpirun", "--quiet", "-np", "1", "--host", host};
  if (options.as_root) line.push_back("--allow-run-as-root");
  line.push_back("true");
  return line;
}

LaunchOptions on_hosts_left(LaunchOptions options,
                            const std::function<bool(const std::string& host)>& answers) {
  if (options.hosts.empty()) return options;
  std::string left;
  for (const auto& entry : parts(options.hosts))
    if (answers(entry.substr(0, entry.find(':')))) left += (left.empty() ? "" : ",") + entry;
  if (left.empty())
    base::fail(base::ErrorKind::comm,
               "launch: none of the hosts {} answers; the run can be resumed when they do", options.hosts);
  const int places = places_of(left);
  if (options.processes > places) options.processes = places;
  options.hosts = left;
  return options;
}

namespace {

/// What the script does before the command, so that a requeued job goes on; `$out` is its --out.
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

}  // namespace

std::string batch_script(const BatchOptions& options, const std::string& program,
                         const std::vector<std::string>& words, const std::filesystem::path& out) {
  std::string text = "#!/bin/bash\n", step = "srun --mpi=pmix --kill-on-bad-exit=1";
  const auto ask = [&](const std::string& what) { text += "#SBATCH --" + what + "\n"; };
  // Since Slurm 22.05 a step does not inherit the job's cores for each task.
  if (options.cores_per_worker > 0) step += fmt::format(" --cpus-per-task={}", options.cores_per_worker);
  ask("job-name=" + options.name);
  ask(fmt::format("nodes={}", options.nodes));
  ask(fmt::format("ntasks-per-node={}", options.workers_per_node));
  if (options.cores_per_worker > 0) ask(fmt::format("cpus-per-task={}", options.cores_per_worker));
  if (options.gpus_per_node > 0) ask(fmt::format("gpus-per-node={}", options.gpus_per_node));
  ask("time=" + options.time);
  if (!options.partition.empty()) ask("partition=" + options.partition);
  ask(options.requeue ? "requeue" : "no-requeue");
  ask("output=" + options.name + "-%j.log");
  ask("open-mode=append");  // a requeued job writes on below what the first run said
  // Slurm says before it ends a job: the run stops after its step and keeps record and checkpoint.
  ask("signal=TERM@60");
  const bool trains = words.front() == "train";
  text += fmt::format(
      "\n# Written by: paceline sbatch.\n"
      "out={}\n"
      "{}"
      "{} {} {} --out \"$out\"{}\n"
      "code=$?\n",
      shell_line({out.string()}), going_on(words.front()), step, shell_line({program}), shell_line(words),
      trains ? " \"${resume[@]}\"" : "");
  if (options.requeue)
    text += fmt::format(
        "# Slurm requeues the job when a host is lost; this does it for a lost process: 5, or the signal "
        "that\n"
        "# ended it. A signal that asks to stop (129, 130, 143) is none.\n"
        "lost=$((code == 5 || (code > 128 && code != 129 && code != 130 && code != 143)))\n"
        "if grep -qs '\"status\": \"complete\"' \"$out/record.json\"; then lost=0; fi  # on its way out\n"
        "if ((lost && ${{SLURM_RESTART_COUNT:-0}} < {})); then scontrol requeue \"$SLURM_JOB_ID\"; fi\n",
        kMostRequeues);
  return text + "exit $code\n";
}

}  // namespace paceline::cli
