#pragma once

/// Measures the peak rates of this machine's cores, with which the rates of a training are compared.

#include "engine/engine.h"

namespace paceline::engine::cpu {

struct Peak {
  double flops_per_s = 0;  ///< of matrix products in the caches; sum over all threads
  double bytes_per_s = 0;  ///< of copying arrays larger than the caches; bytes read plus bytes written
};

/// Measures with `threads` threads at once and returns the best of some repetitions.
///
/// Cost     about 0.2 s and 256 MB
/// Errors   Error(device) if oneDNN has no product in this precision, or a thread cannot be started
[[nodiscard]] Peak measure_peak(int threads, Precision precision);

}  // namespace paceline::engine::cpu
