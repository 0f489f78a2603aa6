#pragma once

/// Exact evaluation: every test sample once, whatever the number of workers.

#include "comm/communicator.h"
#include "data/evaluation.h"
#include "engine/engine.h"

namespace paceline::train {

/// The loader options of `rank`'s part of the test set.
[[nodiscard]] data::EvaluationOptions evaluation_options(std::int64_t test_samples, std::int64_t batch,
                                                         int rank, int world);

/// One pass over `batches` (this rank's part of the test set) with the engine's weights; sums and counts are
/// added over ranks. Collective; the same figures on every rank.
[[nodiscard]] engine::LossSums evaluate(data::EvaluationBatches& batches, engine::Engine& engine,
                                        comm::Communicator& communicator);

/// Adds local sums over all ranks. Collective.
[[nodiscard]] engine::LossSums reduce_sums(const engine::LossSums& local, comm::Communicator& communicator);

}  // namespace paceline::train
