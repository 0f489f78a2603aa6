#include "cluster/gpu_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <ostream>

#include "base/error.h"
#include "base/shared_library.h"
#include "base/text.h"
#include "cluster/session.h"
#include "engine/cuda/nvml/api.h"
#include "engine/cuda/runtime/devices.h"

namespace paceline::cluster {
namespace {

using engine::cuda::GpuFacts;

/// "rank 3", "ranks 0, 1"
std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

/// Each GPU once with its ranks, ordered by first rank.
std::vector<std::pair<const RankOnGpu*, std::vector<int>>> each_gpu(const std::vector<RankOnGpu>& ranks) {
  std::vector<std::pair<const RankOnGpu*, std::vector<int>>> gpus;
  for (const auto& one : ranks) {
    if (!one.gpu) continue;
    const auto known = std::find_if(gpus.begin(), gpus.end(), [&](const auto& other) {
      // Not compared by index: in separate containers each rank's only GPU has index 0.
      return other.first->host == one.host && other.first->gpu->bus_id == one.gpu->bus_id;
    });
    if (known == gpus.end())
      gpus.push_back({&one, {one.rank}});
    else
      known->second.push_back(one.rank);
  }
  return gpus;
}

/// Whether the GPU is idle, and may therefore have slowed its link and clocks to save power.
bool is_idle(const GpuFacts& gpu) {
  constexpr int kFast = 2;  // P0 to P2 are states of a working GPU
  return gpu.performance_state.value_or(kFast + 1) > kFast;
}

std::string odd_link(const GpuFacts& gpu) {
  if (!gpu.pcie || !gpu.pcie_most) return "";
  const bool is_narrow = gpu.pcie->width < gpu.pcie_most->width;
  const bool is_slow = gpu.pcie->generation < gpu.pcie_most->generation && !is_idle(gpu);
  if (!is_narrow && !is_slow) return "";
  return fmt::format("its link is PCIe {} x{} where it could be {} x{}; look at its slot, riser or cable",
                     gpu.pcie->generation, gpu.pcie->width, gpu.pcie_most->generation, gpu.pcie_most->width);
}

std::string odd_brakes(const GpuFacts& gpu) {
  std::vector<std::string_view> reasons;
  for (std::size_t i = 0; gpu.brakes && i < base::kGpuBrakes.size(); ++i)
    if ((*gpu.brakes >> i & 1U) != 0) reasons.push_back(base::kGpuBrakes[i]);
  return reasons.empty() ? "" : fmt::format("its clocks are held back: {}", fmt::join(reasons, ", "));
}

std::string odd_processes(const GpuFacts& gpu) {
  constexpr std::size_t kMost = 3;
  if (gpu.processes.empty()) return "";
  std::vector<std::string> names;
  for (const auto& process : gpu.processes)
    names.push_back(process.name.empty() ? fmt::format("process {}", process.pid)
                                         : fmt::format("{} (process {})", process.name, process.pid));
  if (names.size() > kMost) {
    names[kMost] = fmt::format("{} more", names.size() - kMost);
    names.resize(kMost + 1);
  }
  return fmt::format("{} {} on it too; times will be shared", fmt::join(names, ", "),
                     gpu.processes.size() == 1 ? "is" : "are");
}

std::string odd_memory(const GpuFacts& gpu) {
  std::vector<std::string> texts;
  if (gpu.memory_errors.value_or(0) > 0)
    texts.push_back(fmt::format("{} errors of its memory could not be corrected since the driver was loaded",
                                *gpu.memory_errors));
  if (gpu.needs_reset.value_or(false))
    texts.emplace_back("rows of its memory will be replaced at the next reset");
  if (gpu.has_failed_rows.value_or(false))
    texts.emplace_back("rows of its memory failed, and no spare rows are left");
  if (texts.empty()) return "";
  return fmt::format(
      "{}; the kernel's log has its Xid errors (dmesg | grep Xid); reset the GPU (nvidia-smi --gpu-reset) "
      "or use another",
      fmt::join(texts, ", "));
}

std::string odd_mode(const GpuFacts& gpu) {
  if (gpu.mig.value_or(false))
    return "MIG cuts it into instances: a rank takes one of them, and figures are of the whole";
  return gpu.compute_mode == "prohibited" ? "its compute mode forbids programs: nvidia-smi --compute-mode=0"
                                          : "";
}

/// Adds a sentence for ranks without a core near their GPU.
void add_far(const std::vector<RankOnGpu>& ranks, std::vector<std::string>& odd) {
  for (const auto& one : ranks) {
    if (!one.gpu || !one.near || one.cores.empty()) continue;
    const auto& near = one.near->cores;
    const auto is_near = [&](int core) { return std::find(near.begin(), near.end(), core) != near.end(); };
    if (std::any_of(one.cores.begin(), one.cores.end(), is_near)) continue;
    odd.push_back(fmt::format(
        "rank {} on {} may use cores {}, but its GPU {} is near cores {}{}: what it copies crosses sockets; "
        "let it use all cores (mpirun --bind-to none, as launch does; srun --cpu-bind=none), or bind it "
        "there",
        one.rank, one.host, core_ranges(one.cores), one.gpu->index, core_ranges(near),
        one.near->numa ? fmt::format(" (memory node {})", *one.near->numa) : ""));
  }
}

/// Adds a sentence if hosts or GPUs differ in `what`, saying which ranks have which value.
template <typename Get>
void add_different(const std::vector<RankOnGpu>& ranks, const char* what, const char* follows, Get get,
                   std::vector<std::string>& odd) {
  std::map<std::string, std::vector<int>> all;
  for (const auto& one : ranks)
    if (one.gpu && !get(one).empty()) all[get(one)].push_back(one.rank);
  if (all.size() < 2) return;
  std::vector<std::string> texts;
  for (const auto& [value, of] : all) texts.push_back(fmt::format("{} ({})", value, ranks_text(of)));
  odd.push_back(fmt::format("{} differ: {}; {}", what, fmt::join(texts, ", "), follows));
}

using engine::cuda::GpuList;

/// The PCI bus ids in CUDA's order; in NVML's if CUDA does not start.
std::vector<std::string> ids_in_order(const std::optional<GpuList>& list) {
  try {
    return engine::cuda::visible_bus_ids();
  } catch (const base::Error&) {
    if (!list) return {};
    return engine::cuda::visible_bus_ids(*list, std::getenv("CUDA_VISIBLE_DEVICES"));
  }
}

std::optional<GpuFacts> facts_of(const GpuList& list, const std::string& bus_id) {
  for (const auto& gpu : list.gpus)
    if (engine::cuda::same_bus_id(gpu.bus_id, bus_id)) return gpu;
  return std::nullopt;
}

/// The GPUs of this host; if there are none, `why` says the reason.
std::optional<GpuList> gpus_here(std::string& why) {
  try {
    return engine::cuda::list_gpus(engine::cuda::load_nvml(base::process_environment()));
  } catch (const base::Error& error) {
    why = error.what();
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::string> odd_about_gpus(const std::vector<RankOnGpu>& ranks) {
  std::vector<std::string> odd;
  const bool any =
      std::any_of(ranks.begin(), ranks.end(), [](const auto& one) { return one.gpu.has_value(); });
  for (const auto& one : ranks)
    if (any && !one.gpu)
      odd.push_back(fmt::format("rank {} on {} sees no GPU, but others do{}", one.rank, one.host,
                                one.why_none.empty() ? "" : ": " + one.why_none));
  for (const auto& [first, of] : each_gpu(ranks)) {
    const auto name = fmt::format("GPU {} of {}", first->gpu->index, first->host);
    if (of.size() > 1)
      odd.push_back(
          fmt::format("{} share {}: each gets a part of it, and NCCL refuses it (gradients then go through "
                      "the host); start as many processes there as it has GPUs",
                      ranks_text(of), name));
    for (const auto find : {odd_link, odd_brakes, odd_processes, odd_memory, odd_mode})
      if (const auto text = find(*first->gpu); !text.empty())
        odd.push_back(fmt::format("{}: {}", name, text));
    for (const auto& why : first->gpu->unknown) odd.push_back(fmt::format("{}: not told: {}", name, why));
  }
  add_far(ranks, odd);
  add_different(
      ranks, "drivers", "install one on all hosts, or ranks may not be joined",
      [](const RankOnGpu& one) { return one.driver; }, odd);
  add_different(
      ranks, "GPUs", "the slowest is waited for", [](const RankOnGpu& one) { return one.gpu->name; }, odd);
  return odd;
}

void show_gpu_table(const std::vector<RankOnGpu>& ranks, std::ostream& out) {
  constexpr std::size_t kUuid = 12;  // "GPU-4f2ab310" distinguishes any two GPUs
  using Line = std::array<std::string, 8>;
  std::vector<Line> lines{{"rank", "host", "GPU", "name", "UUID", "PCI", "near: cores", "node"}};
  for (const auto& one : ranks) {
    if (!one.gpu) {
      lines.push_back({std::to_string(one.rank), one.host, "none", "", "", "", "", ""});
      continue;
    }
    lines.push_back({std::to_string(one.rank), one.host, std::to_string(one.gpu->index), one.gpu->name,
                     one.gpu->uuid.substr(0, kUuid), one.gpu->bus_id,
                     one.near ? core_ranges(one.near->cores) : "unknown",
                     one.near && one.near->numa ? std::to_string(*one.near->numa) : "-"});
  }
  if (std::none_of(ranks.begin(), ranks.end(), [](const auto& one) { return one.gpu.has_value(); })) return;
  std::array<std::size_t, std::tuple_size_v<Line>> widths{};
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  for (const auto& line : lines) {
    std::string text = " ";
    for (std::size_t i = 0; i < line.size(); ++i) text += fmt::format(" {:<{}} ", line[i], widths[i]);
    out << text.substr(0, text.find_last_not_of(' ') + 1) << '\n';
  }
}

// Finds the GPU that a process's rank would take, and converts it to text for the first process.

std::vector<RankOnGpu> ranks_on_gpus(const Session* session) {
  RankOnGpu mine{.rank = session == nullptr ? 0 : session->place().process,
                 .host = base::host_name(),
                 .cores = base::current_affinity()};
  const auto list = gpus_here(mine.why_none);
  const auto ids = list ? ids_in_order(list) : std::vector<std::string>();
  if (list) mine.driver = list->driver;
  const auto take = [&](std::size_t gpu) {
    mine.gpu = facts_of(*list, ids[gpu]);
    mine.near = base::pci_locality(ids[gpu]);
    mine.why_none =
        mine.gpu ? ""
                 : fmt::format("the driver has lost GPU {}; restart the host, then run doctor again", gpu);
  };
  if (session != nullptr) {
    const auto dealt = session->gpus_of(session->all_processes(), 1);
    if (!ids.empty()) take(static_cast<std::size_t>(dealt.numbers.front()) % ids.size());
    return session->gather(mine);
  }
  std::vector<RankOnGpu> ranks;
  for (std::size_t gpu = 0; gpu < ids.size(); ++gpu) {
    take(gpu);
    mine.rank = static_cast<int>(gpu);
    ranks.push_back(mine);
  }
  return ranks;
}

std::vector<SeenGpu> seen_gpus() {
  std::string why;
  std::vector<SeenGpu> seen;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  for (const auto& id : ids_in_order(gpus_here(why))) {
    auto& gpu = seen.emplace_back(SeenGpu{.id = gpu_identity(id, seen.size(), visible)});
    if (const auto near = base::pci_locality(id)) {
      gpu.node = near->numa.value_or(gpu.node);
      gpu.cores = near->cores;
    }
  }
  return seen;
}

int number_of_gpus() {
  std::string why;
  const auto list = gpus_here(why);
  return list ? static_cast<int>(ids_in_order(list).size()) : 0;
}

}  // namespace paceline::cluster
