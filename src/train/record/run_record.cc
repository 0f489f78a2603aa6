#include "train/record/run_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "data/class_balance.h"
#include "graph/layout.h"
#include "measure/disturbance.h"
#include "measure/environment.h"
#include "train/given/names.h"
#include "train/given/option_rows.h"
#include "train/step/data_parallel.h"
#include "train/step/queued_steps.h"

namespace paceline::train {

measure::Environment machine_of(const ProcessPlacement& place, std::vector<std::string> libraries) {
  auto machine = measure::environment(std::move(libraries));
  if (place.host_cores > 0) machine.cores = place.host_cores;
  return machine;
}

using measure::EpochRecord;
using measure::Record;

Record::Model describe(const Options& options, const graph::Graph& graph, engine::Precision precision) {
  const auto traffic = graph::training_traffic(graph, precision == engine::Precision::f32 ? 4 : 2,
                                               engine::state_slots(options.rule));
  return {.name = options.model,
          .parameters = graph.trainable_elements(),
          .training_flops = graph::training_flops(graph),
          .graph_sha256 = graph::fingerprint(graph),
          .bytes_a_sample = traffic.bytes_a_sample,
          .bytes_a_step = traffic.bytes_a_step};
}

/// Describes what workers exchange in a step: the parts of the flat gradient.
Record::Communication describe_gradient(const graph::Graph& graph) {
  constexpr std::int64_t kBytes = sizeof(float);
  std::int64_t statistics = 0, trained = 0;
  for (const auto& parameter : graph.parameters)
    (graph::is_trainable(parameter.role) ? trained : statistics) += parameter.elements();
  Record::Communication travels;
  travels.parameter_bytes = kBytes * trained;
  travels.statistics_bytes = kBytes * statistics;
  travels.padding_bytes = kBytes * (graph::flat_layout(graph).elements - trained - statistics);
  return travels;
}

Record::Data describe(const data::Source& source) {
  const auto evaluated = source.evaluated_format();
  const auto shards = static_cast<std::int64_t>(source.train->shard_sizes().size());
  return {
      .spec = source.spec,
      .name = source.name,
      .description = source.description,
      .synthetic = source.synthetic,
      .train_samples = source.train->size(),
      .test_samples = source.test->size(),
      .validation_samples = source.validation ? std::optional(source.validation->size()) : std::nullopt,
      .stored_bytes = data::mean_stored_bytes(*source.train),
      .shards = shards > 0 ? std::optional(shards) : std::nullopt,
      .eval_resize = source.eval_resize > 0 ? std::optional<std::int64_t>(source.eval_resize) : std::nullopt,
      .eval_size = evaluated == source.train->format()
                       ? std::nullopt
                       : std::optional(fmt::format("{}x{}", evaluated.height, evaluated.width))};
}

Record::Memory describe(const graph::MemoryPlan& plan, const MemoryLimits& limits) {
  using Place = graph::MemoryPlan::Place;
  Record::Memory memory{.plan_bytes = plan.total_bytes(Place::host), .available_bytes = limits.host};
  if (limits.device)
    memory.device = {.workers = limits.share->workers,
                     .plan_bytes = plan.total_bytes(Place::device),
                     .available_bytes = *limits.device};
  for (const auto& line : plan.lines)
    (line.place == Place::device ? memory.device->plan_lines : memory.plan_lines)[line.purpose] += line.bytes;
  return memory;
}

/// Whether workers of the run share a GPU. (The engine on the processor computes in the host's memory.)
bool shares_gpu(const MemoryLimits& limits) {
  return limits.share && limits.share->is_any_shared && limits.share->info.memory_bytes > 0;
}

std::string describe_workers(const Resolved& resolved, const ProcessPlacement& place) {
  const auto work = base::counted(resolved.threads, "thread"), cores = base::counted(resolved.cores, "core");
  if (place.processes == 1)
    return fmt::format("{} x {} on {}", base::counted(resolved.workers, "worker"), work, cores);
  return fmt::format("{} workers in {} processes x {}, {} a process{}", resolved.workers, place.processes,
                     work, cores,
                     resolved.sharers > 1 ? fmt::format(" (the same for {} of them)", resolved.sharers) : "");
}

std::string describe_memory(const Record& record) {
  const auto& memory = record.memory;
  auto text = fmt::format("memory: plan {:.2f} GB of {:.2f} GB that this process may use",
                          base::gigabytes(memory.plan_bytes), base::gigabytes(memory.available_bytes));
  if (memory.device)
    text += fmt::format(
        "; {:.2f} GB of {:.2f} GB that are free on {}{}", base::gigabytes(memory.device->plan_bytes),
        base::gigabytes(memory.device->available_bytes), record.device_name.value_or("the device"),
        memory.device->workers == 1
            ? ""
            : fmt::format(" for the {} workers that share it", memory.device->workers));
  return text;
}

/// Which samples an epoch draws, and with which weights.
void describe_draws(const Options& options, const Resolved& resolved, const graph::Graph& graph,
                    const data::Source& source, Record& record) {
  const auto& weights = graph.nodes.back().as<graph::SoftmaxCrossEntropy>()->class_weights;
  if (!weights.empty()) {
    record.data.class_weights = weights;
    const auto [least, most] = std::ranges::minmax_element(weights);
    const auto of = [&](auto weight) {
      const auto label = static_cast<std::size_t>(weight - weights.begin());
      return fmt::format("{:.3g} ('{}')", *weight, base::visible(source.class_names[label]));
    };
    record.notes.push_back(fmt::format(
        "--class-weights {}: from {} to {}, mean 1 over the training images; training losses are weighted, "
        "those of validation and test are not",
        options.class_weights, of(least), of(most)));
  }
  if (mixes_images(options))
    record.notes.push_back(fmt::format(
        "{}: the training accuracy counts the heavier label of each mixed image; evaluations mix no images",
        name_of_mixing(options)));
  if (options.balanced_sampler)
    record.notes.push_back("--sampler balanced: " +
                           data::balanced_sentence(source, resolved.steps_per_epoch * resolved.global_batch) +
                           "; training losses and accuracies are of the draws");
  else if (resolved.dropped_per_epoch > 0)
    record.notes.push_back(
        fmt::format("the last {} samples of each epoch's order do not fill a global batch of {} and "
                    "are left out of that epoch{}",
                    resolved.dropped_per_epoch, resolved.global_batch,
                    options.same_order ? ", the same ones in all" : " (each epoch has another order)"));
}

Record begin_record(const Options& options, const Resolved& resolved, const RunParts& parts,
                    const graph::MemoryPlan& plan) {
  const auto& [graph, source, backend, conditions, limits] = parts;
  const ProcessPlacement& place = backend.place;
  Record record;
  record.kind = record.id = "train";
  record.created = measure::utc_now();
  record.command = options.command;
  record.settings = settings(options);
  auto libraries = backend.libraries;
  if (limits.share && !limits.share->info.libraries.empty())
    libraries.push_back(limits.share->info.libraries);
  record.environment = machine_of(place, std::move(libraries));
  record.environment.gpus = backend.machine->describe_gpus();
  record.model = describe(options, graph, resolved.precision);
  record.data = describe(source);
  record.data.dropped_per_epoch = resolved.dropped_per_epoch;
  record.data.steps_per_epoch = resolved.steps_per_epoch;
  record.workers = resolved.workers;
  record.threads_per_worker = resolved.threads;
  record.oversubscribed = resolved.oversubscribed || shares_gpu(limits);
  record.local_batch = resolved.local_batch;
  record.global_batch = resolved.global_batch;
  record.batch_given_as = resolved.batch_given_as;
  record.precision = name(resolved.precision);
  record.device = options.device;
  if (limits.share) record.device_name = limits.share->info.name;
  record.learning_rate = resolved.rate;
  record.memory = describe(plan, limits);
  record.communication = describe_gradient(graph);
  record.peak = backend.peak;
  record.window = {.unit = options.window_steps > 0 ? "steps" : "epoch",
                   .warmup_steps = options.warmup_steps};
  if (options.window_steps == 0)
    record.test_set.emplace().policy = name(test_policy(options, source.validation != nullptr));
  record.communication.communicator = "none";
  if (is_data_parallel(options)) record.communication.parallel = "data-parallel";
  if (place.processes > 1) {
    record.communication.processes = place.processes;
    record.communication.launcher = place.launcher;
    record.communication.library = place.library;
    record.communication.nodes = place.hosts;
    record.communication.processes_of_nodes = place.processes_of_hosts;
    if (!place.placement.empty()) record.communication.placement = place.placement;
    record.notes.push_back(fmt::format(
        "{} processes of {} each, started by {}, joined by {}; each decodes the images of its own "
        "workers; memory is that of the first, and each rank has that of its own",
        place.processes, base::counted(resolved.local_workers, "worker"), place.launcher, place.library));
  }
  if (limits.share)
    record.notes.push_back(
        host_is_in_step(options, resolved.workers)
            ? "the device computes asynchronously, and its worker waits for it once a step: device time is "
              "counted in the phase in which the worker waits, which for the last backward and the update "
              "is the next forward"
            : "the device computes asynchronously: phases are the times between events on the device, read "
              "two steps later");
  if (resolved.oversubscribed)
    record.notes.push_back(
        fmt::format("{}: oversubscribed, times say nothing about machines with a core for each",
                    describe_workers(resolved, place)));
  if (shares_gpu(limits))
    record.notes.push_back("workers share a GPU: times say nothing about machines with a GPU for each");
  if (options.shard > 0)
    record.notes.push_back(fmt::format(
        "shards of {} samples: the same bits for any number of threads, and of workers that --shard accepts",
        options.shard));
  if (options.micro_batch > 0 && resolved.passes_per_worker > 1)
    record.notes.push_back(fmt::format(
        "a local batch of {} in {} micro-batches of {}, whose gradients are added for one update; batch norm, if the "
        "model has any, takes its statistics from {} samples",
        resolved.local_batch, resolved.passes_per_worker, options.micro_batch,
        options.batch_norm == engine::BatchNormMode::ghost ? options.ghost_size : options.micro_batch));
  for (const auto& note : source.notes) record.notes.push_back(note);
  describe_draws(options, resolved, graph, source, record);
  return record;
}

std::unique_ptr<measure::GpuWatch> watch_gpus(const Backend& backend, int local_workers) {
  auto open = backend.machine->gpus(local_workers);
  return open ? std::make_unique<measure::GpuWatch>(std::move(open), measure::GpuWatch::kPeriod,
                                                    backend.neighbour_pids)
              : nullptr;
}

void add_gpus(Record& record, std::span<const measure::GpuReport> reports) {
  auto gpus = measure::join(reports);
  if (!gpus.empty()) record.gpus = std::move(gpus);
  std::vector<std::string> failures;
  for (const auto& report : reports)
    for (const auto& failure : report.failures)
      if (std::find(failures.begin(), failures.end(), failure) == failures.end()) failures.push_back(failure);
  if (!failures.empty())
    record.notes.push_back(fmt::format("the GPUs did not report everything: {}", fmt::join(failures, "; ")));
}

namespace {

/// The memory of the fullest device of these workers. Blocks of engines on one device add up.
std::optional<Record::Memory::Device::Use> device_use(const std::vector<WorkerResult>& results) {
  std::map<std::string, Record::Memory::Device::Use> devices;
  for (const auto& result : results) {
    if (!result.device_memory) continue;
    auto& use = devices[result.device_memory->device];
    use.total_bytes = result.device_memory->total_bytes;
    use.used_bytes = std::max(use.used_bytes, result.device_memory->used_bytes);
    use.engines_bytes += result.device_memory->engine_bytes;
  }
  const auto free_bytes = [](const auto& device) {
    return device.second.total_bytes - device.second.used_bytes;
  };
  const auto fullest = std::ranges::min_element(devices, {}, free_bytes);
  return fullest == devices.end() ? std::nullopt : std::optional(fullest->second);
}

/// A sentence for a record whose test set was read once at the end, or never.
std::string text_about_test_set(const Record& record) {
  const auto& test = *record.test_set;
  if (test.policy == "never") return "the test set was not read";
  if (!test.accuracy) return "the test set was not read yet";
  const double times = record.data.test_samples > 0
                           ? static_cast<double>(test.reads) / static_cast<double>(record.data.test_samples)
                           : 0;
  return fmt::format("its test accuracy is {:.2f} %, and the test set was read {}", 100 * *test.accuracy,
                     times == 1 ? "once" : fmt::format("{:.3g} times", times));
}

}  // namespace

void complete_record(Record& record, std::vector<WorkerResult>& results,
                     const comm::Communicator& communicator) {
  WorkerResult& root = results.front();
  record.status = root.interrupted ? "interrupted" : "complete";
  if (root.interrupted)
    record.reason = fmt::format("stopped as asked after {} updates",
                                root.epochs.empty() ? root.window_steps : root.epochs.back().updates);
  record.window.steps = root.window_steps;
  if (root.timed_of > 1) {
    record.window.timed_of = root.timed_of;
    record.notes.push_back(fmt::format(
        "only one of every {} steps has a time of its own ({} steps in all), at a place drawn for each group",
        root.timed_of, root.window_steps));
  }
  record.window.samples = root.window_steps * record.global_batch;
  record.window.others_cores = root.others_cores;
  if (root.others_cores) record.window.others = std::move(root.others);
  record.window.paused_s = root.paused_s;
  if (measure::stood_still(record)) record.notes.push_back(measure::text_about_pause(record));
  if (const auto& best = root.validation; best.best_update > 0)
    record.chosen = {.epoch = best.best_epoch,
                     .updates = best.best_update,
                     .validation_loss = best.best_loss,
                     .validation_accuracy = best.best_accuracy,
                     .stopped_early = root.stopped_early,
                     .reductions = best.reductions};
  if (root.tested) {
    root.tested->policy = record.test_set->policy;
    record.test_set = root.tested;
  }
  if (root.stopped_early)
    record.notes.push_back(fmt::format(
        "{}: no better validation figure since epoch {}, in as many epochs as --early-stopping says",
        kStoppedEarly, root.validation.best_epoch));
  if (root.skipped_updates > 0) record.skipped_updates = root.skipped_updates;
  if (root.loss_scale) {
    record.loss_scale = {.scale = static_cast<double>(root.loss_scale->scale),
                         .left_out = root.loss_scale->left_out};
    if (root.loss_scale->left_out > 0)
      record.notes.push_back(fmt::format(
          "fp16: {} left out because a gradient overflowed; the loss scale ended at {:g}",
          base::counted(root.loss_scale->left_out, "update was", "updates were"), record.loss_scale->scale));
  }
  if (root.all_rollbacks > 0) {
    // Keeps rollbacks of earlier runs, except those after the checkpoint from which this run continued.
    auto all = record.rollbacks.value_or(std::vector<measure::RollbackRecord>());
    all.resize(std::min(all.size(), static_cast<std::size_t>(root.all_rollbacks) - root.rollbacks.size()));
    all.insert(all.end(), root.rollbacks.begin(), root.rollbacks.end());
    record.rollbacks = std::move(all);
  }
  add_gpus(record, root.gpus);
  if (record.memory.device) record.memory.device->use = device_use(results);
  record.epochs = std::move(root.epochs);
  record.steps = std::move(root.steps);
  record.buckets = std::move(root.buckets);
  record.last_steps = std::move(root.last_steps);
  record.communication.gradient_bytes = root.gradient_bytes;
  if (root.vote_bytes > 0) record.communication.vote_bytes = root.vote_bytes;
  if (record.workers > 1) {
    record.communication.communicator = communicator.name();
    record.communication.algorithm = communicator.algorithm();
    if (record.communication.parallel)
      record.communication.algorithm = "data-parallel (all by way of worker 0)";
    record.communication.bytes_sent = root.traffic.bytes_sent;
    record.communication.bytes_received = root.traffic.bytes_received;
    record.communication.collectives = root.traffic.collectives;
    record.communication.memory_ceiling_gb_per_s = root.allreduce_peak_gb_per_s;
    if (root.norm_collectives > 0 && root.window_steps > 0) {
      record.communication.norm_bytes = root.norm_bytes / root.window_steps;
      record.communication.norm_collectives = root.norm_collectives / root.window_steps;
    }
  }
  if (const auto skew = measure::skew(root.timelines, record.buckets.size())) {
    double error = 0;
    for (const auto& rank : root.timelines) error = std::max(error, rank.clock_error_s);
    record.notes.push_back(measure::sentence(*skew, error));
  }
  for (auto& note : root.notes) record.notes.push_back(std::move(note));
  record.ranks = std::move(root.all_ranks);  // if there are several processes
  if (record.ranks.empty())
    for (auto& result : results) record.ranks.push_back(std::move(result.rank));
  for (const auto& rank : record.ranks) record.window.wall_s = std::max(record.window.wall_s, rank.wall_s);
}

void fill_in_tested(Record& record) {
  if (!record.test_set || !record.test_set->epoch) return;
  for (auto& epoch : record.epochs)
    if (epoch.epoch == *record.test_set->epoch &&
        // A run that ended inside an epoch may have chosen that epoch, which a resume then completed.
        (!record.chosen || record.chosen->epoch != epoch.epoch || record.chosen->updates == epoch.updates)) {
      epoch.test_loss = record.test_set->loss;
      epoch.test_accuracy = record.test_set->accuracy;
      epoch.test_top_5 = record.test_set->top_5;
    }
}

std::string best_epoch(const Record& record) {
  const bool is_held_back = record.test_set && record.test_set->policy != "every";
  if (!record.chosen) {
    if (!is_held_back || !record.test_set->accuracy || record.epochs.empty()) return "";
    return fmt::format("last epoch: {}; {}", record.epochs.back().epoch, text_about_test_set(record));
  }
  const auto& chosen = *record.chosen;
  const auto found = std::ranges::find(record.epochs, chosen.epoch, &EpochRecord::epoch);
  if (found == record.epochs.end()) return "";
  if (!is_held_back && !found->test_accuracy) return "";
  return fmt::format("best epoch by validation accuracy: {} of {} ({:.2f} % of {} images); {}", chosen.epoch,
                     record.epochs.back().epoch, 100 * chosen.validation_accuracy,
                     record.data.validation_samples.value_or(0),
                     is_held_back
                         ? text_about_test_set(record)
                         : fmt::format("its test accuracy is {:.2f} %", 100 * *found->test_accuracy));
}

}  // namespace paceline::train
