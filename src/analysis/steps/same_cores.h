#pragma once

/// Compares two ways to use the same cores at the same global batch: few workers with many threads, or more
/// workers with fewer threads. More workers exchange gradients and have smaller batches; threads of one
/// worker synchronise after every op. Measurements say which is faster, and the ledger says why.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"

namespace paceline::analysis {

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

  [[nodiscard]] double total_s() const {
    return compute_s + exposed_transfer_s + waiting_s + data_wait_s + rest_s;
  }
};

/// Every pair of measured cells that compare() allows, by global batch, without cells with more threads than
/// cores and without those that the CUDA engine computed. At most one row per pair of configurations
/// (workers, how they are joined, model, data): the one with the fewest remarks (one version, not two), then
/// the one with the most repeats.
[[nodiscard]] std::vector<SameCores> same_cores(std::span<const Cell> cells);

}  // namespace paceline::analysis
