#pragma once

/// What one rank measured. A new figure is a member and its key, both here: the record, its JSON, the report
/// and the message to rank 0 follow. It is optional, so that records without it still open.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "measure/ledger.h"

namespace paceline::measure {

/// One worker's view of the measured window.
struct RankRecord {
  int rank = 0;
  std::optional<std::string> host;  ///< if several processes ran
  std::vector<int> cores;           ///< pinned to; empty: not pinned
  double wall_s = 0;                ///< of the window, measured independently of the ledger
  PhaseSeconds phases{};            ///< the ledger; sums to wall_s within 1 %
  double communication_s = 0;       ///< time in which at least one all-reduce was posted and not complete
  /// Part of communication_s: moving bytes (for each collective the shortest duration over ranks)
  double transfer_s = 0;
  double late_peer_s = 0;  ///< the rest of communication_s: waiting for a later rank
  /// Each step of the window, or one of MeasuredWindow::timed_of consecutive steps.
  std::vector<double> step_s;
  /// This rank's own work in each step of step_s: the step without the time that it waited for collectives
  /// (for bytes or for a later rank). None: an older record.
  std::optional<std::vector<double>> own_s = {};
  /// Sum over all steps of the window, if step_s does not have all of them.
  std::optional<double> steps_s = {};
  double loader_prepare_s = 0;  ///< for this rank's batches, summed over the threads that prepared them
  int loader_threads = 0;
  // None: an older record.
  std::optional<double> loader_processor_s = {};  ///< processor time of loader_prepare_s
  std::optional<std::int64_t> loader_waits = {};  ///< steps that found no batch ready
  std::optional<double> loader_ready = {};        ///< mean number of batches ready when a step asked
  std::optional<std::int64_t> loader_queue = {};  ///< the largest possible number of them
  std::optional<int> process = {};  ///< index among the processes with workers; none: only one process
  /// Peak memory of its process, which the process's other ranks share.
  std::optional<std::int64_t> peak_bytes = {};
  /// In the window, counted by its communicator.
  std::optional<std::int64_t> bytes_sent = {}, bytes_received = {};
};

template <typename A>
void fields(A& archive, base::In<A, RankRecord>& value) {
  archive("rank", value.rank);
  archive("host", value.host);
  archive("cores", value.cores);
  archive("wall_s", value.wall_s);
  archive("phases_s", value.phases);
  archive("communication_s", value.communication_s);
  archive("transfer_s", value.transfer_s);
  archive("late_peer_s", value.late_peer_s);
  archive("loader_prepare_s", value.loader_prepare_s);
  archive("loader_threads", value.loader_threads);
  archive("loader_processor_s", value.loader_processor_s);
  archive("loader_waits", value.loader_waits);
  archive("loader_ready", value.loader_ready);
  archive("loader_queue", value.loader_queue);
  base::where_present(archive, "process", value.process);
  base::where_present(archive, "peak_bytes", value.peak_bytes);
  base::where_present(archive, "bytes_sent", value.bytes_sent);
  base::where_present(archive, "bytes_received", value.bytes_received);
  archive("step_s", value.step_s);
  base::where_present(archive, "own_s", value.own_s);
  base::where_present(archive, "steps_s", value.steps_s);
}

}  // namespace paceline::measure
