#pragma once

/// The memory of a whole run, planned before anything is allocated, and the largest batch that fits.

#include <cstdint>
#include <optional>
#include <string>

#include "train/job.h"

namespace paceline::train {

/// What a run has and may use of each place.
struct MemoryLimits {
  std::int64_t host = 0;               ///< bytes, of this process
  std::optional<std::int64_t> device;  ///< bytes of one device; nothing where none has memory of its own
  std::optional<DeviceShare> share;    ///< the device; nothing for engines of the host
};

/// What there is now: this process's share, among the processes of its host, of what is free, but no more
/// than `ulimit -v` leaves it, and what it holds already. Of a device, what nobody holds.
[[nodiscard]] MemoryLimits memory_limits(const Backend& backend, int local_workers);

/// Whether `plan` exceeds a limit: a sentence that names place, need and limit, without a full stop. Empty
/// where it fits.
[[nodiscard]] std::string excess(const graph::MemoryPlan& plan, const MemoryLimits& limits);

/// By purpose and place. Host: of one process: the engines' lines times its workers, loaders, partial sums of
/// shards, the data set, the process itself (code, libraries, stacks and what its earlier plans and runs left
/// in the heap). Device: of one device: the engines' lines, and sums that lie with gradients, times the
/// workers that share it; what sums over GPUs take (Backend::device_sum_bytes).
[[nodiscard]] graph::MemoryPlan plan_run(const Options& options, const Resolved& resolved,
                                         const graph::Graph& graph, const data::Source& source,
                                         const Backend& backend, const MemoryLimits& limits);

/// The unit in which local batches go by the options' own rules: a shard or a ghost group divides each.
[[nodiscard]] std::int64_t batch_unit(const Options& options);

/// The largest local batch, at most `most`, whose plan is within `limits`; 0 when none is.
/// Cost     about log2(limit) plans
[[nodiscard]] std::int64_t largest_local_batch(Options options, const graph::Graph& graph,
                                               const data::Source& source, const Backend& backend,
                                               const RunConditions& circumstances, const MemoryLimits& limits,
                                               std::int64_t most);

/// Errors   Error(device) when the plan exceeds what there is in a place: place, both numbers, and the
/// largest
///          batch that fits
void require_memory(const Options& options, const Resolved& resolved, const graph::Graph& graph,
                    const data::Source& source, const Backend& backend, const RunConditions& circumstances,
                    const graph::MemoryPlan& plan, const MemoryLimits& limits);

}  // namespace paceline::train
