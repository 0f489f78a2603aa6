#pragma once

/// The GPUs of this host as rows of text, for `paceline doctor`.

#include <optional>
#include <string>
#include <vector>

#include "base/shared_library.h"
#include "engine/cuda/nvml.h"

namespace paceline::engine::cuda {

struct TextRow {
  std::string label;  ///< "GPU 0"; empty: goes on from the row before
  std::string text;
};

/// This host's GPUs (name, memory, links, processes) or one row that says why they are not known, then what
/// CUDA_VISIBLE_DEVICES leaves of them and whether `--device cuda` works. Throws nothing of the world's.
[[nodiscard]] std::vector<TextRow> describe_gpus();

/// The same for records, a sentence a GPU and one for each process on it, or one that says why nothing is
/// known. Takes some milliseconds a GPU.
[[nodiscard]] std::vector<std::string> gpu_facts();

/// What a GPU's NVLinks carry one way.
struct NvlinkLimit {
  double bytes_per_s = 0;
  std::string made_of;  ///< "18 links of 25 GB/s, by NVIDIA's data sheets"
};
/// Of the GPU with the fewest links; nothing where NVML does not tell links or the links of that generation
/// are not known here.
[[nodiscard]] std::optional<NvlinkLimit> nvlink_one_way();
[[nodiscard]] std::optional<NvlinkLimit> nvlink_one_way(const GpuList& list);

/// The rows of `list`. `cuda_bus_ids`: the PCI bus id of each device that CUDA sees, cuda:0 first; empty: it
/// cannot be asked.
[[nodiscard]] std::vector<TextRow> describe_gpus(const GpuList& list,
                                                 const std::vector<std::string>& cuda_bus_ids);

/// What CUDA_VISIBLE_DEVICES says; nothing where it is not set.
[[nodiscard]] std::optional<TextRow> describe_visibility(const base::EnvironmentLookup& environment);

}  // namespace paceline::engine::cuda
