#include "cluster/assign_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <string_view>

#include "base/text.h"

namespace paceline::cluster {

std::string core_ranges(const std::vector<int>& cores) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < cores.size(); begin = end) {
    for (end = begin + 1; end < cores.size() && cores[end] == cores[end - 1] + 1;) ++end;
    text += text.empty() ? "" : ",";
    text += end - begin == 1 ? fmt::format("{}", cores[begin])
                             : fmt::format("{}-{}", cores[begin], cores[end - 1]);
  }
  return text;
}

namespace {

/// For n workers, at most as many as there are GPUs: the GPU of each worker, a permutation of 0 to n-1.
std::vector<int> deal_each_once(std::span<const int> node_of_worker, std::span<const int> node_of_gpu) {
  const std::size_t count = node_of_worker.size();
  std::vector<int> taken(count, -1);
  // If all workers are near the same node, no other order is better.
  if (std::ranges::adjacent_find(node_of_worker, std::ranges::not_equal_to{}) == node_of_worker.end()) {
    std::iota(taken.begin(), taken.end(), 0);
    return taken;
  }
  std::vector<bool> is_taken(count, false);
  const auto take = [&](std::size_t worker, auto is_wanted) {
    for (std::size_t gpu = 0; gpu < count && taken[worker] < 0; ++gpu)
      if (!is_taken[gpu] && is_wanted(gpu)) {
        taken[worker] = static_cast<int>(gpu);
        is_taken[gpu] = true;
      }
  };
  for (std::size_t worker = 0; worker < count; ++worker) {
    const int node = node_of_worker[worker];
    const auto is_near = [&](std::size_t gpu) { return node >= 0 && node_of_gpu[gpu] == node; };
    // Prefers the GPU with the worker's own index, to avoid needless changes.
    take(worker, [&](std::size_t gpu) { return gpu == worker && is_near(gpu); });
    take(worker, is_near);
  }
  for (std::size_t worker = 0; worker < count; ++worker) {
    take(worker, [&](std::size_t gpu) { return gpu == worker; });
    take(worker, [](std::size_t) { return true; });
  }
  return taken;
}

}  // namespace

std::vector<std::vector<int>> assign_gpus(std::span<const GpuTaker> processes, int workers_each) {
  const auto each = static_cast<std::size_t>(workers_each);
  std::vector<std::vector<int>> numbers(processes.size());
  std::map<std::string, std::vector<std::size_t>> groups;  // processes that see the same GPUs
  int unknown = 0;
  for (std::size_t process = 0; process < processes.size(); ++process) {
    if (processes[process].gpus.empty()) {
      numbers[process].resize(each);
      std::iota(numbers[process].begin(), numbers[process].end(), unknown);
      unknown += workers_each;
    } else {
      groups[base::joined(processes[process].gpus, "\n", &SeenGpu::id)].push_back(process);
    }
  }
  for (const auto& [ids, of_group] : groups) {
    std::vector<int> nodes_of_gpus, nodes;
    for (const auto& gpu : processes[of_group.front()].gpus) nodes_of_gpus.push_back(gpu.node);
    for (const auto process : of_group) nodes.insert(nodes.end(), each, processes[process].node);
    // Assigns as many workers at a time as there are GPUs, so that the first workers share none if no others
    // work.
    for (std::size_t begin = 0; begin < nodes.size(); begin += nodes_of_gpus.size()) {
      const auto size = std::min(nodes_of_gpus.size(), nodes.size() - begin);
      const auto taken = deal_each_once(std::span(nodes).subspan(begin, size), nodes_of_gpus);
      for (std::size_t i = 0; i < size; ++i) numbers[of_group[(begin + i) / each]].push_back(taken[i]);
    }
  }
  return numbers;
}

AssignedGpus assigned_to(std::size_t mine, std::span<const GpuTaker> processes, int workers_each,
                         std::optional<int> fixed) {
  auto numbers = assign_gpus(processes, workers_each);
  if (fixed) std::ranges::fill(numbers, std::vector(static_cast<std::size_t>(workers_each), *fixed));
  const auto gpu_of = [&](std::size_t process, int number) {
    const auto& gpus = processes[process].gpus;
    const auto index = static_cast<std::size_t>(number);
    return index < gpus.size() ? gpus[index] : SeenGpu{.id = fmt::format("unknown {}", number), .cores = {}};
  };
  AssignedGpus dealt{.numbers = numbers[mine], .workers_on_one = {}, .cores_near = {}};
  std::map<std::string, int> workers;  // by GPU
  for (std::size_t process = 0; process < processes.size(); ++process) {
    if (!processes[process].works) continue;
    for (const int number : numbers[process]) {
      auto gpu = gpu_of(process, number);
      ++dealt.workers_here;
      if (++workers[gpu.id] > 1) dealt.is_any_shared = true;
      if (processes[process].cores == processes[mine].cores) dealt.cores_near.push_back(std::move(gpu.cores));
    }
  }
  if (processes[mine].gpus.empty()) return dealt;
  for (const int number : dealt.numbers)
    dealt.workers_on_one = std::max(dealt.workers_on_one.value_or(1), workers[gpu_of(mine, number).id]);
  return dealt;
}

std::string gpu_identity(const std::string& bus_id, std::size_t index, const char* visible) {
  if (bus_id.empty()) return fmt::format("unknown-{}", index);
  constexpr std::size_t kDigits = 12;  // "0000:01:00.0"; NVML's domain has eight digits
  std::string identity = bus_id.substr(bus_id.size() - std::min(kDigits, bus_id.size()));
  // All parts of a GPU have its bus id. CUDA shows a process only the first part of the list.
  const std::string_view list = visible == nullptr ? "" : visible;
  if (list.starts_with("MIG-")) identity += list.substr(0, list.find(','));
  std::erase_if(identity, [](unsigned char letter) { return std::isspace(letter) != 0; });
  return base::lower_case(identity);
}

}  // namespace paceline::cluster
