#include "cli/deal_gpus.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>

namespace paceline::cli {

std::vector<int> deal_gpus(std::span<const int> node_of_process, std::span<const int> node_of_gpu) {
  const std::size_t count = node_of_process.size();
  std::vector<int> places(count, -1);
  // If all processes are near the same node, no other order is better.
  if (std::ranges::adjacent_find(node_of_process, std::ranges::not_equal_to{}) == node_of_process.end()) {
    std::iota(places.begin(), places.end(), 0);
    return places;
  }
  std::vector<bool> is_taken(count, false);
  const auto take = [&](std::size_t process, auto is_wanted) {
    for (std::size_t place = 0; place < count && places[process] < 0; ++place)
      if (!is_taken[place] && is_wanted(place)) {
        places[process] = static_cast<int>(place);
        is_taken[place] = true;
      }
  };
  for (std::size_t process = 0; process < count; ++process) {
    const int node = node_of_process[process];
    const auto is_near = [&](std::size_t place) {
      return place < node_of_gpu.size() && node >= 0 && node_of_gpu[place] == node;
    };
    // Prefers the GPU with the process's own index, to avoid needless changes.
    take(process, [&](std::size_t place) { return place == process && is_near(place); });
    take(process, is_near);
  }
  for (std::size_t process = 0; process < count; ++process) {
    take(process, [&](std::size_t place) { return place == process; });
    take(process, [](std::size_t) { return true; });
  }
  return places;
}

}  // namespace paceline::cli
