#pragma once

/// Plans the memory of a whole run before anything is allocated, and finds the largest batch that fits.

#include <cstdint>
#include <optional>
#include <string>

#include "train/given/job.h"

namespace paceline::train {

/// The memory that a run may use in each place.
struct MemoryLimits {
  std::int64_t host = 0;               ///< bytes, of this process
  std::optional<std::int64_t> device;  ///< bytes of one device; nothing if it has no memory of its own
  std::optional<DeviceShare> share;    ///< the device; nothing for engines of the host
};

/// The current limits. Host: this process's share of the host's free memory, at most what `ulimit -v` leaves,
/// plus what the process already holds. Device: its free memory.
[[nodiscard]] MemoryLimits memory_limits(const Backend& backend, int local_workers);

/// What a run is planned from, besides its options.
struct RunParts {
  const graph::Graph& graph;
  const data::Source& source;
  const Backend& backend;
  RunConditions conditions;
  MemoryLimits limits;
};

/// If `plan` exceeds a limit: a sentence that names place, need and limit, without a full stop. Else "".
[[nodiscard]] std::string excess(const graph::MemoryPlan& plan, const MemoryLimits& limits);

/// The plan of a run by purpose and place. Host, per process: the engines' lines times its workers, loaders,
/// partial sums of shards, the data set, the process itself (code, libraries, stacks, and what earlier plans
/// and runs left in the heap). Device, per device: the engines' lines, and sums beside gradients, times the
/// workers that share it; buffers of sums over GPUs (Backend::device_sum_bytes).
[[nodiscard]] graph::MemoryPlan plan_run(const Options& options, const Resolved& resolved,
                                         const RunParts& parts);

/// The number that must divide each local batch: the size of a shard or of a ghost group.
[[nodiscard]] std::int64_t batch_unit(const Options& options);

/// The largest local batch, at most `most`, whose plan is within the limits; 0 if there is none.
///
/// Cost     about log2(limit) plans
[[nodiscard]] std::int64_t largest_local_batch(Options options, const RunParts& parts, std::int64_t most);

/// `trains`: whether the batch may be cut into micro-batches.
///
/// Errors   Error(device) when the plan exceeds a limit: the place, both numbers, and what fits
void require_memory(const Options& options, const Resolved& resolved, const RunParts& parts,
                    const graph::MemoryPlan& plan, bool trains);

}  // namespace paceline::train
