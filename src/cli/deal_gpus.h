#pragma once

/// Which GPU each process of a host takes, where a launcher has bound the processes to cores. Pure functions.

#include <span>
#include <vector>

namespace paceline::cli {

/// Of n processes that see the same GPUs: the place of each among them, 0 to n-1, each once; place i takes
/// GPU i. A process takes one near its cores as long as there is one, in the order of processes; who finds
/// none gets what is left. In their own order where nothing is known, and where all are near one node.
///
/// `node_of_process` memory node of its cores, -1: unknown, or several; `node_of_gpu` likewise, of each GPU
[[nodiscard]] std::vector<int> deal_gpus(std::span<const int> node_of_process,
                                         std::span<const int> node_of_gpu);

}  // namespace paceline::cli
