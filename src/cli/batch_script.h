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

/// A job script that runs `command`. A requeued job goes on: train resumes when a checkpoint is in `out`;
/// cells that are measured are kept; comm, which takes a minute, begins again.
///
/// Errors   Error(usage): --stage, and the data have no files
[[nodiscard]] std::string batch_script(const BatchOptions& options, const BatchCommand& command);

}  // namespace paceline::cli
