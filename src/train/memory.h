#pragma once

/// The memory of a whole run, planned before anything is allocated, and the largest batch that fits.

#include <cstdint>

#include "train/job.h"

namespace paceline::train {

/// Of one process, by purpose: the engines' lines times its workers, loaders, partial sums of shards, the
/// data set, the process itself (code, libraries, stacks and what its earlier plans and runs left in the
/// heap).
[[nodiscard]] graph::MemoryPlan plan_run(const Options& options, const Resolved& resolved,
                                         const graph::Graph& graph, const data::Source& source,
                                         const Backend& backend);

/// The unit in which local batches go by the options' own rules: a shard or a ghost group divides each.
[[nodiscard]] std::int64_t batch_unit(const Options& options);

/// The largest local batch, at most `limit`, whose plan is at most `available_bytes`; 0 when none is.
/// Cost     about log2(limit) plans
[[nodiscard]] std::int64_t largest_local_batch(Options options, const graph::Graph& graph,
                                               const data::Source& source, const Backend& backend,
                                               const RunConditions& circumstances,
                                               std::int64_t available_bytes, std::int64_t limit);

/// What this process may use in all: its share, among the processes of its host, of what is free now, but no
/// more than `ulimit -v` leaves it, and what it holds already.
[[nodiscard]] std::int64_t usable_memory_bytes(const ProcessPlacement& place);

/// Errors   Error(device) when the plan exceeds what there is: both numbers, and the largest batch that fits
void require_memory(const Options& options, const Resolved& resolved, const graph::Graph& graph,
                    const data::Source& source, const Backend& backend, const RunConditions& circumstances,
                    const graph::MemoryPlan& plan);

}  // namespace paceline::train
