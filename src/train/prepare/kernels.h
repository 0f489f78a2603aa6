#pragma once

/// Makes the request for the algorithms of a run, and describes the engine's answer for the record.

#include "engine/engine.h"
#include "measure/record.h"
#include "train/given/options.h"

namespace paceline::train {

/// Requests the algorithms of options.kernels_from; else `earlier` (from the checkpoint of a resumed run, if
/// not empty); else measuring, if the options ask for it. With --shard nothing is measured, since it promises
/// the same bits whatever is fastest on a machine.
///
/// Errors   Error(data): the file of options.kernels_from cannot be read, or names no algorithms
[[nodiscard]] engine::KernelRequest kernel_request(const Options& options,
                                                   const engine::KernelAlgorithms& earlier);

[[nodiscard]] measure::KernelsRecord describe(const engine::PreparedKernels& kernels);

}  // namespace paceline::train
