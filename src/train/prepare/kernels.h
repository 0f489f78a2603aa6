#pragma once

/// Chooses the algorithms of a run's layers, before its engines are compiled: all processes take the same,
/// and what one of them cannot compile or start is passed over by all.

#include <optional>

#include "engine/engine.h"
#include "graph/graph.h"
#include "train/prepare/memory.h"

namespace paceline::train {

/// Requests the algorithms of options.kernels_from; else `earlier` (from the checkpoint of a resumed run, if
/// not empty); else measuring, if the options ask for it. With --shard nothing is measured, since it promises
/// the same bits whatever is fastest on a machine.
///
/// Errors   Error(data): the file of options.kernels_from cannot be read, or names no algorithms
[[nodiscard]] engine::KernelRequest kernel_request(const Options& options,
                                                   const engine::KernelAlgorithms& earlier);

/// Those of a training, and of its evaluation on `evaluation_graph` where images have another size
/// there: its problems are others. `earlier`: as of kernel_request(). Collective over the processes.
///
/// Errors   as kernel_request(); Error(usage): an algorithm of options.kernels_from cannot be used here
[[nodiscard]] engine::PreparedKernels choose_kernels(const Options& options, const Resolved& resolved,
                                                     const RunParts& parts,
                                                     const std::optional<graph::Graph>& evaluation_graph,
                                                     const engine::KernelAlgorithms& earlier);

}  // namespace paceline::train
