#include "train/memory.h"

#include <algorithm>

#include "base/error.h"
#include "measure/environment.h"
#include "train/evaluate.h"
#include "train/shards.h"

namespace paceline::train {
namespace {

/// A process that has made its first kernels, beside its arrays: measured 24 MB with resnet8-cifar, one
/// worker of 2 threads.
constexpr std::int64_t kProcessBytes = 24'000'000;

/// What a process's first run adds to what its plans left behind (code that only a run touches, threads):
/// measured 0.8 to 1.3 MB with resnet8-cifar in bf16 and fp32, one worker of 2 threads. Later runs find it
/// all there.
constexpr std::int64_t kFirstRunBytes = 1'100'000;

/// Address space below which batches are not tried out: each brings kernels, and oneDNN 2.6 ends in a
/// segmentation fault where room for their code is refused (seen with 90 MB left, not with 190 MB).
constexpr std::int64_t kSearchBytes = 256'000'000;

std::int64_t process_bytes(const data::Source& source, const ProcessHistory& history) {
  const std::int64_t now = measure::resident_bytes() - source.resident_bytes;
  return std::max(kProcessBytes, now + (history.has_run ? 0 : kFirstRunBytes));
}

}  // namespace

graph::MemoryPlan plan_run(const Options& options, const Resolved& resolved, const graph::Graph& graph,
                           const data::Source& source, const Backend& backend) {
  graph::MemoryPlan plan = backend.plan(graph, planning_options(options, resolved));
  for (auto& line : plan.lines) line.bytes *= resolved.local_workers;
  plan.lines.push_back(
      {"loader", resolved.local_workers * data::Loader::planned_bytes(source.train->format(),
                                                                      loader_options(options, resolved, 0))});
  const auto add_evaluation = [&](const char* purpose, const data::Dataset* set) {
    if (set == nullptr || options.window_steps != 0 || options.evaluate_every <= 0) return;
    plan.lines.push_back(
        {purpose, resolved.local_workers *
                      data::EvaluationBatches::planned_bytes(
                          set->format(), evaluation_options(set->size(), resolved.engine_batch,
                                                            options.test_views, 0, resolved.workers))});
  };
  add_evaluation("test loader", source.test.get());
  add_evaluation("validation loader", source.validation.get());
  const std::int64_t shard_arrays = ShardSums::arrays(resolved.shards_per_worker);
  if (shard_arrays > 0)
    plan.lines.push_back({"partial sums of shards",
                          resolved.local_workers * shard_arrays * 4 * graph::flat_layout(graph).elements});
  if (options.lookahead.steps > 0)
    plan.lines.push_back({"slow weights", resolved.local_workers * 4 * graph::flat_layout(graph).elements});
  plan.lines.push_back({"data set", source.resident_bytes});
  plan.lines.push_back({"process", process_bytes(source, *backend.history)});
  return plan;
}

std::int64_t usable_memory_bytes(const ProcessPlacement& place) {
  return std::min(measure::available_memory_bytes() / place.neighbours, measure::address_space_left()) +
         measure::resident_bytes();
}

std::int64_t batch_unit(const Options& options) {
  const bool ghosts = options.batch_norm == engine::BatchNormMode::ghost;
  return std::max<std::int64_t>({1, options.shard, ghosts ? options.ghost_size : 1});
}

std::int64_t largest_local_batch(Options options, const graph::Graph& graph, const data::Source& source,
                                 const Backend& backend, const RunConditions& circumstances,
                                 std::int64_t available_bytes, std::int64_t limit) {
  options.global_batch = 0;
  const auto fits = [&](std::int64_t batch) {
    options.local_batch = batch;
    return plan_run(options, resolve(options, circumstances), graph, source, backend).total_bytes() <=
           available_bytes;
  };
  const std::int64_t unit = batch_unit(options);
  // Shards a worker stay a power of two, so with --shard the search is over powers.
  if (options.shard > 0) {
    std::int64_t best = 0;
    for (std::int64_t batch = unit; batch <= limit && fits(batch); batch *= 2) best = batch;
    return best;
  }
  std::int64_t low = 0, high = limit / unit + 1;  // low fits, high does not
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle * unit) ? low : high) = middle;
  }
  return low * unit;
}

void require_memory(const Options& options, const Resolved& resolved, const graph::Graph& graph,
                    const data::Source& source, const Backend& backend, const RunConditions& circumstances,
                    const graph::MemoryPlan& plan) {
  const std::int64_t usable = usable_memory_bytes(backend.place);
  if (plan.total_bytes() <= usable) return;
  if (measure::address_space_left() < kSearchBytes)
    base::fail(base::ErrorKind::device,
               "memory: the plan for {} worker{} x local batch {} is {:.2f} GB and this process may use "
               "{:.2f} GB by its `ulimit -v`; raise it, or use a smaller batch or model",
               resolved.workers, resolved.workers == 1 ? "" : "s", resolved.local_batch,
               static_cast<double>(plan.total_bytes()) / 1e9, static_cast<double>(usable) / 1e9);
  const std::int64_t largest = largest_local_batch(options, graph, source, backend, circumstances, usable,
                                                   source.train->size() / resolved.workers);
  if (largest == 0)
    base::fail(base::ErrorKind::device,
               "memory: the plan for {} worker{} x local batch {} is {:.2f} GB and this process may use "
               "{:.2f} GB; not even the smallest batch fits: use fewer workers or a smaller model",
               resolved.workers, resolved.workers == 1 ? "" : "s", resolved.local_batch,
               static_cast<double>(plan.total_bytes()) / 1e9, static_cast<double>(usable) / 1e9);
  base::fail(base::ErrorKind::device,
             "memory: the plan for {} worker{} x local batch {} is {:.2f} GB and this process may use {:.2f} "
             "GB; the largest local batch that fits is {}",
             resolved.workers, resolved.workers == 1 ? "" : "s", resolved.local_batch,
             static_cast<double>(plan.total_bytes()) / 1e9, static_cast<double>(usable) / 1e9, largest);
}

}  // namespace paceline::train
