#pragma once

/// Assigns GPUs to the workers of a host's processes. Pure functions.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/archive.h"

namespace paceline::cluster {

/// `cores` (ascending) as text, in the form of taskset and Slurm: "0-3,8".
[[nodiscard]] std::string core_ranges(const std::vector<int>& cores);

/// A GPU that a process sees.
struct SeenGpu {
  /// The same in all processes of the host, whatever number they give to the GPU: its PCI bus id. For a part
  /// of a GPU (MIG) the name of the part follows.
  std::string id;
  int node = -1;           ///< memory node near it; -1: unknown
  std::vector<int> cores;  ///< near it, ascending; empty: unknown
};
template <typename A>
void fields(A& archive, base::In<A, SeenGpu>& value) {
  base::each_member(archive, value.id, value.node, value.cores);
}

/// SeenGpu::id of the GPU with number `index` of this process. `bus_id`: as CUDA or NVML writes it; empty for
/// a lost GPU, which is then known by its number. `visible`: CUDA_VISIBLE_DEVICES, or null.
[[nodiscard]] std::string gpu_identity(const std::string& bus_id, std::size_t index, const char* visible);

/// A process of a host, and the GPUs that it sees, cuda:0 first.
struct GpuTaker {
  int node = -1;  ///< memory node of its cores; -1: unknown, or several
  std::vector<SeenGpu> gpus;
  std::vector<int> cores;  ///< the cores that it may use
  bool works = true;       ///< whether it has workers in this run or cell
};

/// [process][worker]: the number of the GPU that each worker takes, in the process's own numbering.
///
/// Processes that see the same GPUs in the same order share them: worker i of all their workers takes GPU i;
/// if there are more workers than GPUs, the next worker takes the first GPU again. If processes are bound to
/// different memory nodes, a worker takes a GPU near its process as long as there is one, in the order of
/// processes; the workers that find none get the remaining ones. The result for the first processes does not
/// depend on whether later ones work. The workers of processes that see no GPU are numbered from 0.
///
/// Processes with different lists do not consider each other's choices: if one sees GPUs a and b and another
/// only a, both take a.
[[nodiscard]] std::vector<std::vector<int>> assign_gpus(std::span<const GpuTaker> processes,
                                                        int workers_each);

/// The GPUs of the workers of one process.
struct AssignedGpus {
  std::vector<int> numbers;  ///< of each worker's GPU, in the process's own numbering
  /// Working workers of the host on the one of these GPUs that has the most. None: the process sees no GPU.
  std::optional<int> workers_on_one;
  int workers_here = 0;        ///< working workers of the host
  bool is_any_shared = false;  ///< several working workers of the host share a GPU, this process's or another
  /// The cores near the GPU of each worker, for the processes that may use the same cores as this one, in
  /// their order.
  std::vector<std::vector<int>> cores_near;
};
/// The GPUs of process `mine` if only the processes that `work` run. The others keep theirs, so that a
/// process has the same GPU in all cells of a study. `fixed`: all workers take this number.
[[nodiscard]] AssignedGpus assigned_to(std::size_t mine, std::span<const GpuTaker> processes,
                                       int workers_each, std::optional<int> fixed = std::nullopt);

/// The workers on the GPU that has the most, if `workers` use `gpus` GPUs in turn.
[[nodiscard]] constexpr int most_on_one(int workers, int gpus) { return (workers + gpus - 1) / gpus; }

}  // namespace paceline::cluster
