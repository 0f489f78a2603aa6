#pragma once

/// Writes the job script of `paceline sbatch`. Pure functions.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::cluster {

/// The command line that asks Slurm for state, reason and expected start of `job`.
[[nodiscard]] std::vector<std::string> queue_line(const std::string& job);

/// Whether Slurm has considered the job since it was submitted; before, it has neither reason nor start.
[[nodiscard]] bool is_considered(std::string_view answer);

/// What shortens the wait of a pending job, by its reason: commands and options. "" if it does not wait.
[[nodiscard]] std::string queue_advice(std::string_view answer, const std::string& job);

/// The answer to queue_line() as one sentence: "queue: PENDING, Priority (jobs before it come first);
/// expected start 2026-11-25T08:00:00". "" for an invalid answer, as for a job that has left the queue.
[[nodiscard]] std::string queue_sentence(std::string_view answer);

/// What joins the processes of the job.
enum class BatchMpi {
  automatic,  ///< MPI if this Slurm offers PMIx, else TCP; decided when the job begins
  pmix,
  none,  ///< TCP
};

struct BatchOptions {
  int nodes = 1;
  int workers_per_node = 1;  ///< processes of one worker each
  int cores_per_worker = 0;  ///< 0: not requested
  int gpus_per_node = 0;     ///< 0: not requested
  std::string memory;        ///< per node, "16G"; here and below, empty means not requested
  std::string time = "01:00:00";
  std::string account, partition, qos, constraint;
  std::string mail;  ///< address for a mail at the job's end
  std::string name = "paceline";
  std::vector<std::string> setup;  ///< shell lines before anything else: "module load openmpi"
  std::string container;           ///< an image in which the program runs, by apptainer or singularity
  std::string stage;               ///< a local directory of each node to which the data are copied first
  BatchMpi mpi = BatchMpi::automatic;
  std::vector<std::string> slurm;  ///< further options of sbatch, "--reservation=x"
  int array = 0;                   ///< jobs among which the cells of a study are divided; 0: one job
  int array_at_once = 0;           ///< how many of them run at once; 0: the cluster decides
  bool requeue = true;  ///< after losing a host or process the job restarts, from the last checkpoint
  std::filesystem::path script = "paceline.sbatch";
  bool submit = false;
  std::string status = {};  ///< a job about which to ask; nothing is written then
};

/// What the job runs.
struct BatchCommand {
  std::string program;
  std::vector<std::string> words;  ///< the first is the command: train, comm, or one that measures cells
  std::filesystem::path out;       ///< its --out
  std::string data;                ///< its --data with a path, for --stage
  bool has_mpi = true;             ///< whether the program was built with MPI
};

/// Completes `options` for a command on GPUs, so that there is one worker per GPU. If the user gave only the
/// number of workers or of GPUs, the other becomes equal. `sentence` receives what was completed, or "". A
/// pure function.
[[nodiscard]] BatchOptions a_worker_a_gpu(BatchOptions options, const std::string& device,
                                          bool are_workers_given, std::string& sentence);

/// The job script for `command`. A requeued job continues: train resumes from a checkpoint in `out`; measured
/// cells are kept; comm, which takes a minute, begins again.
///
/// Errors   Error(usage): --stage with data that have no files
[[nodiscard]] std::string batch_script(const BatchOptions& options, const BatchCommand& command);

/// The script that joins the results with options.array. Task I of the job runs part I of the cells into
/// out/part-I, by itself; a lost task does not affect the others. This script's job begins when all of them
/// have ended, successfully or not, and makes one report of their records. (The parts are not continued as
/// one study, since their records are from several hosts, and a study measures its cells on one.)
///
/// Errors   Error(usage): the command has no cells (train, comm), or chooses them as it runs (search)
[[nodiscard]] std::string join_script(const BatchOptions& options, const BatchCommand& command);

/// The path of that script: "paceline-join.sbatch" beside "paceline.sbatch".
[[nodiscard]] std::filesystem::path join_path(const std::filesystem::path& script);

}  // namespace paceline::cluster
