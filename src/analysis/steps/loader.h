#pragma once

/// Computes what the loaders of a cell delivered, what they could have delivered, and what they need so that
/// no step waits.

#include <optional>

#include "analysis/steps/breakdown.h"

namespace paceline::analysis {

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
