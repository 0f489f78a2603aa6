#pragma once

/// deal_gpus() assigns GPUs to the processes of a host, near the cores to which a launcher has bound each. A
/// pure function.

#include <span>
#include <vector>

namespace paceline::cli {

/// For n processes that see the same GPUs: returns a permutation of 0 to n-1; process p takes GPU result[p].
/// In the order of processes, each takes a free GPU near its cores, GPU p if possible; those that find none
/// get the remaining ones. The result is 0, 1, 2, ... if no memory node is known, or all are the same.
///
/// `node_of_process`: the memory node of each process's cores; -1: unknown, or several. `node_of_gpu`: that
/// of each GPU.
[[nodiscard]] std::vector<int> deal_gpus(std::span<const int> node_of_process,
                                         std::span<const int> node_of_gpu);

}  // namespace paceline::cli
