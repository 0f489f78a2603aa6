#pragma once

/// All options of one training, from the command line and from recipes.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "engine/engine.h"
#include "measure/record.h"

namespace paceline::train {

/// Fails with a sentence about options: Error(usage).
template <typename... Args>
[[noreturn]] void refuse_options(fmt::format_string<Args...> sentence, Args&&... args) {
  base::fail(base::ErrorKind::usage, sentence, std::forward<Args>(args)...);
}

// Parses how often a checkpoint is written ("500steps", "60s", "1epochs"; a bare number is epochs), and
// says whether that much has passed (CheckpointSchedule decides).

struct CheckpointInterval {
  enum class Unit : std::uint8_t { steps, seconds, epochs };
  Unit unit = Unit::epochs;
  double count = 1;  ///< > 0; an integer unless in seconds

  /// Whether a checkpoint is due after `number` updates (`of` steps), or at the end of epoch `number`, from 1
  /// (`of` epochs; seconds are never asked for). The answer is the same on every rank, and in a resumed run.
  [[nodiscard]] bool is_due(Unit of, std::int64_t number) const {
    return unit == of && number % static_cast<std::int64_t>(count) == 0;
  }
  friend bool operator==(const CheckpointInterval&, const CheckpointInterval&) = default;
};

/// Parses an interval; nullopt if `text` is not one.
[[nodiscard]] std::optional<CheckpointInterval> checkpoint_interval(std::string_view text);
/// The text of an interval, as checkpoint_interval() reads it.
[[nodiscard]] std::string text_of(const CheckpointInterval& interval);

/// A figure of the validation set, or without one of the test set, at which a training ends.
struct TrainingTarget {
  bool is_loss = false;  ///< else an accuracy
  double value = 0;      ///< of a mean loss > 0, of an accuracy in (0, 1]

  [[nodiscard]] bool is_reached(double loss, double accuracy) const {
    return is_loss ? loss <= value : accuracy >= value;
  }
  [[nodiscard]] std::string_view quantity() const { return is_loss ? "loss" : "accuracy"; }
};

/// Parses "accuracy=0.97" or "loss=0.1"; nullopt if `text` is neither.
[[nodiscard]] std::optional<TrainingTarget> target_named(std::string_view text);
/// The text of a target, as target_named() reads it.
[[nodiscard]] std::string text_of(const TrainingTarget& target);

enum class ScheduleKind { constant, step, cosine, one_cycle, plateau, polynomial };
enum class LrScaling { none, linear, sqrt };
/// When a training reads its test set.
enum class TestSet {
  every,  ///< at every evaluation
  last,   ///< once, at the end, with the weights of the best epoch on validation (without one: the last)
  never,
};
/// What happens when a training diverges (loss_guard.h).
enum class OnNan {
  stop,
  rollback,  ///< continues from its newest good checkpoint, at a lower learning rate
  skip,      ///< skips the updates of steps with a bad loss
};
/// Which processes have the workers of a study's cell: packed fills one node before the next, spread uses all
/// nodes evenly.
enum class Placement { packed, spread };

/// The learning rate as a function of the update; see schedule.h.
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  double warmup_epochs = 0;       ///< linear warm-up before any kind, up to the peak
  double warmup_start = 0;        ///< the rate at which it begins
  double step_epochs = 30;        ///< step: every this many epochs ...
  double step_factor = 0.1;       ///< ... times this
  double final_factor = 0;        ///< cosine, one-cycle, polynomial: the last rate as a fraction of the peak
  double one_cycle_peak = 0.3;    ///< one-cycle: the peak's position as a fraction of the training
  double one_cycle_start = 0.04;  ///< one-cycle: the first rate as a fraction of the peak
  int plateau_patience = 3;       ///< plateau: after this many epochs without a better validation figure ...
  double plateau_factor = 0.1;    ///< ... times this (ValidationWatch)
  double polynomial_power = 2;    ///< polynomial: of the part that is left after the warm-up
};

/// Slow weights that follow the trained ones; see slow_weights.h.
struct LookaheadOptions {
  std::int64_t steps = 0;  ///< updates between two moves of the slow weights; 0: no Lookahead
  double keep = 0.5;       ///< fraction of the slow weights that is kept
  double power = 0;        ///< > 0: that fraction grows with this power of the training's progress
};

/// An average of the weights beside them; see slow_weights.h.
struct EmaOptions {
  double decay = 0;        ///< of the average, at each update that joins it; 0: there is none
  std::int64_t every = 1;  ///< updates between two that join it
};

/// What a launcher that restarts a run tells it about the lost one.
struct LostBefore {
  std::string how;  ///< a sentence
  measure::LossRecord loss;
};

struct Options {
  // What is trained, on what.
  std::string model = "resnet18-cifar";  ///< a name of the zoo, or a TOML file of layers
  std::string data = "synthetic";
  std::string device = "cpu";      ///< "cpu", "reference", "cuda", "cuda:K", "cuda-on-host"
  std::string precision = "auto";  ///< "fp32", "bf16", "fp16", "auto"
  std::uint64_t seed = 0;

  // Batch, workers and resources. Exactly one of the batches is set (the other is 0 and derived).
  int workers = 1;
  int threads = 0;  ///< cores per worker; 0: cores of the machine / workers, at least 1
  std::int64_t local_batch = 0;
  std::int64_t global_batch = 0;
  std::int64_t micro_batch = 0;  ///< > 0: a worker computes its batch in passes of so many samples
  std::int64_t shard = 0;        ///< > 0: the same bits for every number of workers that resolve() accepts
  bool pin = true;
  bool measured_kernels = false;       ///< choose kernels by measurement; --shard always chooses by shape
  bool deterministic = false;          ///< GPUs: a fixed order of additions in NCCL (done by the backend)
  std::filesystem::path kernels_from;  ///< a record or checkpoint whose kernels are used; empty: none
  int loader_threads = 1;              ///< 0: the worker prepares each batch itself, before it computes
  double bucket_mb = 4;                ///< 1e6 bytes of gradients per bucket
  bool bucket_auto = false;            ///< choose the size before the first step instead (step_runner.h)
  int deadline_s = 60;                 ///< of a collective
  bool shared_memory = true;           ///< processes of one host reduce in shared memory; else by messages
  bool gradients_as_bf16 = false;      ///< between processes: half the bytes, rounded sums
  Placement placement = Placement::packed;
  bool data_parallel = false;  ///< all data pass worker 0 (data_parallel.h); else gradients are all-reduced
  /// What the communicator emulates (comm/emulate.h), as written; empty: nothing. For the record; the
  /// backend's communicators implement it.
  std::string emulate_link, emulate_straggler;
  /// The phases of an engine that sleeps (engine/ghost/phases.h); empty: workers compute.
  std::string emulate_compute;
  bool no_exchange =
      false;  ///< gradients are not summed, to measure what summing does to the workers' own work
  bool same_order =
      false;  ///< every epoch has the order of the first, as by a sampler that is not told the epoch

  std::filesystem::path timeline;  ///< file for all ranks' spans; empty: none

  // Length.
  double epochs = 0;  ///< either epochs or steps is set
  std::int64_t steps = 0;
  int evaluate_every = 1;                ///< epochs between evaluations; 0: never
  std::optional<TestSet> test_set;       ///< none: see test_policy()
  std::optional<TrainingTarget> target;  ///< ends the training when an evaluation reaches it
  std::int64_t evaluate_steps = 0;       ///< > 0: also evaluates after each multiple of so many updates
  OnNan on_nan = OnNan::stop;
  std::int64_t noise_scale = 10;  ///< updates from one step with measured squares to the next; 0: none
  int early_stopping = 0;         ///< > 0: ends after this many epochs without a better validation figure
  /// > 0: this run ends after this many epochs of the training, with a checkpoint from which another run
  /// continues. The schedule stays that of the whole training.
  std::int64_t pause_after_epochs = 0;

  // Update rule, schedule, regularisation.
  engine::UpdateRule rule{.momentum = 0.9, .weight_decay = 5e-4};
  double lr = 0.1;
  LrScaling scale_lr = LrScaling::none;
  std::int64_t lr_batch = 0;  ///< the global batch that lr belongs to; 0: 128
  ScheduleOptions schedule;
  LookaheadOptions lookahead;
  EmaOptions ema;
  bool use_ema = false;  ///< evaluate, classify, export: the average of a checkpoint in place of its weights
  engine::BatchNormMode batch_norm = engine::BatchNormMode::local;
  int ghost_size = 0;
  bool momentum_correction = false;  ///< see rule_of_update()
  bool zero_gamma = false;           ///< see graph/initialise.h
  std::string weights;  ///< the file of the first weights, see checkpoint/given_weights.h; or empty
  bool weights_by_order = false;
  std::string freeze;     ///< "layer1,bn*": patterns of graph/rates.h
  std::string lr_factor;  ///< "fc=10,layer4=2"
  double label_smoothing = 0;
  std::string class_weights;  ///< "balanced", a file, or empty: data/class_balance.h
  bool balanced_sampler = false;
  bool augment = true;  ///< random crop and flip: the data set's defaults, or as set below
  std::optional<int> crop_padding;
  data::CropFill crop_fill = data::CropFill::black;
  std::optional<data::Flip> flip;
  data::WarpOptions warp;        ///< rotation, shear, shift; off by default for every data set
  bool trivial_augment = false;  ///< data/trivial_augment.h
  double random_erasing = 0;     ///< the part of the training images that lose a box
  double mixup = 0, cutmix = 0;  ///< data/mix.h
  int test_views = 1;  ///< views of each test image whose logits are averaged: 1, 2 or 6, data/augment.h

  // Opening the data.
  double validation_split = 0;  ///< > 0: this part of every class is held back from training and evaluated
  std::int64_t shuffle_window = 0;  ///< > 0: training samples come from so many shards at a time; 0: from all
  bool skip_bad_images = false;     ///< leave out images of a folder that cannot be decoded

  // Measuring. window_steps > 0: after warmup_steps, time this many steps and stop (a cell); kWholeEpoch: as
  // many as an epoch has. 0: an ordinary training, timed as a whole.
  static constexpr std::int64_t kWholeEpoch = -1;
  /// More steps than any window by time has.
  static constexpr std::int64_t kManySteps = 20'000;
  std::int64_t window_steps = 0;
  std::int64_t warmup_steps = 0;
  double window_seconds = 0;  ///< > 0: the window ends after this time, but not before 3 steps
  /// With window_steps > 0: the window goes on for at least this time, so that it knows of other programs
  /// (measure/disturbance.h).
  double least_window_seconds = 0;
  bool log_steps = false;  ///< keep every step's loss in the record

  // Output.
  std::filesystem::path out;  ///< directory for record.json and checkpoints; empty: nothing is written
  bool save_checkpoints = true;
  CheckpointInterval checkpoint_every;
  int keep_checkpoints = 2;      ///< how many of the last ones to keep, besides the best
  std::filesystem::path resume;  ///< a checkpoint file, or a directory whose newest one is used
  bool resume_auto = false;      ///< continues from what is in `out`, or starts afresh (resume_point.h)
  std::string command;           ///< as typed, for the record
  std::string note;              ///< for the record: the recipe; empty: none
  base::TimePoint
      started{};  ///< when the command, or the cell of a study, began; default: when run() was called
  std::optional<LostBefore> lost;  ///< this run restarts one that was lost
};

/// Whether training images are mixed in pairs, and have two labels.
[[nodiscard]] inline bool mixes_images(const Options& options) {
  return options.augment && (options.mixup > 0 || options.cutmix > 0);
}

[[nodiscard]] inline const char* name_of_mixing(const Options& options) {
  if (options.cutmix == 0) return "--mixup";
  return options.mixup == 0 ? "--cutmix" : "--mixup with --cutmix";
}

/// Whether checkpoints have a second array of weights (slow_weights.h).
[[nodiscard]] inline bool has_slow_weights(const Options& options) {
  return options.lookahead.steps > 0 || options.ema.decay > 0;
}

/// Whether everything passes worker 0; not with a single worker.
[[nodiscard]] inline bool is_data_parallel(const Options& options) {
  return options.data_parallel && options.workers > 1;
}

/// The value of --test-set, or its default: `never` with --evaluate-every 0, `last` with a validation set,
/// otherwise `every`.
[[nodiscard]] inline TestSet test_policy(const Options& options, bool has_validation) {
  if (options.test_set) return *options.test_set;
  if (options.evaluate_every <= 0) return TestSet::never;
  return has_validation ? TestSet::last : TestSet::every;
}

/// Whether a training with these options evaluates its test set. A timed window does not.
[[nodiscard]] inline bool reads_test(const Options& options, bool has_validation) {
  return options.window_steps == 0 && test_policy(options, has_validation) != TestSet::never;
}

/// The same for its validation set, if it has one.
[[nodiscard]] inline bool validates(const Options& options, bool has_validation) {
  return has_validation && options.window_steps == 0 && options.evaluate_every > 0;
}

}  // namespace paceline::train
