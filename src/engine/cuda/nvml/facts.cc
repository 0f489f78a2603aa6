#include "engine/cuda/nvml/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "engine/cuda/nvml/watch.h"
#include "engine/cuda/runtime/devices.h"
#include "engine/cuda/runtime/load.h"

namespace paceline::engine::cuda {
namespace {

std::string describe_gpu(const GpuFacts& gpu) {
  std::vector<std::string> parts{gpu.name.empty() ? "name unknown" : gpu.name};
  if (gpu.compute_capability)
    parts.push_back(
        fmt::format("compute capability {}.{}", *gpu.compute_capability / 10, *gpu.compute_capability % 10));
  if (gpu.memory_bytes && gpu.used_memory_bytes)
    parts.push_back(fmt::format("{:.1f} of {:.1f} GB used", base::gigabytes(*gpu.used_memory_bytes),
                                base::gigabytes(*gpu.memory_bytes)));
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
  if (links.to_switch > 0)
    parts.push_back(base::counted(links.to_switch, "NVLink") + " to a switch, which reaches the others");
  for (const auto& [gpu, nvlinks] : links.nvlinks)
    parts.push_back(fmt::format("{} to GPU {}", base::counted(nvlinks, "NVLink"), gpu));
  for (const auto& [gpu, way] : links.pcie) parts.push_back(fmt::format("to GPU {} {}", gpu, way));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string describe_process(const GpuProcess& process) {
  return fmt::format(
      "process {}{}{}", process.pid, process.name.empty() ? "" : " " + process.name,
      process.memory_bytes ? fmt::format(", {:.1f} GB", base::gigabytes(*process.memory_bytes)) : "");
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

/// Asks for configuration and state, except memory, load and power.
void ask_state(const NvmlApi& api, NvmlDevice device, NvmlAsker& ask, GpuFacts& gpu) {
  constexpr std::array kModes{"default", "exclusive thread", "prohibited", "exclusive process"};
  unsigned current = 0, pending = 0;
  int state = 0, mode = 0, on = 0, next = 0;
  gpu.fan_percent = ask.number<int>(api.nvmlDeviceGetFanSpeed, device);
  if (ask(api.nvmlDeviceGetPerformanceState, device, &state) && state >= 0 && state <= NVML_PSTATE_15)
    gpu.performance_state = state;
  if (ask(api.nvmlDeviceGetEccMode, device, &on, &next)) gpu.ecc = on != 0;
  if (ask(api.nvmlDeviceGetMigMode, device, &current, &pending)) gpu.mig = current != 0;
  if (ask(api.nvmlDeviceGetDisplayActive, device, &on)) gpu.drives_display = on != 0;
  if (ask(api.nvmlDeviceGetComputeMode, device, &mode) && mode >= 0 && mode < static_cast<int>(kModes.size()))
    gpu.compute_mode = kModes[static_cast<std::size_t>(mode)];
}

/// Asks for the PCIe link, the reasons for lowered clocks, and memory errors.
void ask_health(const NvmlApi& api, NvmlDevice device, NvmlAsker& ask, GpuFacts& gpu) {
  gpu.pcie = ask.link(api.nvmlDeviceGetCurrPcieLinkGeneration, api.nvmlDeviceGetCurrPcieLinkWidth, device);
  gpu.pcie_most = ask.link(api.nvmlDeviceGetMaxPcieLinkGeneration, api.nvmlDeviceGetMaxPcieLinkWidth, device);
  gpu.brakes = brakes_on(api, device, ask);
  if (unsigned long long errors = 0; ask(api.nvmlDeviceGetTotalEccErrors, device,
                                         NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &errors))
    gpu.memory_errors = static_cast<std::int64_t>(errors);
  unsigned corrected = 0, uncorrected = 0, is_pending = 0, has_failed = 0;
  if (ask(api.nvmlDeviceGetRemappedRows, device, &corrected, &uncorrected, &is_pending, &has_failed)) {
    gpu.needs_reset = is_pending != 0;
    gpu.has_failed_rows = has_failed != 0;
  }
}

GpuFacts ask_gpu(const NvmlApi& api, int index, NvmlDevice device) {
  GpuFacts gpu{.index = index};
  NvmlAsker ask(api, gpu.unknown);
  gpu.name = ask.text(api.nvmlDeviceGetName, device);
  gpu.uuid = ask.text(api.nvmlDeviceGetUUID, device);
  if (NvmlPci pci{}; ask(api.nvmlDeviceGetPciInfo_v3, device, &pci)) gpu.bus_id = pci.bus_id;
  if (NvmlMemory memory{}; ask(api.nvmlDeviceGetMemoryInfo, device, &memory)) {
    gpu.memory_bytes = static_cast<std::int64_t>(memory.total);
    gpu.used_memory_bytes = static_cast<std::int64_t>(memory.used);
  }
  if (int major = 0, minor = 0; ask(api.nvmlDeviceGetCudaComputeCapability, device, &major, &minor))
    gpu.compute_capability = 10 * major + minor;
  if (NvmlUtilization busy{}; ask(api.nvmlDeviceGetUtilizationRates, device, &busy))
    gpu.busy_percent = static_cast<int>(busy.gpu);
  gpu.watts = ask.thousandths(api.nvmlDeviceGetPowerUsage, device);
  gpu.watts_limit = ask.thousandths(api.nvmlDeviceGetEnforcedPowerLimit, device);
  gpu.celsius = ask.number<int>(api.nvmlDeviceGetTemperature, device, NVML_TEMPERATURE_GPU);
  ask_state(api, device, ask, gpu);
  ask_health(api, device, ask, gpu);
  gpu.processes = processes_on(api, device, ask).value_or(std::vector<GpuProcess>());
  return gpu;
}

/// Counts the active NVLinks of `device`, by the GPU to which they lead.
void ask_nvlinks(const NvmlApi& api, NvmlDevice device, const std::vector<GpuFacts>& gpus, GpuFacts& gpu) {
  NvmlAsker ask(api, gpu.unknown);
  for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
    int active = 0, type = 0;
    const auto status = api.nvmlDeviceGetNvLinkState(device, link, &active);
    if (status == NVML_ERROR_INVALID_ARGUMENT || status == NVML_ERROR_NOT_SUPPORTED ||
        status == NVML_ERROR_FUNCTION_NOT_FOUND)
      return;  // it has no further links
    if (status != NVML_SUCCESS) {
      gpu.unknown.push_back(describe_nvml_error(api, status, api.nvmlDeviceGetNvLinkState.name));
      return;
    }
    if (active == 0) continue;
    if (ask(api.nvmlDeviceGetNvLinkRemoteDeviceType, device, link, &type) &&
        type == NVML_NVLINK_DEVICE_TYPE_SWITCH) {
      ++gpu.links.to_switch;
      continue;
    }
    NvmlPci remote{};
    if (!ask(api.nvmlDeviceGetNvLinkRemotePciInfo_v2, device, link, &remote)) continue;
    for (const auto& other : gpus)
      if (same_bus_id(other.bus_id, remote.bus_id)) ++gpu.links.nvlinks[other.index];
  }
}

std::string pcie_way(int level) {
  if (level <= NVML_TOPOLOGY_SINGLE) return "through one PCIe switch";
  if (level <= NVML_TOPOLOGY_MULTIPLE) return "through PCIe switches";
  if (level <= NVML_TOPOLOGY_HOSTBRIDGE) return "through the PCIe host bridge";
  if (level <= NVML_TOPOLOGY_NODE) return "between PCIe host bridges of one memory node";
  return "between memory nodes of the host";
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

bool same_bus_id(const std::string& left, const std::string& right) {
  constexpr std::size_t kDigits = 12;  // "0000:01:00.0"; NVML's domain has eight digits
  if (left.size() < kDigits || right.size() < kDigits) return false;
  return std::equal(left.end() - kDigits, left.end(), right.end() - kDigits, right.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  });
}

std::vector<std::string> visible_bus_ids(const GpuList& list, const char* visible) {
  std::vector<std::string> ids;
  if (visible == nullptr) {
    for (const auto& gpu : list.gpus) ids.push_back(gpu.bus_id);
    return ids;
  }
  std::istringstream words(visible);
  for (std::string word; std::getline(words, word, ',');) {
    const auto found = std::find_if(list.gpus.begin(), list.gpus.end(), [&](const GpuFacts& gpu) {
      return word == std::to_string(gpu.index) || (word.size() > 4 && gpu.uuid.starts_with(word));
    });
    if (found == list.gpus.end()) break;  // as in CUDA, later entries are ignored
    ids.push_back(found->bus_id);
  }
  return ids;
}

GpuList list_gpus(const NvmlApi& api) {
  const NvmlSession session(api);
  GpuList list;
  NvmlAsker ask(api, list.unknown);
  list.driver = ask.text(api.nvmlSystemGetDriverVersion);
  (void)ask(api.nvmlSystemGetCudaDriverVersion_v2, &list.cuda_version);
  unsigned count = 0;
  check(api, api.nvmlDeviceGetCount_v2(&count), api.nvmlDeviceGetCount_v2.name);
  std::vector<NvmlDevice> devices;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    const auto status = api.nvmlDeviceGetHandleByIndex_v2(i, &device);
    const int index = static_cast<int>(i);
    devices.push_back(device);
    list.gpus.push_back(status == NVML_SUCCESS ? ask_gpu(api, index, device) : GpuFacts{.index = index});
    if (status == NVML_SUCCESS) continue;
    devices.back() = nullptr;  // a GPU that is lost, or belongs to another container
    list.gpus.back().unknown.push_back(
        describe_nvml_error(api, status, api.nvmlDeviceGetHandleByIndex_v2.name));
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] == nullptr) continue;
    auto& gpu = list.gpus[i];
    ask_nvlinks(api, devices[i], list.gpus, gpu);
    if (gpu.links.to_switch > 0) continue;
    NvmlAsker ask_way(api, gpu.unknown);
    for (std::size_t other = 0; other < devices.size(); ++other) {
      const int index = static_cast<int>(other);
      int level = 0;
      if (other == i || gpu.links.nvlinks.contains(index) || devices[other] == nullptr) continue;
      if (ask_way(api.nvmlDeviceGetTopologyCommonAncestor, devices[i], devices[other], &level))
        gpu.links.pcie.emplace_back(index, pcie_way(level));
    }
  }
  return list;
}

}  // namespace paceline::engine::cuda
