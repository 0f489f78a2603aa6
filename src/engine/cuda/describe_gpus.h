#pragma once

/// The GPUs of this host as rows of text, for `paceline doctor`.

#include <optional>
#include <string>
#include <vector>

#include "base/shared_library.h"
#include "engine/cuda/nvml.h"

namespace paceline::engine::cuda {

struct TextRow {
  std::string label;  ///< "GPU 0"; empty: continues the row before
  std::string text;
};

/// This host's GPUs (name, memory, links, processes), or one row that says why they are not known; then which
/// of them CUDA_VISIBLE_DEVICES leaves and whether `--device cuda` works. A missing driver or GPU is no error
/// here.
[[nodiscard]] std::vector<TextRow> describe_gpus();

/// The same for records: a sentence for each GPU and each process on it, or one that says why nothing is
/// known.
///
/// Cost     some milliseconds a GPU
[[nodiscard]] std::vector<std::string> gpu_facts();

/// The bandwidth of a GPU's NVLinks in one direction.
struct NvlinkLimit {
  double bytes_per_s = 0;
  std::string made_of;  ///< "18 links of 25 GB/s, by NVIDIA's data sheets"
};
/// That of the GPU with the fewest links; nothing if NVML does not report links, or links of an unknown
/// generation.
[[nodiscard]] std::optional<NvlinkLimit> nvlink_one_way();
[[nodiscard]] std::optional<NvlinkLimit> nvlink_one_way(const GpuList& list);

/// The rows for `list`. `cuda_bus_ids`: the PCI bus id of each device that CUDA sees, cuda:0 first; empty if
/// CUDA could not be asked.
[[nodiscard]] std::vector<TextRow> describe_gpus(const GpuList& list,
                                                 const std::vector<std::string>& cuda_bus_ids);

/// A row with the value of CUDA_VISIBLE_DEVICES; nothing if it is not set.
[[nodiscard]] std::optional<TextRow> describe_visibility(const base::EnvironmentLookup& environment);

}  // namespace paceline::engine::cuda
