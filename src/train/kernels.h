#pragma once

/// Which algorithms a run computes with: what it asks the engine for, and what its record says of the answer.

#include "engine/engine.h"
#include "measure/record.h"
#include "train/options.h"

namespace paceline::train {

/// By options.kernels_from, else by `earlier` (what the checkpoint of a resumed run says; empty: nothing),
/// else by measuring where the options want that. With --shard nothing is measured: its promise is the same
/// bits, whatever a machine was found to be fast at.
///
/// Errors   Error(data) when the file of options.kernels_from cannot be read, or names no algorithms
[[nodiscard]] engine::KernelRequest kernel_request(const Options& options,
                                                   const engine::KernelAlgorithms& earlier);

[[nodiscard]] measure::KernelsRecord describe(const engine::PreparedKernels& kernels);

}  // namespace paceline::train
