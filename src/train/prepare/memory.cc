#include "train/prepare/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "measure/environment.h"
#include "train/checkpoint/checkpoint.h"
#include "train/evaluate.h"
#include "train/given/options.h"
#include "train/step/buckets.h"
#include "train/step/data_parallel.h"
#include "train/step/queued_steps.h"
#include "train/step/step.h"

namespace paceline::train {
namespace {

using Place = graph::MemoryPlan::Place;

/// Memory of a process after it has made its first kernels, without arrays: measured 24 MB with
/// resnet8-cifar, one worker with 2 threads.
constexpr std::int64_t kProcessBytes = 24'000'000;

/// Memory that a process's first run adds to what planning allocated (code that only a run uses, threads):
/// measured 0.8 to 1.3 MB with resnet8-cifar in bf16 and fp32, one worker with 2 threads. Later runs add
/// nothing.
constexpr std::int64_t kFirstRunBytes = 1'100'000;

/// Below this address space no batches are tried: each needs new kernels, and oneDNN 2.6 crashes if memory
/// for their code is refused (seen with 90 MB left, not with 190 MB).
constexpr std::int64_t kSearchBytes = 256'000'000;

std::int64_t process_bytes(const data::Source& source, const ProcessCache& history) {
  const std::int64_t now = measure::resident_bytes() - (source.resident_bytes - source.unread_bytes);
  return std::max(kProcessBytes, now + (history.has_run ? 0 : kFirstRunBytes));
}

/// Adds the memory that sums over GPUs need on each GPU besides the engines' arrays, if every worker has its
/// own GPU.
void add_device_sums(const Options& options, const Resolved& resolved, const RunParts& parts,
                     graph::MemoryPlan& plan) {
  const MemoryLimits& limits = parts.limits;
  if (parts.backend.device_sum_bytes == 0 || !limits.device) return;
  if (limits.share->workers > 1 || limits.share->is_any_shared) return;
  if (resolved.workers == 1 || is_data_parallel(options)) return;
  plan.lines.push_back({"NCCL's buffers", parts.backend.device_sum_bytes, Place::device});
  if (options.shard == 0) return;
  // The parts of all ranks of the longest array that is summed in one call. --bucket auto begins with the
  // whole gradient.
  const graph::Layout layout = graph::flat_layout(parts.graph);
  const auto bucket_bytes =
      options.bucket_auto ? 4 * layout.elements : static_cast<std::int64_t>(options.bucket_mb * 1e6);
  const std::int64_t longest = with_votes(cut_buckets(layout, bucket_bytes), false).most_bytes();
  plan.lines.push_back({"gathered parts of shards", resolved.workers * longest, Place::device});
}

}  // namespace

MemoryLimits memory_limits(const Backend& backend, int local_workers) {
  MemoryLimits limits;
  limits.host =
      std::min(measure::available_memory_bytes() / backend.place.neighbours, measure::address_space_left()) +
      measure::resident_bytes();
  limits.share = backend.machine->device(local_workers);
  if (limits.share && limits.share->info.memory_bytes > 0)
    limits.device = limits.share->info.free_memory_bytes;
  return limits;
}

std::string excess(const graph::MemoryPlan& plan, const MemoryLimits& limits) {
  const auto host = plan.total_bytes(Place::host), device = plan.total_bytes(Place::device);
  if (host > limits.host)
    return fmt::format("{:.2f} GB{} and this process may use {:.2f} GB", base::gigabytes(host),
                       limits.device ? " of host memory" : "", base::gigabytes(limits.host));
  if (limits.device && device > *limits.device)
    return fmt::format(
        "{:.2f} GB of device memory ({}{}) and {:.2f} GB of it are free", base::gigabytes(device),
        limits.share->info.name,
        limits.share->workers == 1 ? "" : fmt::format(", shared by {} workers", limits.share->workers),
        base::gigabytes(*limits.device));
  return "";
}

graph::MemoryPlan plan_run(const Options& options, const Resolved& resolved, const RunParts& parts) {
  const auto& [graph, source, backend, conditions, limits] = parts;
  graph::MemoryPlan plan = backend.machine->plan(graph, planning_options(options, resolved, backend));
  const auto scale = [&](graph::MemoryPlan::Line& line) {
    if (!parts.limits.device) line.place = Place::host;  // the device uses the host's memory
    line.bytes *= line.place == Place::device ? parts.limits.share->workers : resolved.local_workers;
  };
  const std::int64_t flat = 4 * graph::flat_layout(graph).elements;
  const std::int64_t sums = ShardSums::arrays(resolved.passes_per_worker, order_of_passes(options));
  if (sums > 0)
    plan.lines.push_back(
        {options.shard > 0 ? "partial sums of shards" : "sum of micro-batches", sums * flat, Place::device});
  for (auto& line : plan.lines) scale(line);
  add_device_sums(options, resolved, parts, plan);
  if (limits.share && resolved.workers > 1)  // comm/host_staging.h
    plan.lines.push_back({"gradients on the host", resolved.local_workers * flat});
  const bool hands_out = is_data_parallel(options);
  if (limits.share && hands_out) plan.lines.push_back({"gradients handed in", resolved.local_workers * flat});
  const auto format = source.train->format();
  plan.lines.push_back(
      {"loader", (hands_out ? 1 : resolved.local_workers) *
                     data::Loader::planned_bytes(format, loader_options(options, resolved, 0))});
  if (options.balanced_sampler)
    plan.lines.push_back({"samples by class", data::BalancedOrder::planned_bytes(*source.train)});
  if (hands_out)
    plan.lines.push_back({"inputs and outputs on their way",
                          data_parallel_bytes(options, resolved, format.bytes(), graph.classes())});
  if (resolved.stored.total() > 0)
    plan.lines.push_back({"labels", resolved.local_workers * ImageStore::planned_bytes(resolved.stored)});
  const auto add_evaluation = [&](const char* purpose, const data::Dataset& set) {
    auto batches = evaluation_options(options, resolved, set.size(), 0);
    batches.draws = resolved.stored.total() > 0;
    plan.lines.push_back(
        {purpose, resolved.local_workers * data::EvaluationBatches::planned_bytes(set.format(), batches)});
  };
  if (const auto other = options.window_steps == 0 ? make_evaluation_graph(graph, source) : std::nullopt) {
    auto compiled = evaluation_compile_options(options, resolved, backend, 0);
    for (auto& line : backend.machine->plan(*other, compiled).lines) {
      scale(line);
      line.purpose = "evaluation: " + line.purpose;
      plan.lines.push_back(line);
    }
  }
  const bool has_validation = source.validation != nullptr;
  if (reads_test(options, has_validation)) add_evaluation("test loader", *source.test);
  if (validates(options, has_validation)) {
    add_evaluation("validation loader", *source.validation);
    plan.lines.push_back({"weights of the best epoch", flat});
  }
  if (has_slow_weights(options))
    plan.lines.push_back(
        {options.ema.decay > 0 ? "average of the weights" : "slow weights", resolved.local_workers * flat});
  if (options.ema.decay > 0 && options.device.starts_with("cuda")) {
    plan.lines.push_back({"average of the weights on the device", flat, Place::device});
    scale(plan.lines.back());
  }
  if (backend.place.is_first() && options.window_steps == 0 && options.save_checkpoints &&
      !options.out.empty())
    plan.lines.push_back({"copy for checkpoints", Snapshot::planned_bytes(graph, options)});
  plan.lines.push_back({"data set", source.resident_bytes});
  plan.lines.push_back({"process", process_bytes(source, *backend.history)});
  return plan;
}

std::int64_t batch_unit(const Options& options) {
  const bool ghosts = options.batch_norm == engine::BatchNormMode::ghost;
  return std::max<std::int64_t>({1, options.shard, options.micro_batch, ghosts ? options.ghost_size : 1});
}

namespace {

bool fits(const Options& options, const RunParts& parts) {
  return excess(plan_run(options, resolve(options, parts.conditions), parts), parts.limits).empty();
}

}  // namespace

std::int64_t largest_local_batch(Options options, const RunParts& parts, std::int64_t most) {
  options.global_batch = 0;
  const auto batch_fits = [&](std::int64_t batch) {
    options.local_batch = batch;
    return fits(options, parts);
  };
  const std::int64_t unit = batch_unit(options);
  // The shards of a worker must stay a power of two, so with --shard the search is over powers.
  if (options.shard > 0) {
    std::int64_t best = 0;
    for (std::int64_t batch = unit; batch <= most && batch_fits(batch); batch *= 2) best = batch;
    return best;
  }
  std::int64_t low = 0, high = most / unit + 1;  // low fits, high does not
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (batch_fits(middle * unit) ? low : high) = middle;
  }
  return low * unit;
}

namespace {

/// The largest micro-batch of this local batch with which the plan fits; 0: none, or the options exclude it.
std::int64_t largest_micro_batch(Options options, std::int64_t local_batch, const RunParts& parts) {
  const std::int64_t most = options.micro_batch > 0 ? options.micro_batch - 1 : local_batch / 2;
  if (options.shard > 0 || options.data_parallel) return 0;
  for (std::int64_t part = most; part > 0; --part) {
    if (local_batch % part != 0) continue;
    options.micro_batch = part;
    try {
      if (fits(options, parts)) return part;
    } catch (const base::Error&) {
      // Other options do not accept this part, such as --bn ghost.
    }
  }
  return 0;
}

}  // namespace

void require_memory(const Options& options, const Resolved& resolved, const RunParts& parts,
                    const graph::MemoryPlan& plan, bool trains) {
  const std::string too_much = excess(plan, parts.limits);
  if (too_much.empty()) return;
  const auto begin = fmt::format("memory: the plan for {} x local batch {} is {}",
                                 base::counted(resolved.workers, "worker"), resolved.local_batch, too_much);
  if (measure::address_space_left() < kSearchBytes && plan.total_bytes(Place::host) > parts.limits.host)
    base::fail(base::ErrorKind::device, "{} by its `ulimit -v`; raise it, or use a smaller batch or model",
               begin);
  const std::int64_t part = trains ? largest_micro_batch(options, resolved.local_batch, parts) : 0;
  const auto in_parts =
      part > 0 ? fmt::format("--micro-batch {} computes this batch in parts that fit", part) : "";
  if (options.micro_batch > 0 && part > 0) base::fail(base::ErrorKind::device, "{}; {}", begin, in_parts);
  const std::int64_t largest =
      largest_local_batch(options, parts, parts.source.train->size() / resolved.workers);
  if (largest == 0)
    base::fail(base::ErrorKind::device,
               "{}; not even the smallest batch fits: use fewer workers or a smaller model", begin);
  base::fail(base::ErrorKind::device, "{}; the largest local batch that fits is {}{}", begin, largest,
             in_parts.empty() ? "" : ", and " + in_parts);
}

}  // namespace paceline::train
