#pragma once

/// The doctor's table of GPUs: which rank takes which GPU, what lies near it, and what is wrong with it.

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "base/pci_locality.h"
#include "cli/deal_gpus.h"
#include "engine/cuda/nvml.h"

namespace paceline::cli {

class Session;

/// A rank of one worker, and the GPU that it would take.
struct RankOnGpu {
  int rank = 0;
  std::string host;
  std::vector<int> cores;                     ///< that its process may use
  std::string driver;                         ///< "580.65.06"
  std::optional<engine::cuda::GpuFacts> gpu;  ///< none: it sees no GPU
  std::optional<base::PciLocality> near;      ///< none: the kernel does not say
  std::string why_none;                       ///< without a GPU: a sentence, or ""
};

/// What is wrong, a sentence each with what mends it: two ranks on one GPU, cores on the far socket, a link
/// below what it could be, clocks held back, other processes, memory errors, drivers or GPUs that differ, a
/// GPU that is lost. Pure function.
[[nodiscard]] std::vector<std::string> odd_about_gpus(const std::vector<RankOnGpu>& ranks);

/// A line a rank: rank, host, GPU, its name, UUID (its begin), PCI, the cores and memory node near it.
/// Nothing where no rank sees a GPU.
void show_gpu_table(const std::vector<RankOnGpu>& ranks, std::ostream& out);

/// Of this process: what its rank would take; started alone, a rank for each GPU that it sees. Asks NVML and
/// CUDA, makes no context.
[[nodiscard]] std::vector<RankOnGpu> ranks_on_gpus(const Session* session);
/// For the way to the first process. Errors   Error(data): another version's text
[[nodiscard]] std::string to_text(const std::vector<RankOnGpu>& ranks);
[[nodiscard]] std::vector<RankOnGpu> ranks_from_text(const std::string& text);

/// The GPUs that this process sees, cuda:0 first, and what lies near each. Asks CUDA, or NVML where it does
/// not start; makes no context. Empty: it sees none.
[[nodiscard]] std::vector<SeenGpu> seen_gpus();
/// How many GPUs this process sees; 0: none, or no driver.
[[nodiscard]] int number_of_gpus();

}  // namespace paceline::cli
