#pragma once

/// Describes the GPUs of this host as text, for `paceline doctor` and for records.

#include <optional>
#include <string>
#include <vector>

#include "base/shared_library.h"
#include "engine/cuda/nvml/facts.h"

namespace paceline::engine::cuda {

struct TextRow {
  std::string label;  ///< "GPU 0"; empty: continues the row before
  std::string text;
};

/// Rows for this host's GPUs (name, memory, links, processes), or one row that says why they are not known;
/// then rows that say which GPUs CUDA_VISIBLE_DEVICES leaves and whether `--device cuda` works. A missing
/// driver or GPU is not an error here.
[[nodiscard]] std::vector<TextRow> describe_gpus();

/// The same for records: a sentence for each GPU and for each process on it, or one sentence that says why
/// nothing is known.
///
/// Cost     some milliseconds for each GPU
[[nodiscard]] std::vector<std::string> gpu_facts();

/// The combined bandwidth of a GPU's NVLinks in one direction.
struct NvlinkLimit {
  double bytes_per_s = 0;
  std::string made_of;  ///< "18 links of 25 GB/s, by NVIDIA's data sheets"
};
/// The limit of the GPU with the fewest links. Empty if NVML reports no links or an unknown generation.
[[nodiscard]] std::optional<NvlinkLimit> nvlink_one_way();
[[nodiscard]] std::optional<NvlinkLimit> nvlink_one_way(const GpuList& list);

/// The rows for `list`. `cuda_bus_ids`: the PCI bus id of each device that CUDA sees, cuda:0 first; empty if
/// CUDA could not be asked.
[[nodiscard]] std::vector<TextRow> describe_gpus(const GpuList& list,
                                                 const std::vector<std::string>& cuda_bus_ids);

/// A row with the value of CUDA_VISIBLE_DEVICES; empty if it is not set.
[[nodiscard]] std::optional<TextRow> describe_visibility(const base::EnvironmentLookup& environment);

}  // namespace paceline::engine::cuda
