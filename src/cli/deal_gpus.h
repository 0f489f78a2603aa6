#pragma once

/// Which GPUs the workers of a host's processes take. Pure functions.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace paceline::cli {

/// A GPU that a process sees.
struct SeenGpu {
  /// The same in all processes of its host, however they number it: its PCI bus id, of a part of a GPU (MIG)
  /// with the part's name.
  std::string id;
  int node = -1;           ///< memory node near it; -1: unknown
  std::vector<int> cores;  ///< near it, ascending; empty: unknown
};

/// A process of a host, and the GPUs that it sees, cuda:0 first.
struct GpuTaker {
  int node = -1;  ///< memory node of its cores; -1: unknown, or several
  std::vector<SeenGpu> gpus;
  std::vector<int> cores;  ///< that it may use
  bool works = true;       ///< in this run or cell
};

/// [process][worker]: the number, as its process counts, of the GPU that each worker takes.
///
/// Processes that see the same GPUs in the same order share them out: worker i of all of theirs takes GPU i,
/// and those that outnumber the GPUs begin again at the first. Where processes are bound to different memory
/// nodes, a worker takes a GPU near its process as long as there is one, in the order of processes; who finds
/// none gets what is left. The first processes take the same ones whether later ones work or not. Processes
/// that do not know what they see have their workers counted.
[[nodiscard]] std::vector<std::vector<int>> deal_gpus(std::span<const GpuTaker> processes, int workers_each);

/// The GPUs of a process's workers.
struct DealtGpus {
  std::vector<int> numbers;  ///< of each worker's, as this process counts
  int workers_on_one = 1;    ///< on the fullest of these GPUs: of all workers of the host that work
  /// Near the GPU of each worker of the processes that share this one's cores, in their order.
  std::vector<std::vector<int>> cores_near;
};
/// What process `mine` gets if those that `work` run. The others keep theirs, so that no cell of a study
/// gives a process another GPU. `fixed`: all workers take this number.
[[nodiscard]] DealtGpus dealt_to(std::size_t mine, std::span<const GpuTaker> processes, int workers_each,
                                 std::optional<int> fixed = std::nullopt);

/// For the way to other processes: a line a GPU.
[[nodiscard]] std::string to_text(std::span<const SeenGpu> gpus);
/// Lines that are none of to_text() are left out.
[[nodiscard]] std::vector<SeenGpu> seen_gpus_from_text(const std::string& text);

}  // namespace paceline::cli
