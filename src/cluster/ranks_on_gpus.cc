// Finds the GPU that a process's rank would take, and converts it to text for the first process.

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/host_name.h"
#include "base/shared_library.h"
#include "base/topology.h"
#include "cluster/gpu_table.h"
#include "cluster/session.h"
#include "engine/cuda/nvml/api.h"
#include "engine/cuda/runtime/devices.h"

namespace paceline::cluster {
namespace {

using engine::cuda::GpuFacts;
using engine::cuda::GpuList;
using GpuJson = nlohmann::json;

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

/// One list for both directions, as in measure/record_fields.h: `archive(key, member)`.
struct ToJson {
  GpuJson& json;
  template <typename T>
  void operator()(const char* key, const T& value) {
    json[key] = value;
  }
  template <typename T>
  void operator()(const char* key, const std::optional<T>& value) {
    if (value) json[key] = *value;
  }
};
struct FromJson {
  const GpuJson& json;
  template <typename T>
  void operator()(const char* key, T& value) {
    json.at(key).get_to(value);
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    if (json.contains(key)) value = json.at(key).get<T>();
  }
};

template <typename A, typename Link>
void link_fields(A& archive, const char* generation, const char* width, Link& link) {
  std::optional<int> of_generation, of_width;
  if (link) of_generation = link->generation, of_width = link->width;
  archive(generation, of_generation);
  archive(width, of_width);
  if constexpr (!std::is_const_v<Link>)
    if (of_generation && of_width) link = base::PcieLink{.generation = *of_generation, .width = *of_width};
}

template <typename A, typename Gpu>
void gpu_fields(A& archive, Gpu& gpu) {
  archive("index", gpu.index);
  archive("name", gpu.name);
  archive("uuid", gpu.uuid);
  archive("bus_id", gpu.bus_id);
  archive("performance_state", gpu.performance_state);
  archive("mig", gpu.mig);
  archive("compute_mode", gpu.compute_mode);
  archive("brakes", gpu.brakes);
  archive("memory_errors", gpu.memory_errors);
  archive("needs_reset", gpu.needs_reset);
  archive("has_failed_rows", gpu.has_failed_rows);
  archive("unknown", gpu.unknown);
  link_fields(archive, "generation", "width", gpu.pcie);
  link_fields(archive, "generation_most", "width_most", gpu.pcie_most);
}

GpuJson json_of(const RankOnGpu& one) {
  GpuJson json{{"rank", one.rank},
               {"host", one.host},
               {"cores", one.cores},
               {"driver", one.driver},
               {"why_none", one.why_none}};
  if (one.near) {
    json["near"] = one.near->cores;
    if (one.near->numa) json["node"] = *one.near->numa;
  }
  if (!one.gpu) return json;
  ToJson archive{json["gpu"]};
  gpu_fields(archive, *one.gpu);
  for (const auto& process : one.gpu->processes)
    json["gpu"]["processes"].push_back({{"pid", process.pid}, {"name", process.name}});
  return json;
}

RankOnGpu rank_of(const GpuJson& json) {
  RankOnGpu one{.rank = json.at("rank"),
                .host = json.at("host"),
                .cores = json.at("cores"),
                .driver = json.at("driver"),
                .gpu = {},
                .near = {},
                .why_none = json.at("why_none")};
  if (json.contains("near")) {
    one.near.emplace().cores = json.at("near").get<std::vector<int>>();
    if (json.contains("node")) one.near->numa = json.at("node").get<int>();
  }
  if (!json.contains("gpu")) return one;
  FromJson archive{json.at("gpu")};
  gpu_fields(archive, one.gpu.emplace());
  if (json.at("gpu").contains("processes"))
    for (const auto& process : json.at("gpu").at("processes"))
      one.gpu->processes.push_back({.pid = process.at("pid"), .name = process.at("name")});
  return one;
}

}  // namespace

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
    return {mine};
  }
  std::vector<RankOnGpu> ranks;
  for (std::size_t gpu = 0; gpu < ids.size(); ++gpu) {
    take(gpu);
    mine.rank = static_cast<int>(gpu);
    ranks.push_back(mine);
  }
  return ranks;
}

std::string to_text(const std::vector<RankOnGpu>& ranks) {
  GpuJson all = GpuJson::array();
  for (const auto& one : ranks) all.push_back(json_of(one));
  return all.dump(-1, ' ', false, GpuJson::error_handler_t::replace);
}

std::vector<RankOnGpu> ranks_from_text(const std::string& text) {
  std::vector<RankOnGpu> ranks;
  try {
    for (const auto& json : GpuJson::parse(text)) ranks.push_back(rank_of(json));
  } catch (const GpuJson::exception& error) {
    base::fail(base::ErrorKind::data, "a process's report of its GPU cannot be read: {}", error.what());
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
