#pragma once

/// Computes where the time of a cell goes: its ledger (the account of all seconds) per step, and what
/// explains the difference to the baseline.
///
/// Every part is seconds of one training step. Evaluation and checkpoints are separate, since no step waits
/// for them. Parts are means over ranks and repeats (all phases over all steps), so that they add up to the
/// total; medians would not.

#include <optional>
#include <vector>

#include "analysis/compare/cell.h"

namespace paceline::analysis {

/// Seconds per step.
struct Parts {
  double forward = 0, backward = 0, update = 0;
  double exposed_transfer = 0;  ///< bytes move and the step has nothing else to do
  double exposed_wait = 0;      ///< waiting for a later rank
  double data_wait = 0;
  double copy = 0;
  double other = 0;
  [[nodiscard]] double compute() const { return forward + backward + update; }
  [[nodiscard]] double exposed() const { return exposed_transfer + exposed_wait; }
  [[nodiscard]] double total() const { return compute() + exposed() + data_wait + copy + other; }
};

struct Breakdown {
  const Cell* cell = nullptr;
  std::int64_t steps = 0;  ///< measured, all repeats
  Parts mean;              ///< over ranks
  Parts slowest;           ///< the rank with the most own work (everything but waiting for others)
  int slowest_rank = 0;
  double imbalance = 0;            ///< own work of the slowest rank / mean own work - 1
  double communication_total = 0;  ///< per step: posting to completion, mean over ranks; the next two
  double transfer = 0;             ///< moving bytes
  double late_peer = 0;            ///< this rank was ready, a later one not
  double overlapped = 0;           ///< total - exposed, at least 0
  double woken_late = 0;     ///< exposed beyond the communication's own time: it was complete, but the rank
                             ///< was not running (more threads than cores)
  double outside_steps = 0;  ///< evaluation and checkpoints, seconds of the whole window, mean over ranks
  double closure = 0;        ///< sum of the ledger / measured wall time; the rank farthest from 1
  double loader_images_per_s = 0;  ///< what the loaders of all ranks could prepare; 0: unknown
  bool prepares_in_steps = false;  ///< --loader-threads 0: each worker prepares its batch before it computes
  // The same for each repeat alone: their extremes are the intervals of a breakdown.
  std::vector<Parts> repeats;
  std::vector<double> communication_repeats;
};

/// Requires  the cell is measured
[[nodiscard]] Breakdown breakdown(const Cell& cell);

/// If more than kDataBound of a step is waiting for data, there is a cause to name: the loader, or, if it
/// could have prepared kLoaderFastEnough times the images that were used, the scheduling of its threads.
inline constexpr double kDataBound = 0.05;
inline constexpr double kLoaderFastEnough = 1.5;
/// Whether the loader is the limit; then a residual is not communication.
[[nodiscard]] bool is_data_bound(const Breakdown& breakdown);
/// Whether steps wait for data although the loader was fast enough, since its threads did not run in time.
[[nodiscard]] bool waits_for_scheduling(const Breakdown& breakdown);

/// T(N) - T(1)/N over an epoch of the same data (all D images: Cell::full_steps), and its exact parts. Each
/// part is that phase with N workers minus the same phase of the baseline over N. The parts add up to the
/// residual.
struct Residual {
  double epoch_s = 0;     ///< T(N), by the ledger
  double residual_s = 0;  ///< T(N) - T(1)/N
  double exposed_transfer_s = 0;
  double waiting_s = 0;  ///< for a later rank: imbalance of work or of cores
  double data_wait_s = 0;
  double slower_kernels_s =
      0;              ///< compute beyond the baseline's over N: smaller batches, shared caches and cores
  double rest_s = 0;  ///< copy and other
  double communication_s = 0;  ///< total, for comparison: the residual is often mistaken for it
};

/// Requires  both are from measured cells that compare() allows
[[nodiscard]] Residual residual(const Breakdown& baseline, const Breakdown& breakdown);

// Computes what the loaders of a cell delivered, what they could have delivered, and what they need so that
// no step waits.

struct LoaderUse {
  double used_images_per_s = 0;     ///< global batch / mean step
  double wanted_images_per_s = 0;   ///< the same if no step had waited for data
  double ceiling_images_per_s = 0;  ///< what all loader threads could have prepared; 0: unknown
  /// Images that a core prepares per second of processor time, which other programs hardly change.
  std::optional<double> images_per_s_a_core;
  /// The fraction of the loader threads' preparing time in which they computed; in the rest they waited for
  /// files or for a core.
  std::optional<double> computing_share;
  std::optional<double> ready;         ///< batches ready when a step asked, mean over ranks
  std::optional<double> queue;         ///< the largest possible number of them
  std::optional<double> waited_share;  ///< fraction of steps that found no batch ready
  int threads_per_worker = 1;          ///< 0: the worker prepares its batches itself
  /// Loader threads per worker that would reach kLoaderFastEnough times the wanted rate: the recommendation
  /// if cores are idle. 0: unknown.
  int threads_wanted = 0;
};

/// Requires  `breakdown` is of a measured cell
[[nodiscard]] LoaderUse loader_use(const Breakdown& breakdown);

}  // namespace paceline::analysis
