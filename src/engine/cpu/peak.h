#pragma once

/// What the cores of this machine reach at most, measured: what a training's rates are held against.

#include "engine/engine.h"

namespace paceline::engine::cpu {

struct Peak {
  double flops_per_s = 0;  ///< of a matrix product that stays in the caches; all threads together
  double bytes_per_s = 0;  ///< of copying what does not: read and written
};

/// Measures with `threads` at once, the best of some repetitions.
///
/// Cost     about 0.2 s and 256 MB
/// Errors   Error(device) where oneDNN has no product of this precision, or a thread is refused
[[nodiscard]] Peak measure_peak(int threads, Precision precision);

}  // namespace paceline::engine::cpu
