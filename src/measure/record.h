#pragma once

/// The record: one JSON file that a run writes and all later code reads.
///
/// Analysis and report know nothing else of a run. A record holds raw samples (each step's time on each
/// rank), the environment and the settings, but no conclusions. A missing figure is std::nullopt, and null in
/// JSON, which has finite numbers only (NaN is written as null). docs/record.md documents it. Comments name
/// the case in which a figure is missing after "none:".

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/environment.h"
#include "measure/gpu_record.h"
#include "measure/ledger.h"
#include "measure/rank_record.h"
#include "measure/training_record.h"

namespace paceline::measure {

/// One bucket's all-reduces over the window. A single worker reduces nothing, so its buckets have only
/// `bytes` and `ready_s`.
struct BucketRecord {
  static constexpr std::size_t kMostReadyTimes = 4096;
  std::int64_t bytes = 0;  ///< size of one all-reduce; Communication::vote_bytes of the last are votes
  // Of the steps of RankRecord::step_s:
  std::vector<double> transfer_s;  ///< shortest duration over ranks
  std::vector<double> duration_s;  ///< rank 0, posting to completion
  /// Rank 0, for those of these steps that are among the first kMostReadyTimes of the window: seconds from
  /// the start of the backward pass until all gradients of the bucket were computed and it was posted. None:
  /// an older record.
  std::optional<std::vector<double>> ready_s = {};
};

/// How the algorithms of a run were chosen, and which they were.
struct KernelsRecord {
  /// "measured": by this run, or by an earlier one on this machine (--measured-kernels). "given": taken from
  /// a record or checkpoint (--kernels-from, or a resume). Otherwise by the layers' shapes: the name of the
  /// program's table for this kind of processor, or "rules" if it has none.
  std::string chosen_by;
  std::map<std::string, std::string> algorithms;  ///< by convolution problem: layer shape and direction
};

/// The epoch with the best result on the validation set, whose weights a training keeps.
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
  std::optional<std::string> path;  ///< if the data set's images are files
  std::int64_t label = 0, predicted = 0;
  double probability = 0;  ///< of the predicted class
  std::string picture;     ///< a small JPEG, beside the record's file, not in it; "": none
};

/// A checkpoint evaluated on one part of a data set, by `paceline evaluate`.
struct EvaluationRecord {
  std::string checkpoint;     ///< its file
  std::int64_t updates = 0;   ///< of its weights
  std::string part = "test";  ///< or "validation"
  std::int64_t samples = 0;
  double loss = 0;                ///< mean, as in a training
  std::int64_t correct = 0;       ///< the label has the largest logit
  std::int64_t correct_in_5 = 0;  ///< the label is among the five largest (all, if there are fewer classes)
  std::vector<std::string> classes;
  std::vector<std::vector<std::int64_t>> confusion;  ///< [label][predicted], counts
  std::vector<MistakeRecord> mistakes;               ///< the most confident first
  std::int64_t reads = 0;  ///< images of the part that were read, counted where they are read
};

/// One collective at one message size, measured by `paceline comm`.
struct CollectiveRecord {
  std::string collective;       ///< "all_reduce"
  bool in_place = true;         ///< the result overwrites the input
  std::int64_t bytes = 0;       ///< X; of an all-gather: its result
  bool correct = true;          ///< every element on every rank, in every repetition
  std::vector<double> seconds;  ///< per repetition, of the slowest rank
};

/// t(X) = alpha + X / bandwidth, fitted over the sizes of one collective, for predictions.
struct LinkFitRecord {
  std::string collective;
  bool in_place = true;
  double alpha_s = 0;
  double bytes_per_s = 0;
  double residual = 0;  ///< root mean square of (t_model - t) / t over the sizes
};

/// Spans of the last steps of a window: microseconds on rank 0's clock from the begin of the first of these
/// steps, rounded to a tenth. Written and read by measure/timeline.h.
struct LastStepsRecord {
  std::int64_t steps = 0;  ///< consecutive steps that are included
  int ranks_left_out = 0;  ///< if there are many, only those that waited least and most are kept
  struct Rank {
    int rank = 0;
    std::optional<double>
        clock_error_us;      ///< upper bound of the error of its times; none: all ranks share a clock
    std::vector<int> phase;  ///< a Phase by its number; transfer and waiting as in the ledger
    std::vector<double> begin_us, length_us;      ///< of each phase
    std::vector<int> bucket;                      ///< of each collective; -1: statistics of a batch norm
    std::vector<double> posted_us, under_way_us;  ///< of each collective: posting, and time to completion
  };
  std::vector<Rank> ranks;
};

/// One step's loss and rate. Kept with --log-steps and for short runs, for curves and comparisons with
/// PyTorch.
struct StepRecord {
  std::int64_t update = 0;
  double loss = 0;  ///< mean over the global batch
  double lr = 0;
  std::optional<double> gradient_norm = {};  ///< with --clip-norm, before clipping
};

/// A rank was lost (its process died or hung): what the run itself knows of it.
struct LossRecord {
  double known_at_s = 0;              ///< UTC, seconds since 1970: when it was detected
  std::optional<double> detection_s;  ///< from the lost rank's last sign of life until then
};

/// Another program that used the processors during the window.
struct OtherProgramRecord {
  std::string name;
  double cores = 0;  ///< mean number of cores that it kept busy
};

/// The peak rates of the cores of a run, measured before it: a matrix product in the caches, and copying more
/// than fits the caches.
struct PeakRecord {
  int threads = 0;         ///< that computed at once
  std::string precision;   ///< of the matrix product: "fp32", "bf16", "fp16"
  double flops_per_s = 0;  ///< of all threads
  double bytes_per_s = 0;  ///< of memory: bytes read plus bytes written
};

/// A lost run of this training, and what restarting cost.
struct RestartRecord {
  std::string reason;                 ///< how it was lost
  int workers = 0;                    ///< of the lost run
  std::optional<double> detection_s;  ///< from its LossRecord; none: the rank that writes records was lost
  std::optional<double> rebuild_s;    ///< from the detection to the next run's first step
  std::optional<std::int64_t> lost_updates,
      lost_samples;  ///< computed after its last checkpoint, lost, and computed again
};

/// Names of ChangeRecord::setting where a resume took other images, by the same --data or another. They hold
/// a blank, as no option does.
inline constexpr const char* kTrainingImages = "training images";
inline constexpr const char* kValidationImages = "validation images";
inline constexpr const char* kTestImages = "test images";
[[nodiscard]] inline bool is_of_images(const std::string& setting) {
  return setting == kTrainingImages || setting == kValidationImages || setting == kTestImages;
}

/// A setting in which a resumed run differs from the run before.
struct ChangeRecord {
  std::string setting;                   ///< its command-line name, or one of those above
  std::optional<std::string> then, now;  ///< none: not given, or without effect in that run
  std::int64_t update = 0;               ///< updates done before it
};

/// A rollback: the training diverged, went back to a checkpoint, and continued at a lower learning rate.
struct RollbackRecord {
  std::int64_t update = 0;  ///< at which it was found
  std::string reason;
  std::int64_t to_update = 0;  ///< of the checkpoint
  double rate_factor = 1;      ///< of the learning rate from then on
};

struct Record {
  static constexpr const char* kSchema = "paceline-record-1";

  /// "train", or the part of a study: "sweep", "scale", "converge", "search"; or, without a training: "comm"
  /// (collectives alone), "evaluate" (a checkpoint)
  std::string kind;
  std::string id;                   ///< unique in its study: "scale-weak-w2-b128-r0"
  std::string status = "complete";  ///< or "interrupted", "failed", "skipped" (see `reason`)
  std::string reason;               ///< one sentence, if the status is not complete
  std::optional<std::int64_t>
      updates_done;                ///< of a failed training; some may be later than its last checkpoint
  std::optional<LossRecord> loss;  ///< a rank was lost
  std::optional<std::vector<RestartRecord>> restarts;    ///< if the training was lost before, oldest first
  std::optional<std::vector<ChangeRecord>> changes;      ///< by resumes of this training, oldest first
  std::optional<std::vector<RollbackRecord>> rollbacks;  ///< of this training (--on-nan), oldest first
  std::optional<std::int64_t> skipped_updates;           ///< of this training (--on-nan)
  std::optional<LossScaleRecord> loss_scale = {};        ///< of this training in fp16
  std::string created;                                   ///< ISO 8601, UTC
  std::string command;                                   ///< as typed
  /// Every option that can change a figure, by its command-line name, as text. Two records may be compared
  /// only if these agree, except for the subject of the comparison.
  std::map<std::string, std::string> settings;
  Environment environment;

  struct Model {
    std::string name;
    std::int64_t parameters = 0;                   ///< trainable
    std::int64_t training_flops = 0;               ///< one sample
    std::optional<std::string> graph_sha256 = {};  ///< of its layers: graph::fingerprint()
    /// Lower bounds of the bytes that a training step moves, if each op reads its inputs and writes its
    /// outputs once: per sample (activations and their gradients), and per step (weights, gradients, the
    /// optimizer's state).
    std::optional<std::int64_t> bytes_a_sample, bytes_a_step;
  } model;
  struct Data {
    std::string spec, name, description;
    bool synthetic = false;
    std::int64_t train_samples = 0, test_samples = 0;
    std::optional<std::int64_t> validation_samples;
    std::int64_t dropped_per_epoch = 0;  ///< samples after the last full global batch
    std::int64_t steps_per_epoch = 0;
    /// Mean stored bytes of a training sample, over some of them: what storage has to deliver. None for data
    /// that are not stored, and in older records.
    std::optional<double> stored_bytes = {};
    /// Of the training set, where it is in shards.
    std::optional<std::int64_t> shards = {};
    /// Where the images of a training are kept, "device" or "host"; none for engines that keep no images, and
    /// in older records.
    std::optional<std::string> images_on = {};
    /// Evaluation resized the shorter side of images to this and took the centre. None: it took all that
    /// fits, or images have one size; older records.
    std::optional<std::int64_t> eval_resize = {};
    /// "HxW": evaluation sees images of this size. None: of that of the training; older records.
    std::optional<std::string> eval_size = {};
    /// Of whole trainings: the names of the classes by label, and data::list_sha256() of each part, "train",
    /// "validation" and "test". None: timed windows, and older records.
    std::optional<std::vector<std::string>> classes = {};
    std::optional<std::map<std::string, std::string>> lists_sha256 = {};
    /// With --class-weights: of each class, as the loss was multiplied.
    std::optional<std::vector<double>> class_weights = {};
  } data;

  int workers = 1;
  int threads_per_worker = 1;
  bool oversubscribed = false;  ///< more worker threads than cores, or several workers on one GPU
  std::int64_t local_batch = 0, global_batch = 0;
  std::string batch_given_as;  ///< "local" or "global": which one the user set
  std::string precision;       ///< "fp32", "bf16", "fp16": the one that was used
  std::string device;          ///< as requested: "cpu", "cuda", "cuda:1", "cuda-on-host"
  /// "NVIDIA H100 80GB HBM3"; none for engines that compute on the host.
  std::optional<std::string> device_name;
  std::string scaling;              ///< "weak", "strong" or "": not a cell of a scaling table
  std::optional<std::string> also;  ///< a second table that this cell belongs to: "sweep"
  std::string variant;              ///< converge: "baseline", "large batch", "+ linear scaling", ...
  int repeat = 0;

  struct LearningRate {
    double base = 0, factor = 1, peak = 0;
    std::string rule;                  ///< "linear", "sqrt", "none"
    std::int64_t reference_batch = 0;  ///< the batch that base belongs to
  } learning_rate;

  struct Memory {
    std::int64_t plan_bytes = 0;  ///< all workers, loaders, and the process itself
    std::map<std::string, std::int64_t> plan_lines;
    std::optional<std::int64_t> peak_bytes;  ///< measured
    std::int64_t available_bytes = 0;        ///< before the run
    /// The device, among those of this process's workers, whose plan takes the largest share of its memory.
    /// Its memory is separate from the host's above.
    struct Device {
      int workers = 1;  ///< that share it
      std::int64_t plan_bytes = 0;
      std::map<std::string, std::int64_t> plan_lines;
      std::int64_t available_bytes = 0;  ///< before the run
      /// Measured at the end of the run, while its engines are open. None: an older record.
      struct Use {
        std::int64_t total_bytes = 0;    ///< of the device
        std::int64_t used_bytes = 0;     ///< by all processes
        std::int64_t engines_bytes = 0;  ///< of it, blocks of this process's engines
      };
      std::optional<Use> use = {};
    };
    std::optional<Device> device;  ///< only for engines with device memory
    [[nodiscard]] bool exceeds_what_there_is() const {
      return plan_bytes > available_bytes || (device && device->plan_bytes > device->available_bytes);
    }
  } memory;

  // The measured window: whole epochs, or K steps after warm-up.
  struct MeasuredWindow {
    std::string unit;  ///< "epoch" or "steps"
    std::int64_t warmup_steps = 0;
    std::int64_t steps = 0;  ///< measured, on each rank
    /// Lists of single steps have one of so many consecutive steps (measure/spans.h); none: each step.
    std::optional<std::int64_t> timed_of;
    std::int64_t samples = 0;            ///< of all ranks together
    double wall_s = 0;                   ///< maximum over ranks, barrier to barrier
    std::optional<double> others_cores;  ///< mean number of cores that other programs kept busy
    /// The busiest visible ones of these programs, at most three.
    std::optional<std::vector<OtherProgramRecord>> others;
    /// For how long the process that was held up longest stood still (measure/pauses.h); none: not known.
    std::optional<double> paused_s;
  } window;
  std::optional<PeakRecord> peak;
  std::optional<double>
      first_step_s;  ///< from the command to its first step, including opening data and making kernels

  std::vector<RankRecord> ranks;
  std::vector<BucketRecord> buckets;
  std::optional<LastStepsRecord> last_steps = {};
  /// Each GPU that ranks computed on, during the window. None: a run on the processor, an older record, or
  /// the driver gave no values (a note says why).
  std::optional<std::vector<GpuRecord>> gpus = {};
  struct Communication {
    std::string communicator;                                 ///< "local", "mpi"; "none" for one worker
    std::optional<std::int64_t> processes;                    ///< with workers; none: one process
    std::optional<std::int64_t> nodes = {};                   ///< hosts of these processes
    std::optional<std::vector<int>> processes_of_nodes = {};  ///< per node, in the order of first ranks
    /// "packed": one node is filled before the next; "spread": evenly over all nodes. None: only one node, or
    /// both give the same processes.
    std::optional<std::string> placement = {};
    std::optional<std::string> parallel =
        {};  ///< --parallel: "data-parallel" (one worker holds the weights, as torch.nn.DataParallel);
             ///< none: every worker does, and gradients are all-reduced
    std::optional<std::string> launcher,
        library;  ///< what started the processes ("mpirun"), and what sends their messages ("Open MPI")
    std::string algorithm;
    std::int64_t gradient_bytes = 0;               ///< per step: the sum of the next three
    std::optional<std::int64_t> parameter_bytes;   ///< gradients of trained parameters
    std::optional<std::int64_t> statistics_bytes;  ///< batch norm's means and variances of the step
    std::optional<std::int64_t> padding_bytes;     ///< between arrays, so that each begins at a cache line
    /// Votes of a step, behind the gradients in the last bucket or in one of their own. None: they have a
    /// collective beside the buckets, or an older record.
    std::optional<std::int64_t> vote_bytes = {};
    /// Per step: statistics that a synchronised batch norm exchanges besides, inside forward and backward.
    std::optional<std::int64_t> norm_bytes, norm_collectives;
    std::int64_t bytes_sent = 0;  ///< by rank 0 in the window, counted by the communicator
    std::optional<std::int64_t> bytes_received = {};  ///< likewise
    std::int64_t collectives = 0;
    std::optional<double> memory_ceiling_gb_per_s;  ///< median bus bandwidth of the step's buckets alone:
                                                    ///< memory limits it in one process
  } communication;

  std::vector<EpochRecord> epochs;
  std::vector<StepRecord> steps;
  /// With --evaluate-steps or --target: every evaluation of the training, by update.
  std::optional<std::vector<EvaluatedUpdateRecord>> evaluations = {};
  std::optional<TargetRecord> target = {};                   ///< with --target
  std::optional<KernelsRecord> kernels = {};                 ///< of engines with a choice
  std::optional<ChosenRecord> chosen;                        ///< of trainings with a validation set
  std::optional<TestSetRecord> test_set;                     ///< of whole trainings
  std::optional<EvaluationRecord> evaluation;                ///< of kind "evaluate"
  std::optional<std::vector<CollectiveRecord>> collectives;  ///< of kind "comm"
  std::optional<std::vector<LinkFitRecord>> link_fits;
  std::vector<std::string> notes;  ///< remarks of the run, besides its figures
  bool has_checksum = true;        ///< of the file that it was read from; no key of the record
};

[[nodiscard]] std::string sentence(const ChangeRecord& change);

/// The final test accuracy of a training: if the test set was held back until the end (--test-set last), that
/// of the epoch whose weights were tested, else of the last epoch. None: the test set was not evaluated then.
[[nodiscard]] std::optional<double> final_test_accuracy(const Record& record);

[[nodiscard]] std::string to_json(const Record& record);
/// Errors   Error(data) naming `where` (a file), the key and the fault, such as an unknown schema
[[nodiscard]] Record record_from_json(const std::string& text, const std::string& where);

/// The data set's name for titles: "cifar10"; of images in a folder or archive the last part of their path,
/// "fruits-360".
[[nodiscard]] std::string name_of_data(const Record& record);

/// Where the picture of a mistake is: evaluation.json has evaluation-mistakes/17.jpg beside it.
[[nodiscard]] std::filesystem::path picture_file(const std::filesystem::path& record, std::int64_t index);
/// Reads the pictures of the mistakes of a record that was read from `path`, as far as they are there.
void read_pictures(const std::filesystem::path& path, Record& record);

/// Writes completely or not at all (base::write_file), pictures first.
void write_record(const std::filesystem::path& path, const Record& record);
[[nodiscard]] Record read_record(const std::filesystem::path& path);

}  // namespace paceline::measure
