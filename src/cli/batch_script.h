#pragma once

/// The job script of `paceline sbatch`. Pure functions.

#include <filesystem>
#include <string>
#include <vector>

namespace paceline::cli {

/// Times that a job asks to be requeued after a process of it was lost: one that dies each time is to end.
inline constexpr int kMostRequeues = 5;

/// What joins the processes of the job.
enum class BatchMpi {
  automatic,  ///< MPI where this Slurm offers PMIx, else TCP: found out as the job begins
  pmix,
  none,  ///< TCP
};

struct BatchOptions {
  int nodes = 1;
  int workers_per_node = 1;  ///< processes of one worker each
  int cores_per_worker = 0;  ///< 0: not asked for
  int gpus_per_node = 0;     ///< 0: not asked for
  std::string memory;        ///< of each node, "16G"; this and what follows empty: not asked for
  std::string time = "01:00:00";
  std::string account, partition, qos, constraint;
  std::string mail;  ///< the address that is told of the job's end
  std::string name = "paceline";
  std::vector<std::string> setup;  ///< lines of shell before anything else: "module load openmpi"
  std::string container;           ///< an image in which the program is run, by apptainer or singularity
  std::string stage;               ///< a directory of each node's own to which the data are copied first
  BatchMpi mpi = BatchMpi::automatic;
  std::vector<std::string> slurm;  ///< further options of sbatch, "--reservation=x"
  int array = 0;                   ///< jobs that share the cells of a study; 0: one job has them all
  int array_at_once = 0;           ///< of them; 0: as the cluster lets
  bool requeue = true;  ///< after a lost host or process the job begins again, from the last checkpoint
  std::filesystem::path script = "paceline.sbatch";
  bool submit = false;
};

/// What the job runs.
struct BatchCommand {
  std::string program;
  std::vector<std::string> words;  ///< the first is the command: train, comm, or one that measures cells
  std::filesystem::path out;       ///< its --out
  std::string data;                ///< its --data, with its path; for --stage
  bool has_mpi = true;             ///< the program was built with MPI
};

/// `options` for a command on GPUs: one worker a GPU. Where only one of the two numbers was given the other
/// follows. `sentence` says which, "" where nothing did. Pure function.
[[nodiscard]] BatchOptions a_worker_a_gpu(BatchOptions options, const std::string& device,
                                          bool are_workers_given, std::string& sentence);

/// A job script that runs `command`. A requeued job goes on: train resumes when a checkpoint is in `out`;
/// cells that are measured are kept; comm, which takes a minute, begins again.
///
/// Errors   Error(usage): --stage, and the data have no files
[[nodiscard]] std::string batch_script(const BatchOptions& options, const BatchCommand& command);

/// With options.array: task I of the job runs part I of the cells into out/part-I, as if alone; a task that
/// is lost changes nothing for the others. This script's job, which begins when all of them have ended, well
/// or not, makes one report of what they left. (The parts are not gone on with as one study: their records
/// are of several hosts, and a study measures its cells on one.)
///
/// Errors   Error(usage): the command has no cells (train, comm), or chooses them as it goes (search)
[[nodiscard]] std::string join_script(const BatchOptions& options, const BatchCommand& command);

/// Where it is written: "paceline-join.sbatch" beside "paceline.sbatch".
[[nodiscard]] std::filesystem::path join_path(const std::filesystem::path& script);

}  // namespace paceline::cli
