#pragma once

/// choose_kernels() chooses an algorithm for each problem of a run. A problem is a convolution or dense layer
/// in one direction; its name is a key of KernelAlgorithms (engine.h).
///
/// An algorithm comes from an earlier run, from measuring on this machine, or from the engine's defaults.
/// Every engine with several algorithms uses this function: it passes its problems, its algorithms and a way
/// to measure them.

#include <functional>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "engine/kernel_cache.h"

namespace paceline::engine {

/// What an engine says of its problems.
struct KernelProblems {
  std::string chosen_by;      ///< one word for the defaults: a table's name, "rules"
  KernelAlgorithms defaults;  ///< for every problem of the graph
  /// Why the algorithm cannot compute the problem here, as the end of a sentence that begins with the
  /// algorithm's name ("is for convolutions"). Empty: it can.
  std::function<std::optional<std::string>(const std::string& problem, const std::string& algorithm)> refusal;
};

/// How an engine measures. Called only if the request asks for measuring.
struct KernelMeasuring {
  std::function<KernelCache()> open_cache;
  KernelCache::Measure measure;
  /// Problems measured before the cache is written and other processes get their turn.
  std::size_t portion = KernelCache::kAllAtOnce;
};

/// Returns an algorithm for every problem of `problems.defaults`, who chose it, and a note for the user.
///
/// Errors   Error(usage) if the request insists on an algorithm that is refused; errors of `measuring`
[[nodiscard]] PreparedKernels choose_kernels(const KernelProblems& problems, const KernelRequest& request,
                                             const KernelMeasuring& measuring);

}  // namespace paceline::engine
