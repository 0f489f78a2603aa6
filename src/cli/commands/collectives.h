#pragma once

/// Times collectives alone, for `comm` and the comm cells of a study.

#include <memory>
#include <string>
#include <vector>

#include "base/topology.h"
#include "comm/communicator.h"
#include "comm/probe.h"
#include "measure/record.h"
#include "train/given/backend.h"
#include "train/given/options.h"

namespace paceline::cli {

/// The buffers for timing one rank's collectives, on the device on which the rank would train.
class ProbeMemory {
 public:
  /// A collective call: decides how the device's arrays are carried. `worker_on_host` as in
  /// engine::CompileOptions.
  ///
  /// Errors   Error(device): the device, or two times `bytes` of its memory, is not available
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

/// Adds the measurement of one size and returns it.
const measure::CollectiveRecord& add_collective(measure::Record& record, comm::Trial trial,
                                                comm::Probe probe);
/// Adds latency and bandwidth fitted to the record's sizes of `trial`, if they determine them.
void add_link_fit(measure::Record& record, comm::Trial trial);
/// Sets status and reason, depending on whether every result was right.
void conclude_collectives(measure::Record& record);

/// Times the all-reduce alone, in place as a training uses it, for about `seconds`: sizes from 4 KiB to 16
/// MiB (64 MiB if buckets are larger), as far as memory allows. Uses a thread for each of this process's
/// workers, bound to a core if workers are. With several processes all call it; the first gets the whole
/// record.
///
/// Errors   Error(comm) when a peer is lost
[[nodiscard]] measure::Record measure_all_reduce(const train::Options& options, const train::Backend& backend,
                                                 double seconds);

/// busbw of the largest size; nothing if there is none.
[[nodiscard]] std::optional<double> largest_busbw_gb_per_s(const measure::Record& record);

}  // namespace paceline::cli
