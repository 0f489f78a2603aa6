#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/shared_library.h"
#include "cli/commands/commands.h"
#include "cli/plan.h"
#include "cli/screen/screen.h"
#include "cluster/batch_script.h"
#include "cluster/child.h"
#include "cluster/launch_line.h"
#include "comm/mpi/load.h"
#include "measure/record_file.h"

namespace paceline::cli {
namespace {

using cluster::run_in_shell;

/// Runs `line`, which must succeed, and returns its output.
std::string output_of(const std::string& line) {
  auto output = run_in_shell(line);
  if (output.code != 0)
    base::fail(ErrorKind::comm,
               "sbatch: '{}' ended with {} (see above); is this a host from which jobs are submitted?", line,
               output.code);
  return std::move(output.text);
}

/// Why the job waits, until when, and what would begin earlier, as far as Slurm knows within `looks` seconds.
/// "" if it does not say, which is no error.
std::string ask_the_queue(const std::string& job, int looks) {
  const auto line = cluster::shell_line(cluster::queue_line(job)) + " 2>/dev/null";
  for (int look = 1;; ++look) {
    const auto answer = run_in_shell(line);
    if (answer.code != 0) return "";
    if (look < looks && !cluster::is_considered(answer.text)) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      continue;
    }
    const auto advice = cluster::queue_advice(answer.text, job);
    return cluster::queue_sentence(answer.text) + (advice.empty() ? "" : "\n  to begin earlier: " + advice);
  }
}

/// --status: the job's place in the queue, or where to look when it has left it.
int show_status(const std::string& job) {
  if (run_in_shell("command -v squeue > /dev/null 2>&1").code != 0)
    base::fail(ErrorKind::usage,
               "sbatch --status {}: squeue is not installed here; ask on a host of the cluster", job);
  const auto queue = ask_the_queue(job, 1);
  std::printf("%s\n",
              !queue.empty()
                  ? queue.c_str()
                  : fmt::format("job {} is not in the queue: it has ended, or squeue does not answer here; "
                                "sacct --jobs {} says how it ended",
                                job, job)
                        .c_str());
  return 0;
}

void write_script(const std::filesystem::path& path, const std::string& text) {
  measure::require_output(path, "--script");
  base::write_file(path, text);
  if (std::filesystem::is_regular_file(path))  // FIFOs and devices are not made executable
    std::filesystem::permissions(path, std::filesystem::perms::owner_exec,
                                 std::filesystem::perm_options::add);
}

}  // namespace

int sbatch_command(const Settings& settings) {
  if (!settings.batch.status.empty()) return show_status(settings.batch.status);
  std::string of_gpus;
  const cluster::BatchOptions options = cluster::a_worker_a_gpu(
      settings.batch, settings.child_device, settings.is_given("workers-per-node"), of_gpus);
  const auto out =
      settings.child_out.empty() ? std::filesystem::path("paceline-out") / options.name : settings.child_out;
  const auto program = base::program_path().string();
  if (settings.plan) {
    for (const auto& one : planned_settings(settings))
      if (one.origin != "default")
        std::printf("sbatch    %s %s   %s\n", one.name.c_str(), one.value.c_str(), one.origin.c_str());
    return show_child_plan(settings, options.nodes * options.workers_per_node, options.nodes);
  }
  const cluster::BatchCommand command{.program = program,
                                      .words = settings.child,
                                      .out = out,
                                      .data = settings.child_data,
                                      .has_mpi = base::is_there(base::module_path(comm::mpi::kModule))};
  write_script(options.script, cluster::batch_script(options, command));
  const auto join = options.array > 0 ? cluster::join_path(options.script) : std::filesystem::path();
  if (!join.empty()) write_script(join, cluster::join_script(options, command));
  for (const auto& note : settings.notes) std::printf("%s\n", note.c_str());
  if (!of_gpus.empty()) std::printf("%s\n", of_gpus.c_str());
  std::printf("job script: %s   (written%s; --script names another)\n", options.script.c_str(),
              options.script.has_parent_path() ? "" : " into this folder");
  if (options.partition.empty() && options.account.empty() && !options.submit)
    print(
        "it names neither --partition nor --account, so Slurm takes its defaults; sinfo lists partitions, "
        "sacctmgr show associations user=$USER your accounts\n");
  if (!join.empty()) std::printf("and the one that joins its parts: %s\n", join.c_str());
  const auto submit = cluster::shell_line({"sbatch", "--parsable", options.script.string()});
  const auto behind = [&](const std::string& job) {
    return "sbatch --parsable --dependency=afterany:" + job + " " + cluster::shell_line({join.string()});
  };
  if (!options.submit) {
    std::printf(
        "submit it: %s   (or again with --submit)\n",
        join.empty() ? submit.c_str() : fmt::format("job=$({}); {}", submit, behind("${job%;*}")).c_str());
    return 0;
  }
  const auto answer = output_of(submit);  // JOB or JOB;CLUSTER
  const auto job = answer.substr(0, answer.find(';'));
  std::printf("job %s   follow it: squeue --jobs %s; tail -f %s-%s%s.log   end it: scancel %s\n", job.c_str(),
              job.c_str(), options.name.c_str(), job.c_str(), join.empty() ? "" : "-*", job.c_str());
  if (!join.empty()) {
    const auto last = output_of(behind(job));
    std::printf("job %s   begins when all of %s have ended, and joins their parts\n",
                last.substr(0, last.find(';')).c_str(), job.c_str());
  }
  if (const auto queue = ask_the_queue(job, 3); !queue.empty()) {
    std::printf("%s\n", queue.c_str());
    if (queue.find("PENDING") != std::string::npos)
      std::printf("  ask again: paceline sbatch --status %s\n", job.c_str());
  }
  const auto& name = settings.child.front();
  if (name == "train" || name == "comm")
    std::printf("record: %s\n", (out / "record.json").c_str());
  else
    std::printf("records: %s   report: %s\n",
                (join.empty() ? out / "records" : out / "part-*" / "records").c_str(),
                (out / "report.html").c_str());
  return 0;
}

}  // namespace paceline::cli
