#pragma once

/// Which rank takes which GPU: asks this host's processes what they see, and makes the doctor's table of it,
/// with the cores that are near and what is wrong.

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "base/topology.h"
#include "cluster/assign_gpus.h"
#include "engine/cuda/nvml/facts.h"

namespace paceline::cluster {

class Session;

/// A rank, and the GPU that it would compute on.
struct RankOnGpu {
  int rank = 0;
  std::string host;
  std::vector<int> cores;                     ///< the cores that its process may use
  std::string driver;                         ///< "580.65.06"
  std::optional<engine::cuda::GpuFacts> gpu;  ///< empty: it sees no GPU
  std::optional<base::PciLocality> near;      ///< cores and memory node near the GPU; empty: unknown
  std::string why_none;                       ///< why it has no GPU: a sentence, or ""
};
template <typename A>
void fields(A& archive, base::In<A, RankOnGpu>& value) {
  base::each_member(archive, value.rank, value.host, value.cores, value.driver, value.gpu, value.near,
                    value.why_none);
}

/// Problems, one sentence each with its remedy: two ranks on one GPU, cores on another socket than the GPU, a
/// link slower than possible, lowered clocks, other processes, memory errors, drivers or GPUs that differ
/// between ranks, a lost GPU. A pure function.
[[nodiscard]] std::vector<std::string> odd_about_gpus(const std::vector<RankOnGpu>& ranks);

/// Prints a line for each rank: rank, host, GPU, its name, the beginning of its UUID, PCI bus id, and the
/// cores and memory node near it. Prints nothing if no rank sees a GPU.
void show_gpu_table(const std::vector<RankOnGpu>& ranks, std::ostream& out);

/// Each process's rank with its GPU (collective); for a process without a launcher, one rank for each GPU
/// that it sees. Asks NVML and CUDA, and creates no CUDA context.
[[nodiscard]] std::vector<RankOnGpu> ranks_on_gpus(const Session* session);

/// The GPUs that this process sees, cuda:0 first, with the cores and the memory node near each. In NVML's
/// order if CUDA does not start. Creates no CUDA context. Empty if it sees none.
[[nodiscard]] std::vector<SeenGpu> seen_gpus();
/// The number of GPUs that this process sees; 0 without a driver.
[[nodiscard]] int number_of_gpus();

}  // namespace paceline::cluster
