#pragma once

/// Compares the ways in which the same workers were joined: threads of one process, processes of one node or
/// of several, or with all data passing worker 0 (--parallel data-parallel). For a training that was measured
/// in several ways it gives what each way sends, its time and its memory.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"

namespace paceline::analysis {

// Compares two ways to use the same cores at the same global batch: few workers with many threads, or more
// workers with fewer threads. More workers exchange gradients and have smaller batches; threads of one
// worker synchronise after every op. Measurements say which is faster, and the ledger says why.

struct SameCores {
  const Cell* threads = nullptr;  ///< the one with fewer workers
  const Cell* workers = nullptr;  ///< the one with more
  int cores = 0;
  Estimate speed;                    ///< images/s of `workers` over those of `threads`
  std::vector<std::string> remarks;  ///< other differences, from compare()

  // Seconds per step that `workers` take more than `threads`, by the ledger; they add up.
  double compute_s = 0;
  double exposed_transfer_s = 0;
  double waiting_s = 0;
  double data_wait_s = 0;
  double rest_s = 0;  ///< copy and other
};

/// Every pair of measured cells that compare() allows, by global batch, without cells with more threads than
/// cores and without those that the CUDA engine computed. At most one row per pair of configurations
/// (workers, how they are joined, model, data): the one with the fewest remarks (one version, not two), then
/// the one with the most repeats.
[[nodiscard]] std::vector<SameCores> same_cores(std::span<const Cell> cells);

struct ProcessLayout {
  std::string name;  ///< joined_as() and, beside one that is joined alike, the difference: "launcher slurm"
  const Cell* cell = nullptr;
  std::optional<double> sent, received;    ///< bytes per step by worker 0, counted
  std::optional<double> sent_by_all;       ///< bytes per step by all workers
  std::optional<std::int64_t> peak_bytes;  ///< of all processes together
  Estimate longer;                         ///< its step over that of the fastest way
  /// Whether it is slower than the fastest beyond the error of both; false for the fastest itself, and if
  /// other programs may have slowed it, since its step is an upper bound then.
  [[nodiscard]] bool is_slower() const {
    return cell->disturbance == measure::Disturbance::none && has_interval(longer) && longer.low > 1;
  }
};

/// One training on one number of workers, in at least two ways, in the order of the records.
struct TrainingLayouts {
  std::string label;  ///< "b 64, N 2", with its difference from another training of that size
  std::vector<ProcessLayout> layouts;
  std::size_t fastest = 0;  ///< index of the shortest step
};

/// For measured cells with several workers whose set-ups differ only in how workers are joined and on which
/// cores they run. Each way is one cell.
///
/// Lifetime  refers to `cells`
[[nodiscard]] std::vector<TrainingLayouts> process_layouts(std::span<const Cell> cells);

}  // namespace paceline::analysis
