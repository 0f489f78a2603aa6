#pragma once

/// Collectives timed alone: what `comm` and the comm cells of a study share.

#include <memory>
#include <string>
#include <vector>

#include "base/topology.h"
#include "comm/communicator.h"
#include "comm/probe.h"
#include "measure/record.h"
#include "train/backend.h"
#include "train/options.h"

namespace paceline::cli {

/// What one rank's collectives are timed in: of the device that the rank would train on.
class ProbeMemory {
 public:
  /// Collective: decides who carries the device's arrays. `worker_on_host` as in engine::CompileOptions.
  /// Errors   Error(device): the device, or `bytes` of its memory twice, cannot be had
  ProbeMemory(comm::Communicator& communicator, const std::string& device, int worker_on_host,
              std::size_t bytes);
  [[nodiscard]] comm::ProbeArrays arrays() const { return {whole_.array(), apart_.array()}; }

 private:
  std::shared_ptr<const base::Memory> memory_;
  base::OwnedArray whole_, apart_;
};

/// A record of kind "comm" before anything is timed.
[[nodiscard]] measure::Record begin_collectives(const train::ProcessPlacement& place,
                                                const base::CorePlan& cores,
                                                const comm::Communicator& communicator,
                                                std::vector<std::string> libraries = {});

/// Adds what was timed of one size; returns it.
const measure::CollectiveRecord& add_collective(measure::Record& record, comm::Trial trial,
                                                comm::Probe probe);
/// Adds latency and bandwidth of the sizes that the record has of `trial`, where they show them.
void add_link_fit(measure::Record& record, comm::Trial trial);
/// Status and reason, by whether every result was right.
void conclude_collectives(measure::Record& record);

/// The all-reduce alone, in place as a training uses it, for about `seconds`: over sizes from 4 KiB to 16 MiB
/// (64 MiB where buckets are larger than that), as far as memory allows. A thread for each of this process's
/// workers, bound to a core where workers are. With several processes all call it; the first gets the whole
/// record.
///
/// Errors   Error(comm) when a peer is lost
[[nodiscard]] measure::Record measure_all_reduce(const train::Options& options, const train::Backend& backend,
                                                 double seconds);

/// busbw of the largest size; nothing without one.
[[nodiscard]] std::optional<double> largest_busbw_gb_per_s(const measure::Record& record);

}  // namespace paceline::cli
