#pragma once

/// The same cores, cut otherwise: few workers of many threads against more workers of fewer threads, at the
/// same global batch. More workers exchange gradients and have smaller batches each; threads of one worker
/// meet after every op. Which is faster is measured, and the ledger says why.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/cell.h"

namespace paceline::analysis {

struct SameCores {
  const Cell* threads = nullptr;  ///< the fewer workers
  const Cell* workers = nullptr;  ///< the more
  int cores = 0;
  Estimate speed;                    ///< images/s of `workers` over those of `threads`
  std::vector<std::string> remarks;  ///< what differs beside, as compare() says it

  // Seconds a step that `workers` take more than `threads`, by the ledger; they add up.
  double compute_s = 0;
  double exposed_transfer_s = 0;
  double waiting_s = 0;
  double data_wait_s = 0;
  double rest_s = 0;  ///< copy and other

  [[nodiscard]] double total_s() const {
    return compute_s + exposed_transfer_s + waiting_s + data_wait_s + rest_s;
  }
};

/// Every pair of measured cells that compare() allows, by global batch. Cells with more threads than cores
/// are left out. At most one row for two configurations (workers, how they are joined, model, data): that of
/// which least is remarked (one version, not two), of those the one with the most repeats.
[[nodiscard]] std::vector<SameCores> same_cores(std::span<const Cell> cells);

}  // namespace paceline::analysis
