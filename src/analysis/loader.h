#pragma once

/// What the loaders of a cell gave, could have given, and what it would take so that no step waits for them.

#include <optional>

#include "analysis/breakdown.h"

namespace paceline::analysis {

struct LoaderUse {
  double used_images_per_s = 0;     ///< global batch / mean step
  double wanted_images_per_s = 0;   ///< the same, had no step waited for data
  double ceiling_images_per_s = 0;  ///< what all loader threads could have prepared; 0: not known
  /// Images that a core prepares in a second: of processor time, so that others on the cores change it
  /// little.
  std::optional<double> images_per_s_a_core;
  /// Of the time that loader threads spent preparing, the part in which they computed; in the rest they
  /// waited for files, or for a core.
  std::optional<double> computing_share;
  std::optional<double> ready;         ///< batches that stood ready when a step asked, mean over ranks
  std::optional<double> queue;         ///< the most of them that there can be
  std::optional<double> waited_share;  ///< steps that found no batch ready, of all
  int threads_per_worker = 1;          ///< 0: the worker prepares its batches itself
  /// Loader threads a worker with which the wanted rate would be kLoaderFastEnough times over: what to give,
  /// where cores are idle. 0: not known.
  int threads_wanted = 0;
};

/// Precondition: `breakdown` is of a measured cell.
[[nodiscard]] LoaderUse loader_use(const Breakdown& breakdown);

}  // namespace paceline::analysis
