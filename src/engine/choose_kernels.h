#pragma once

/// Which algorithm computes which problem of a run: given by an earlier run, measured, or by default. The
/// same scheme for every engine that has several algorithms; an engine says what its problems are, what can
/// compute them and how they are measured.

#include <functional>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "engine/kernel_cache.h"

namespace paceline::engine {

struct KernelProducts {
  std::string chosen_by;      ///< one word for the defaults: a table's name, "rules"
  KernelAlgorithms defaults;  ///< of every problem of the graph
  /// Why the algorithm cannot compute the problem here, to be read behind its name ("is for convolutions");
  /// nothing: it can.
  std::function<std::optional<std::string>(const std::string& product, const std::string& algorithm)> refusal;
};

/// How problems are measured here; called where that is asked for.
struct KernelMeasuring {
  std::function<KernelCache()> open_cache;
  KernelCache::Measure measure;
  std::size_t portion = KernelCache::kAllAtOnce;
};

/// Errors   Error(usage) where the request insists on an algorithm that is refused; those of measuring
[[nodiscard]] PreparedKernels choose_kernels(const KernelProducts& products, const KernelRequest& request,
                                             const KernelMeasuring& measuring);

}  // namespace paceline::engine
