#include "train/given/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.h"
#include "train/given/names.h"

namespace paceline::train {

engine::UpdateRule rule_of_update(const Options& options, double peak, std::int64_t update,
                                  const Length& length) {
  engine::UpdateRule rule = options.rule;
  if (!options.momentum_correction || rule.kind != engine::UpdateKind::lars || update == 0) return rule;
  const double before = learning_rate(options.schedule, peak, update - 1, length);
  if (before > 0) rule.momentum *= learning_rate(options.schedule, peak, update, length) / before;
  return rule;
}

namespace {

constexpr std::int64_t kDefaultLocalBatch = 128;
constexpr std::int64_t kMostThreadsACore = 8;  ///< with more, starting threads takes longer than computing

/// The end of a sentence: the global batches nearest to `batch` that `workers` workers can divide.
std::string nearest_that_divide(std::int64_t batch, std::int64_t workers) {
  const std::int64_t below = batch / workers * workers;
  if (below == 0) return fmt::format("the smallest that does is {}", workers);
  return fmt::format("the nearest that do are {} and {}", below, below + workers);
}

void resolve_batches(const Options& options, std::int64_t samples, Resolved& run) {
  if (options.local_batch != 0 && options.global_batch != 0)
    refuse_options(
        "batch: --local-batch {} and --global-batch {} are both given, and one follows from the other "
        "(global = workers x local); give one of them",
        options.local_batch, options.global_batch);
  if (options.local_batch < 0 || options.global_batch < 0)
    refuse_options("batch: must be at least 1, is {}",
                   options.local_batch < 0 ? options.local_batch : options.global_batch);
  if (options.global_batch > 0) {
    run.batch_given_as = "global";
    run.global_batch = options.global_batch;
    if (run.global_batch % run.workers != 0)
      refuse_options(
          "--global-batch {} does not divide by --workers {}: every worker takes the same local batch; {}",
          run.global_batch, run.workers, nearest_that_divide(run.global_batch, run.workers));
    run.local_batch = run.global_batch / run.workers;
  } else {
    run.batch_given_as = "local";
    run.local_batch = options.local_batch > 0 ? options.local_batch : kDefaultLocalBatch;
    run.global_batch = run.local_batch * run.workers;
  }
  if (run.global_batch > samples)
    refuse_options(
        "the global batch {} ({} x {}) exceeds the data set of {} training samples; from there on "
        "every batch would be the whole set: use at most {}",
        run.global_batch, base::counted(run.workers, "worker"), run.local_batch, samples,
        samples < run.workers ? fmt::format("{} workers", samples)
                              : fmt::format("{} a worker", samples / run.workers));
}

void resolve_processes(const Options& options, const RunConditions& circumstances, Resolved& run) {
  const int processes = circumstances.processes;
  if (run.workers % processes != 0)
    refuse_options(
        "--workers {} with {} processes: every process takes the same number of workers; leave --workers out "
        "(one in each), or give {}",
        run.workers, processes, std::max(1, run.workers / processes) * processes);
  run.local_workers = run.workers / processes;
  run.sharers = circumstances.sharers;
  run.threads = options.threads > 0
                    ? options.threads
                    : std::max(1, circumstances.cores / (run.local_workers * circumstances.sharers));
  if (options.shard > 0 && processes > 1 && !std::has_single_bit(static_cast<unsigned>(run.local_workers)))
    refuse_options(
        "--shard {} with {} workers in each of {} processes: each process must have a power of two of "
        "workers, so that its shards are a whole part of the fixed summation tree; give --workers {}",
        options.shard, run.local_workers, processes,
        std::bit_floor(static_cast<unsigned>(run.local_workers)) * static_cast<unsigned>(processes));
}

void resolve_shards(const Options& options, Resolved& run) {
  run.engine_batch = run.local_batch;
  if (options.shard == 0) return;
  if (options.shard < 0) refuse_options("--shard must be at least 1, is {}", options.shard);
  if (options.gradients_as_bf16)
    refuse_options(
        "--shard {} with --gradients-as bf16: messages are rounded between processes, so the bits would "
        "depend on the number of processes; leave one of them out",
        options.shard);
  if (run.local_batch % options.shard != 0)
    refuse_options(
        "--shard {} does not divide the local batch {} (global batch {} / {} workers); choose a shard that "
        "divides it",
        options.shard, run.local_batch, run.global_batch, run.workers);
  run.passes_per_worker = run.local_batch / options.shard;
  if (run.workers > 1 && !std::has_single_bit(static_cast<std::uint64_t>(run.passes_per_worker)))
    refuse_options(
        "--shard {} gives each of {} workers {} shards, but only a power of two of them is a whole part of "
        "the fixed summation tree; choose a shard of {} samples",
        options.shard, run.workers, run.passes_per_worker,
        run.local_batch /
            static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(run.passes_per_worker))));
  if (options.batch_norm == engine::BatchNormMode::synchronised) {
    // Statistics are over all shards, which must therefore be in one engine; it joins them itself.
    run.engine_shard = static_cast<int>(options.shard);
    run.passes_per_worker = 1;
    return;
  }
  run.engine_batch = options.shard;
}

void resolve_micro_batches(const Options& options, Resolved& run) {
  if (options.micro_batch == 0) return;
  if (options.shard > 0)
    refuse_options(
        "--micro-batch {} with --shard {}: a worker already computes its shards one after the other; leave "
        "--micro-batch out",
        options.micro_batch, options.shard);
  if (options.batch_norm == engine::BatchNormMode::synchronised)
    refuse_options(
        "--micro-batch {} with --bn sync: its statistics are of the whole batch, which is never in memory at once; "
        "give --bn local or ghost:N",
        options.micro_batch);
  if (options.data_parallel)
    refuse_options(
        "--micro-batch {} with --parallel data-parallel: each worker computes its samples in one forward pass; give "
        "--parallel all-reduce",
        options.micro_batch);
  if (!options.emulate_compute.empty())
    refuse_options(
        "--emulate-compute with --micro-batch {}: its phases are of a whole local batch; leave --micro-batch out",
        options.micro_batch);
  if (run.local_batch % options.micro_batch != 0) {
    std::int64_t divisor = std::min(options.micro_batch, run.local_batch);
    while (run.local_batch % divisor != 0) --divisor;
    refuse_options("--micro-batch {} does not divide the local batch {}; {} does", options.micro_batch,
                   run.local_batch, divisor);
  }
  run.passes_per_worker = run.local_batch / options.micro_batch;
  run.engine_batch = options.micro_batch;
}

/// What Resolved::engine_batch is a number of.
const char* name_of_pass(const Options& options) {
  return options.shard > 0 ? "shard" : options.micro_batch > 0 ? "micro-batch" : "local batch";
}

/// Rounds, and refuses impossible numbers before they overflow.
std::int64_t updates_of(double epochs, std::int64_t steps_per_epoch) {
  constexpr double kMostUpdates = 1e15;
  const auto steps = static_cast<double>(steps_per_epoch);
  if (epochs * steps > kMostUpdates)
    refuse_options(
        "--epochs {:g} of {} steps is too large: updates are counted up to {:g}; give at most {:g}", epochs,
        steps_per_epoch, kMostUpdates, kMostUpdates / steps);
  return static_cast<std::int64_t>(std::llround(epochs * steps));
}

void resolve_length(const Options& options, std::int64_t samples, Resolved& run) {
  run.train_samples = samples;
  run.steps_per_epoch = samples / run.global_batch;
  run.dropped_per_epoch = samples - run.steps_per_epoch * run.global_batch;
  run.length.updates_per_epoch = run.steps_per_epoch;
  if (options.window_steps != 0) {
    const std::int64_t window =
        options.window_steps == Options::kWholeEpoch ? run.steps_per_epoch : options.window_steps;
    if (window < 0 || options.warmup_steps < 0)
      refuse_options("--window-steps and --warmup-steps must not be negative, are {} and {}",
                     options.window_steps, options.warmup_steps);
    const bool ends_by_time = options.window_steps > 0 && options.least_window_seconds > 0;
    run.length.updates = run.end =
        options.warmup_steps + (ends_by_time ? std::max(window, Options::kManySteps) : window);
    return;
  }
  if (options.epochs > 0 && options.steps > 0)
    refuse_options("--epochs {:g} and --steps {} are both given; give one of them", options.epochs,
                   options.steps);
  if (options.epochs < 0 || options.steps < 0)
    refuse_options("--epochs and --steps must not be negative, are {:g} and {}", options.epochs,
                   options.steps);
  if (options.steps > 0)
    run.length.updates = options.steps;
  else
    run.length.updates = updates_of(options.epochs > 0 ? options.epochs : 1, run.steps_per_epoch);
  if (run.length.updates < 1)
    refuse_options("--epochs {:g} of {} steps is less than one step; give at least {:g}", options.epochs,
                   run.steps_per_epoch, 1.0 / static_cast<double>(run.steps_per_epoch));
  run.end = run.length.updates;
  if (options.pause_after_epochs > 0)
    run.end = std::min(run.end, options.pause_after_epochs * run.steps_per_epoch);
}

/// Refuses options that do not exist with --parallel data-parallel.
void require_data_parallel(const Options& options, const RunConditions& circumstances) {
  if (!options.data_parallel) return;
  if (circumstances.processes > 1)
    refuse_options(
        "--parallel data-parallel with {} processes: there one process drives all workers; start one, with "
        "--workers {}",
        circumstances.processes, std::max(options.workers, circumstances.processes));
  if (options.batch_norm == engine::BatchNormMode::synchronised)
    refuse_options(
        "--parallel data-parallel with --bn sync: its workers exchange data only with worker 0, so they "
        "cannot share statistics; give --bn local or ghost:SIZE, or --parallel all-reduce");
  if (options.shard > 0)
    refuse_options(
        "--parallel data-parallel with --shard {}: each worker computes its samples in one forward pass and "
        "cannot cut them into shards; leave --shard out, or give --parallel all-reduce",
        options.shard);
  if (options.precision == "fp16")
    refuse_options(
        "--parallel data-parallel with --precision fp16: worker 0 alone sees the summed gradients, and with "
        "them an overflow, so that the workers' loss scales would differ; give --precision bf16 or fp32, or "
        "--parallel all-reduce");
}

/// Workers that sleep, or do not exchange what they compute, can be timed and nothing else.
void require_timing(const Options& options, const RunConditions& circumstances) {
  const char* const asked = !options.emulate_compute.empty() ? "--emulate-compute"
                            : options.no_exchange            ? "--control no-exchange"
                                                             : nullptr;
  if (asked == nullptr) return;
  if (options.window_steps == 0)
    refuse_options("{} times steps and trains nothing; give --window-steps, such as 50", asked);
  if (options.data_parallel)
    refuse_options("{} is about gradients that are all-reduced; leave --parallel data-parallel out", asked);
  if (options.device.starts_with("cuda"))
    refuse_options("{} is for workers whose gradients are in the host's memory; leave --device {} out", asked,
                   options.device);
  if (options.emulate_compute.empty()) return;
  if (circumstances.processes > 1)
    refuse_options(
        "--emulate-compute with {} processes: its workers are threads of one process, each as if on a node of "
        "its own; start one, with --workers {}",
        circumstances.processes, std::max(options.workers, circumstances.processes));
  if (options.batch_norm == engine::BatchNormMode::synchronised)
    refuse_options(
        "--emulate-compute with --bn sync: workers that sleep have no statistics to share; give --bn local");
  if (options.shard > 0)
    refuse_options(
        "--emulate-compute with --shard {}: its phases are of a whole local batch; leave --shard out",
        options.shard);
  if (options.bucket_auto)
    refuse_options(
        "--emulate-compute with --bucket auto: the size must be known before the first step, to see that its "
        "sums fit into the emulated link; give --bucket-mb");
}

}  // namespace

engine::Precision precision_of(const std::string& asked, engine::Precision of_auto) {
  if (asked == "auto") return of_auto;
  if (const auto found = choice_named<engine::Precision>(asked)) return *found;
  refuse_options("--precision '{}' is unknown; known are fp32, bf16, fp16, auto", asked);
}

void require_evaluations(const Options& options, bool has_validation) {
  const char* const asked = options.target               ? "--target"
                            : options.evaluate_steps > 0 ? "--evaluate-steps"
                                                         : nullptr;
  if (asked == nullptr) return;
  if (options.window_steps != 0)
    refuse_options(
        "{} is for whole trainings, but --window-steps times steps without evaluations; leave one "
        "of them out",
        asked);
  const auto policy = test_policy(options, has_validation);
  if (validates(options, has_validation) || (options.evaluate_every > 0 && policy == TestSet::every)) return;
  refuse_options(
      "{} needs figures during the training, but with --evaluate-every {} and --test-set {}{} nothing is "
      "evaluated before its end; give --validation-split 0.1, or --evaluate-every 1 and --test-set every",
      asked, options.evaluate_every, name(policy), has_validation ? "" : ", and no validation part,");
}

Resolved resolve(const Options& options, const RunConditions& circumstances) {
  if (options.workers < 1) refuse_options("--workers must be at least 1, is {}", options.workers);
  if (options.threads < 0)
    refuse_options("--threads must be at least 1 (or 0: shared out), is {}", options.threads);
  if (options.loader_threads < 0)
    refuse_options("--loader-threads must be at least 0, is {}", options.loader_threads);
  if (!(options.bucket_mb > 0)) refuse_options("--bucket-mb must be above 0, is {:g}", options.bucket_mb);
  if (!(options.lr >= 0) || !std::isfinite(options.lr))
    refuse_options("--lr must be a number of at least 0, is {:g}", options.lr);
  if (options.label_smoothing < 0 || options.label_smoothing >= 1)
    refuse_options("--label-smoothing must be in [0, 1), is {:g}", options.label_smoothing);

  if (options.balanced_sampler && options.class_weights == "balanced")
    refuse_options(
        "--sampler balanced with --class-weights balanced: each makes up for the sizes of the classes, and both would "
        "do so twice; leave one of them out, or give weights of your own in a file");
  if (options.balanced_sampler && options.shuffle_window > 0)
    refuse_options(
        "--sampler balanced draws every class from all shards, and --shuffle window:{} reads {} at a time; leave "
        "one of them out",
        options.shuffle_window, options.shuffle_window);
  if (options.lookahead.steps > 0 && options.ema.decay > 0)
    refuse_options(
        "--lookahead {} with --ema {:g}: each keeps a second array of weights that averages the trained ones; leave "
        "one of them out",
        options.lookahead.steps, options.ema.decay);
  if (options.test_set == TestSet::every && options.evaluate_every == 0)
    refuse_options(
        "--test-set every and --evaluate-every 0 contradict each other: give --test-set last to evaluate once "
        "at the end, or never");

  if (options.momentum_correction && options.schedule.kind == ScheduleKind::plateau)
    refuse_options(
        "--momentum-correction depends on the schedule alone and cannot follow --schedule plateau, whose "
        "rate follows the validation figures; leave one of them out");
  if (options.on_nan == OnNan::rollback && !options.save_checkpoints)
    refuse_options(
        "--on-nan rollback goes back to checkpoints, and --no-checkpoints writes none; leave one of them out");
  require_data_parallel(options, circumstances);
  require_timing(options, circumstances);
  Resolved run;
  run.workers = options.workers;
  run.cores = circumstances.cores;
  resolve_processes(options, circumstances, run);
  resolve_batches(options, circumstances.train_samples, run);
  resolve_shards(options, run);
  resolve_micro_batches(options, run);
  // Workers that sleep need no core.
  const bool sleeps = !options.emulate_compute.empty();
  if (sleeps) run.threads = 1;
  const std::int64_t threads = sleeps ? 1 : std::int64_t{run.local_workers} * run.threads;
  if (threads > kMostThreadsACore * run.cores)
    refuse_options(
        "--workers {} x --threads {} is {} threads on {}, but more than {} per core only wait for "
        "each other: give at most {} in all",
        run.local_workers, run.threads, threads, base::counted(run.cores, "core"), kMostThreadsACore,
        kMostThreadsACore * run.cores);
  run.oversubscribed = threads * run.sharers > run.cores;
  if (options.batch_norm == engine::BatchNormMode::ghost &&
      (options.ghost_size < 1 || run.engine_batch % options.ghost_size != 0))
    refuse_options("--bn ghost:{} does not divide the {} of {}; choose a size that divides it",
                   options.ghost_size, name_of_pass(options), run.engine_batch);
  resolve_length(options, circumstances.train_samples, run);
  const bool evaluates = options.evaluate_every > 0 || options.test_set == TestSet::last;
  if (options.window_steps == 0 && evaluates && run.engine_batch < options.test_views)
    refuse_options(
        "--test-time-augmentation evaluates each test image in {} forms at once, but the {} is only {}; use a "
        "larger one, or none",
        options.test_views, name_of_pass(options), run.engine_batch);
  run.precision = precision_of(options.precision, circumstances.auto_precision);
  run.rate = scaled_rate(options, run.global_batch);
  return run;
}

}  // namespace paceline::train
