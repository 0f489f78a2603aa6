#include "engine/cuda/nvml/describe_gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "base/error.h"
#include "engine/cuda/runtime/devices.h"
#include "engine/cuda/runtime/load.h"

namespace paceline::engine::cuda {
namespace {

double gb_of_memory(std::int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

std::string describe_gpu(const GpuFacts& gpu) {
  std::vector<std::string> parts{gpu.name.empty() ? "name unknown" : gpu.name};
  if (gpu.compute_capability)
    parts.push_back(
        fmt::format("compute capability {}.{}", *gpu.compute_capability / 10, *gpu.compute_capability % 10));
  if (gpu.memory_bytes && gpu.used_memory_bytes)
    parts.push_back(fmt::format("{:.1f} of {:.1f} GB used", gb_of_memory(*gpu.used_memory_bytes),
                                gb_of_memory(*gpu.memory_bytes)));
  if (gpu.busy_percent) parts.push_back(fmt::format("{} % busy", *gpu.busy_percent));
  if (gpu.watts)
    parts.push_back(gpu.watts_limit ? fmt::format("{:.0f} of {:.0f} W", *gpu.watts, *gpu.watts_limit)
                                    : fmt::format("{:.0f} W", *gpu.watts));
  if (gpu.celsius) parts.push_back(fmt::format("{} °C", *gpu.celsius));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "bus 00000000:01:00.0, performance state P0, fan 30 %, ECC on, MIG off, compute mode default"; empty if
/// nothing is known.
std::string describe_state(const GpuFacts& gpu) {
  const auto on = [](bool is_on) { return is_on ? "on" : "off"; };
  std::vector<std::string> parts;
  if (!gpu.bus_id.empty()) parts.push_back("bus " + gpu.bus_id);
  if (gpu.performance_state) parts.push_back(fmt::format("performance state P{}", *gpu.performance_state));
  if (gpu.fan_percent) parts.push_back(fmt::format("fan {} %", *gpu.fan_percent));
  if (gpu.ecc) parts.push_back(fmt::format("ECC {}", on(*gpu.ecc)));
  if (gpu.mig) parts.push_back(fmt::format("MIG {}", on(*gpu.mig)));
  if (!gpu.compute_mode.empty()) parts.push_back("compute mode " + gpu.compute_mode);
  if (gpu.drives_display.value_or(false)) parts.emplace_back("drives a display");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string describe_links(const GpuLinks& links) {
  std::vector<std::string> parts;
  const auto count = [](int links) { return links == 1 ? "one NVLink" : fmt::format("{} NVLinks", links); };
  if (links.to_switch > 0) parts.push_back(count(links.to_switch) + " to a switch, which reaches the others");
  for (const auto& [gpu, nvlinks] : links.nvlinks)
    parts.push_back(fmt::format("{} to GPU {}", count(nvlinks), gpu));
  for (const auto& [gpu, way] : links.pcie) parts.push_back(fmt::format("to GPU {} {}", gpu, way));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string describe_process(const GpuProcess& process) {
  return fmt::format(
      "process {}{}{}", process.pid, process.name.empty() ? "" : " " + process.name,
      process.memory_bytes ? fmt::format(", {:.1f} GB", gb_of_memory(*process.memory_bytes)) : "");
}

/// The PCI bus id of each device that CUDA sees; empty if CUDA does not start.
std::vector<std::string> bus_ids_of_cuda() {
  try {
    return visible_bus_ids();
  } catch (const base::Error&) {
    return {};  // describe_readiness() says why
  }
}

/// Removes `prefix` from a sentence, for a row whose label says it already.
std::string without_prefix(std::string text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

}  // namespace

std::vector<TextRow> describe_gpus(const GpuList& list, const std::vector<std::string>& cuda_bus_ids) {
  std::vector<TextRow> rows;
  rows.push_back(
      {"driver", fmt::format("{}, for CUDA up to {}", list.driver.empty() ? "version unknown" : list.driver,
                             list.cuda_version > 0 ? cuda_version(list.cuda_version) : "unknown")});
  for (const auto& why : list.unknown) rows.push_back({"", "not told: " + why});
  if (list.gpus.empty()) rows.push_back({"GPUs", "none: the driver is there, but knows of no GPU"});
  for (const auto& gpu : list.gpus) {
    std::string text = describe_gpu(gpu);
    bool seen = false;
    for (std::size_t device = 0; device < cuda_bus_ids.size(); ++device)
      if (same_bus_id(cuda_bus_ids[device], gpu.bus_id)) {
        text = fmt::format("cuda:{}, {}", device, text);
        seen = true;
      }
    if (!seen && !cuda_bus_ids.empty()) text = "hidden from --device cuda, " + text;
    rows.push_back({fmt::format("GPU {}", gpu.index), text});
    if (const auto state = describe_state(gpu); !state.empty()) rows.push_back({"", state});
    if (const auto links = describe_links(gpu.links); !links.empty()) rows.push_back({"", links});
    for (const auto& process : gpu.processes) rows.push_back({"", describe_process(process)});
    for (const auto& why : gpu.unknown) rows.push_back({"", "not told: " + why});
  }
  return rows;
}

std::optional<TextRow> describe_visibility(const base::EnvironmentLookup& environment) {
  const char* visible = environment("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return std::nullopt;
  const std::string_view value(visible);
  return TextRow{
      "CUDA_VISIBLE_DEVICES",
      value.empty()
          ? "is set and empty: it hides every GPU from --device cuda"
          : fmt::format("{} (set in the environment: --device cuda uses these, cuda:0 first)", value)};
}

std::vector<std::string> gpu_facts() {
  std::vector<std::string> facts;
  try {
    const auto list = list_gpus(load_nvml(base::process_environment()));
    for (const auto& gpu : list.gpus) {
      const auto state = describe_state(gpu);
      facts.push_back(fmt::format("GPU {}: {}{}{}, driver {}", gpu.index, describe_gpu(gpu),
                                  state.empty() ? "" : ", ", state,
                                  list.driver.empty() ? "unknown" : list.driver));
      for (const auto& process : gpu.processes) facts.push_back(describe_process(process));
    }
  } catch (const base::Error& error) {
    facts.emplace_back(error.what());
  }
  return facts;
}

std::optional<NvlinkLimit> nvlink_one_way(const GpuList& list) {
  std::optional<NvlinkLimit> least;
  for (const auto& gpu : list.gpus) {
    int links = gpu.links.to_switch;
    for (const auto& [other, count] : gpu.links.nvlinks) links += count;
    const int capability = gpu.compute_capability.value_or(0);
    // NVLink 3 (A100) and 4 (H100): 25 GB/s a link one way; NVLink 5 (B200): 50.
    const double each = capability == 80 || capability == 90 ? 25e9 : capability == 100 ? 50e9 : 0;
    if (links == 0 || each == 0) return std::nullopt;
    if (least && least->bytes_per_s <= links * each) continue;
    least = {.bytes_per_s = links * each,
             .made_of = fmt::format("{} links of {:.0f} GB/s, by NVIDIA's data sheets", links, each / 1e9)};
  }
  return least;
}

std::optional<NvlinkLimit> nvlink_one_way() {
  try {
    return nvlink_one_way(list_gpus(load_nvml(base::process_environment())));
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

std::vector<TextRow> describe_gpus() {
  const auto environment = base::process_environment();
  std::vector<TextRow> rows;
  try {
    rows = describe_gpus(list_gpus(load_nvml(environment)), bus_ids_of_cuda());
  } catch (const base::Error& error) {
    rows.push_back({"GPUs", "unknown: " + without_prefix(error.what(), "GPUs: ")});
  }
  if (const auto visibility = describe_visibility(environment)) rows.push_back(*visibility);
  rows.push_back({"--device cuda", without_prefix(describe_readiness(), "--device cuda: ")});
  return rows;
}

}  // namespace paceline::engine::cuda
