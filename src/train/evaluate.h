#pragma once

/// Exact evaluation: every test sample once, whatever the number of workers.

#include "comm/communicator.h"
#include "data/dataset.h"
#include "engine/engine.h"

namespace paceline::train {

/// Sums over `dataset` with the engine's weights: rank r takes the r-th part, sums and counts are added over
/// ranks. Collective; the same figures on every rank, and (losses being rounded sums) for every number of
/// ranks that computes the same losses.
[[nodiscard]] engine::LossSums evaluate(const data::Source& source, engine::Engine& engine, int batch,
                                        comm::Communicator& communicator);

/// Adds local sums over all ranks. Collective.
[[nodiscard]] engine::LossSums reduce_sums(const engine::LossSums& local, comm::Communicator& communicator);

}  // namespace paceline::train
