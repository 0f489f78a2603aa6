#pragma once

/// What a run leaves behind: one JSON file that a run writes and everything after it reads.
///
/// The waist of the hourglass: analysis and report know only this. A record holds raw samples (each step's
/// time on each rank), the circumstances, and the settings; never a conclusion. JSON holds finite numbers
/// only: a missing figure is null (std::nullopt, NaN is written as null). Documented in docs/record.md.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/environment.h"
#include "measure/gpu_record.h"
#include "measure/ledger.h"

namespace paceline::measure {

/// One worker's view of the measured window.
struct RankRecord {
  int rank = 0;
  std::optional<std::string> host;  ///< where several processes ran
  std::vector<int> cores;           ///< pinned to; empty: not pinned
  double wall_s = 0;                ///< of the window, measured apart from the ledger
  PhaseSeconds phases{};            ///< the ledger; sums to wall_s within 1 %
  double communication_s = 0;  ///< total: from posting to completion of each all-reduce, union over buckets
  double transfer_s = 0;       ///< of it: moving bytes (shortest duration over ranks of the same collective)
  double late_peer_s = 0;      ///< of it: waiting for a later rank (the rest)
  std::vector<double> step_s;  ///< each step of the window
  /// Of each of them, this rank's own work: the step less what it stood still for collectives, be it for
  /// bytes or for a later rank. As many as step_s; none in records of before this key.
  std::optional<std::vector<double>> own_s = {};
  double loader_prepare_s = 0;  ///< of this rank's batches, summed over the threads that prepared them
  int loader_threads = 0;
  // Empty in records of before these keys.
  std::optional<double> loader_processor_s = {};  ///< of loader_prepare_s, on a processor
  std::optional<std::int64_t> loader_waits = {};  ///< steps that found no batch ready
  std::optional<double> loader_ready = {};        ///< batches that stood ready when a step asked, mean
  std::optional<std::int64_t> loader_queue = {};  ///< the most of them that there can be
  std::optional<int> process = {};  ///< its place among those that had workers; none: there was one
  /// Most memory of its process at once, which the process's other ranks share.
  std::optional<std::int64_t> peak_bytes = {};
  /// Of the window, counted by its communicator.
  std::optional<std::int64_t> bytes_sent = {}, bytes_received = {};
};

/// One bucket's all-reduce over the window, rank 0's view with the minimum over ranks as transfer. One worker
/// reduces nothing: of its buckets there are `bytes` and `ready_s`, and no transfers.
struct BucketRecord {
  static constexpr std::size_t kMostReadyTimes = 4096;
  std::int64_t bytes = 0;          ///< X, of one all-reduce
  std::vector<double> transfer_s;  ///< each step: shortest duration over ranks
  std::vector<double> duration_s;  ///< each step: rank 0, posting to completion
  /// Rank 0, of the first kMostReadyTimes steps of the window: seconds of backward that were done when the
  /// bucket's gradients were final and it was posted. None in records of before this key.
  std::optional<std::vector<double>> ready_s = {};
};

struct EpochRecord {
  std::int64_t epoch = 0;    ///< from 1, as people count
  std::int64_t updates = 0;  ///< so far
  /// Updates that `seconds` and the training figures cover. Fewer than an epoch has: only a part of it is
  /// known. Empty in records of before this key.
  std::optional<std::int64_t> steps = {};
  double seconds = 0;               ///< of training in this epoch, without evaluation
  double lr = 0;                    ///< at its last update
  double train_loss = 0;            ///< mean over the epoch's samples, as they were seen (training form)
  double train_accuracy = 0;        ///< likewise
  std::optional<double> test_loss;  ///< mean over the whole test set
  std::optional<double> test_accuracy;
  std::optional<double> validation_loss;  ///< of the validation set, where there is one
  std::optional<double> validation_accuracy;
};

/// How a training used its test set. In records of before this key, and of timed windows, there is none.
struct TestSetRecord {
  std::string policy;  ///< --test-set: "last", "every", "never"
  /// Images of it that were read, counted where they are read, all runs of this training together; one read
  /// ahead and never evaluated (of a run that was stopped) counts.
  std::int64_t reads = 0;
  /// Of "last": the epoch whose weights were tested (from 1), and what came out.
  std::optional<std::int64_t> epoch = {};
  std::optional<double> loss = {}, accuracy = {};
};

/// How the algorithms of a run were chosen, and which they were.
struct KernelsRecord {
  /// "measured" in this run or one before on this machine, "given" by an earlier run; else by the shape: the
  /// name of the program's table for this kind of processor, or "rules".
  std::string chosen_by;
  std::map<std::string, std::string> algorithms;  ///< by product: a convolution or dense layer, a direction
};

/// What the validation part chose.
struct ChosenRecord {
  std::int64_t epoch = 0;    ///< from 1
  std::int64_t updates = 0;  ///< done after it: the number in its file's name, best-00000812.safetensors
  double validation_loss = 0, validation_accuracy = 0;
  bool stopped_early = false;   ///< --early-stopping ended the training
  std::int64_t reductions = 0;  ///< of the learning rate, by --schedule plateau
};

/// One image that an evaluation got wrong.
struct MistakeRecord {
  std::int64_t index = 0;           ///< in the evaluated part, from 0
  std::optional<std::string> path;  ///< of data sets whose images are files
  std::int64_t label = 0, predicted = 0;
  double probability = 0;  ///< of the predicted class
};

/// A checkpoint on one part of a data set, from `paceline evaluate`.
struct EvaluationRecord {
  std::string checkpoint;     ///< its file
  std::int64_t updates = 0;   ///< that its weights have seen
  std::string part = "test";  ///< or "validation"
  std::int64_t samples = 0;
  double loss = 0;                ///< mean, as a training's
  std::int64_t correct = 0;       ///< the label has the largest logit
  std::int64_t correct_in_5 = 0;  ///< is among the five largest (all, of fewer classes)
  std::vector<std::string> classes;
  std::vector<std::vector<std::int64_t>> confusion;  ///< [label][predicted], counts
  std::vector<MistakeRecord> mistakes;               ///< the most confident first
  std::int64_t reads = 0;                            ///< images of the part that were read, counted there
};

/// One collective at one message size, from `paceline comm`.
struct CollectiveRecord {
  std::string collective;       ///< "all_reduce"
  bool in_place = true;         ///< the result overwrites what was given
  std::int64_t bytes = 0;       ///< X: of an all-gather, its result
  bool correct = true;          ///< every element on every rank, in every repetition
  std::vector<double> seconds;  ///< each repetition, the slowest rank's
};

/// t(X) = alpha + X / bandwidth over the sizes of one collective: what a prediction begins with.
struct LinkFitRecord {
  std::string collective;
  bool in_place = true;
  double alpha_s = 0;
  double bytes_per_s = 0;
  double residual = 0;  ///< root mean square of (t_model - t) / t over the sizes
};

/// What ranks did in the last steps of a window: microseconds on rank 0's clock, from the begin of the first
/// of these steps, to a tenth. Made and read by measure/last_steps.h.
struct LastStepsRecord {
  std::int64_t steps = 0;  ///< that are shown, one after the other
  int ranks_left_out = 0;  ///< of many, those that waited neither least nor most
  struct Rank {
    int rank = 0;
    std::optional<double> clock_error_us;  ///< its times are right within this; none: ranks share a clock
    std::vector<int> phase;  ///< a Phase by its number; transfer and waiting as the ledger has them
    std::vector<double> begin_us, length_us;      ///< of each
    std::vector<int> bucket;                      ///< of each collective; -1: statistics of a batch norm
    std::vector<double> posted_us, under_way_us;  ///< of each: from posting to completion
  };
  std::vector<Rank> ranks;
};

struct StepRecord {  ///< kept with --log-steps or for short runs: parity and curves
  std::int64_t update = 0;
  double loss = 0;  ///< mean over the global batch
  double lr = 0;
};

/// That a rank of a training was lost, as far as the run itself came to know.
struct LossRecord {
  double known_at_s = 0;              ///< UTC, seconds since 1970: when it was known
  std::optional<double> detection_s;  ///< from the last that was heard of the lost rank until then
};

/// Another program that used the processors during the window.
struct OtherProgramRecord {
  std::string name;
  double cores = 0;  ///< that it kept busy, on average
};

/// What the cores of a run can do at most, measured before it: a matrix product in the caches, and the
/// copying of what is larger than them.
struct PeakRecord {
  int threads = 0;         ///< that computed at once
  std::string precision;   ///< of the product: "fp32", "bf16"
  double flops_per_s = 0;  ///< of all of them
  double bytes_per_s = 0;  ///< of memory, read and written
};

/// A run of this training that was lost, and what it cost to start again.
struct RestartRecord {
  std::string reason;                 ///< how it was lost
  int workers = 0;                    ///< that it had
  std::optional<double> detection_s;  ///< as its LossRecord; none: whoever writes the record was lost itself
  std::optional<double> rebuild_s;    ///< from the loss being known to the next run's first step
  std::optional<std::int64_t> lost_updates, lost_samples;  ///< done after its last checkpoint, done again
};

/// A setting in which a resume differs from the run that it goes on with.
struct ChangeRecord {
  std::string setting;                   ///< its command-line name
  std::optional<std::string> then, now;  ///< none: absent, for it was not given or nothing read it
  std::int64_t update = 0;               ///< updates done before it
};

/// That a training diverged, went back to a checkpoint, and went on at a lower learning rate.
struct RollbackRecord {
  std::int64_t update = 0;  ///< at which it was found
  std::string reason;
  std::int64_t to_update = 0;  ///< of the checkpoint
  double rate_factor = 1;      ///< of the learning rate from then on
};

struct Record {
  static constexpr const char* kSchema = "paceline-record-1";

  /// "train", or the study part that a cell belongs to: "sweep", "scale", "converge", "search"; or "comm":
  /// collectives alone, "evaluate": a checkpoint; these two hold no training
  std::string kind;
  std::string id;                   ///< unique in its study: "scale-weak-w2-b128-r0"
  std::string status = "complete";  ///< or "interrupted", "failed", "skipped" (see `reason`)
  std::string reason;               ///< for a status that is not complete: one sentence
  std::optional<std::int64_t>
      updates_done;                ///< of a training that failed: some may be behind its last checkpoint
  std::optional<LossRecord> loss;  ///< of a training that lost a rank
  std::optional<std::vector<RestartRecord>> restarts;    ///< of a training that was lost before, oldest first
  std::optional<std::vector<ChangeRecord>> changes;      ///< by the resumes of this training, oldest first
  std::optional<std::vector<RollbackRecord>> rollbacks;  ///< of this training (--on-nan), oldest first
  std::optional<std::int64_t> skipped_updates;           ///< of this training (--on-nan)
  std::string created;                                   ///< ISO 8601, UTC
  std::string command;                                   ///< as typed
  /// Every option that can change a figure, by its command-line name, as text: two records may be compared
  /// only where these agree apart from what the comparison is about.
  std::map<std::string, std::string> settings;
  Environment environment;

  struct Model {
    std::string name;
    std::int64_t parameters = 0;                   ///< trainable
    std::int64_t training_flops = 0;               ///< one sample
    std::optional<std::string> graph_sha256 = {};  ///< of its layers: graph::fingerprint()
    /// Bytes that a training step moves at least, were caches as large as an op: of each sample (activations
    /// and their gradients), and of the step itself (weights, gradients, the optimizer's state).
    std::optional<std::int64_t> bytes_a_sample, bytes_a_step;
  } model;
  struct Data {
    std::string spec, name, description;
    bool synthetic = false;
    std::int64_t train_samples = 0, test_samples = 0;
    std::optional<std::int64_t> validation_samples;
    std::int64_t dropped_per_epoch = 0;  ///< the tail that a full global batch no longer fits
    std::int64_t steps_per_epoch = 0;
    /// Bytes of a training sample where it is stored, mean over some of them: what storage has to deliver.
    /// None of data that are not stored, and in records of before this key.
    std::optional<double> stored_bytes = {};
    /// Where the images of a training lie, "device" or "host"; none of engines that keep no images, and in
    /// records of before this key.
    std::optional<std::string> images_on = {};
  } data;

  int workers = 1;
  int threads_per_worker = 1;
  bool oversubscribed = false;  ///< more worker threads than cores
  std::int64_t local_batch = 0, global_batch = 0;
  std::string batch_given_as;              ///< "local" or "global": which of the two the user fixed
  std::string precision;                   ///< "fp32", "bf16": what was really used
  std::string device;                      ///< as asked for: "cpu", "cuda", "cuda:1", "cuda-on-host"
  std::optional<std::string> device_name;  ///< "NVIDIA H100 80GB HBM3"; absent for engines of the host
  std::string scaling;                     ///< "weak", "strong" or "" (no scaling cell)
  std::optional<std::string> also;         ///< another kind that this cell is one of too: "sweep"
  std::string variant;                     ///< converge: "baseline", "large batch", "+ linear scaling", ...
  int repeat = 0;

  struct LearningRate {
    double base = 0, factor = 1, peak = 0;
    std::string rule;                  ///< "linear", "sqrt", "none"
    std::int64_t reference_batch = 0;  ///< the batch that base belongs to
  } learning_rate;

  struct Memory {
    std::int64_t plan_bytes = 0;  ///< all workers, loaders, base of the process
    std::map<std::string, std::int64_t> plan_lines;
    std::optional<std::int64_t> peak_bytes;  ///< measured
    std::int64_t available_bytes = 0;        ///< before the run
    /// The fullest device that workers of this process share: its memory is not the host's, nor in the above.
    struct Device {
      int workers = 1;  ///< that share it
      std::int64_t plan_bytes = 0;
      std::map<std::string, std::int64_t> plan_lines;
      std::int64_t available_bytes = 0;  ///< before the run
    };
    std::optional<Device> device;  ///< in records of engines with device memory only
    [[nodiscard]] bool exceeds_what_there_is() const {
      return plan_bytes > available_bytes || (device && device->plan_bytes > device->available_bytes);
    }
  } memory;

  // The measured window: whole epochs, or K steps after warm-up.
  struct MeasuredWindow {
    std::string unit;  ///< "epoch" or "steps"
    std::int64_t warmup_steps = 0;
    std::int64_t steps = 0;              ///< measured, of each rank
    std::int64_t samples = 0;            ///< of all ranks together
    double wall_s = 0;                   ///< longest over ranks, barrier to barrier
    std::optional<double> others_cores;  ///< cores that other programs kept busy meanwhile, on average
    /// The busiest of them that can be seen, at most three.
    std::optional<std::vector<OtherProgramRecord>> others;
  } window;
  std::optional<PeakRecord> peak;
  std::optional<double>
      first_step_s;  ///< from the command to its first step: data opened, kernels made, first batch there

  std::vector<RankRecord> ranks;
  std::vector<BucketRecord> buckets;  ///< empty with one worker
  std::optional<LastStepsRecord> last_steps = {};
  /// Each GPU that ranks computed on, over the window; none of runs on the processor, in records of before
  /// this key, and where the driver told nothing (a note says why).
  std::optional<std::vector<GpuRecord>> gpus = {};
  struct Communication {
    std::string communicator;                                 ///< "local", "mpi"; "none" for one worker
    std::optional<std::int64_t> processes;                    ///< that shared the workers; none: one process
    std::optional<std::int64_t> nodes = {};                   ///< hosts of these processes
    std::optional<std::vector<int>> processes_of_nodes = {};  ///< on each node, in the order of first ranks
    /// "packed": a node is filled before the next; "spread": shared evenly over all nodes. None where both
    /// are the same processes, or where there was one node.
    std::optional<std::string> placement = {};
    std::optional<std::string> parallel = {};      ///< "data-parallel"; none: gradients are all-reduced
    std::optional<std::string> launcher, library;  ///< who started them, and what joined them
    std::string algorithm;
    std::int64_t gradient_bytes = 0;  ///< of one step: the whole flat gradient, which is these three
    std::optional<std::int64_t> parameter_bytes;   ///< gradients of what is trained
    std::optional<std::int64_t> statistics_bytes;  ///< batch norm's means and variances of the step
    std::optional<std::int64_t> padding_bytes;     ///< between them, so that each begins at a whole line
    /// Statistics that a synchronised batch norm exchanges beside it, inside forward and backward; a step's.
    std::optional<std::int64_t> norm_bytes, norm_collectives;
    std::int64_t bytes_sent = 0;  ///< by rank 0 in the window, counted by the communicator
    std::optional<std::int64_t> bytes_received = {};  ///< likewise
    std::int64_t collectives = 0;
    std::optional<double>
        memory_ceiling_gb_per_s;  ///< busbw of a step's own buckets, nothing else running (median)
  } communication;

  std::vector<EpochRecord> epochs;
  std::vector<StepRecord> steps;
  std::optional<KernelsRecord> kernels = {};                 ///< of engines that have a choice
  std::optional<ChosenRecord> chosen;                        ///< of trainings with a validation part
  std::optional<TestSetRecord> test_set;                     ///< of whole trainings
  std::optional<EvaluationRecord> evaluation;                ///< of kind "evaluate"
  std::optional<std::vector<CollectiveRecord>> collectives;  ///< of kind "comm"
  std::optional<std::vector<LinkFitRecord>> link_fits;
  std::vector<std::string> notes;  ///< what the run wants said beside its figures
};

[[nodiscard]] std::string sentence(const ChangeRecord& change);

/// The accuracy on the test set with which a training ends: of the chosen epoch where the test set was held
/// back until then, else of the last epoch. None: it was not evaluated there.
[[nodiscard]] std::optional<double> final_test_accuracy(const Record& record);

[[nodiscard]] std::string to_json(const Record& record);
/// Errors: Error(data) naming `where` (a file), the key and what was wrong; an unknown schema is said as
/// such.
[[nodiscard]] Record record_from_json(const std::string& text, const std::string& where);

/// Writes whole or not at all (base::write_file).
void write_record(const std::filesystem::path& path, const Record& record);
[[nodiscard]] Record read_record(const std::filesystem::path& path);

}  // namespace paceline::measure
