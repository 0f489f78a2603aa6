#include "engine/cuda/kernels/host.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/cuda/kernels/table.h"

namespace paceline::engine::cuda {
namespace {

using HostLoop = void (*)(const void* arguments, const Grid& grid, HostOrder order);

template <typename Kernel>
void loop(const void* arguments, const Grid& grid, HostOrder order) {
  Kernel kernel;
  std::memcpy(&kernel, arguments, sizeof kernel);
  // An array of doubles, so that it is aligned for them. Filled with a value that is NaN as double and as
  // float.
  std::vector<double> shared((static_cast<std::size_t>(grid.shared_bytes) + 7) / 8);
  const int phases = phases_of(kernel);
  const auto place = [&](int i, int count) { return order == HostOrder::ascending ? i : count - 1 - i; };
  for (int block = 0; block < grid.blocks; ++block) {
    std::ranges::fill(shared, std::bit_cast<double>(~std::uint64_t{0}));
    for (int phase = 0; phase < phases; ++phase)
      for (int thread = 0; thread < grid.threads; ++thread)
        run_phase(kernel, phase,
                  {.block = place(block, grid.blocks),
                   .blocks = grid.blocks,
                   .thread = place(thread, grid.threads),
                   .threads = grid.threads},
                  reinterpret_cast<float*>(shared.data()));
  }
}

template <std::size_t... number>
constexpr auto loops_of(std::index_sequence<number...>) {
  return std::array<HostLoop, sizeof...(number)>{loop<std::tuple_element_t<number, Kernels>>...};
}
constexpr auto kLoops = loops_of(std::make_index_sequence<kKernelCount>{});

}  // namespace

void run_on_host(int kernel, const void* arguments, const Grid& grid, HostOrder order) {
  base::expects(kernel >= 0 && kernel < kKernelCount, "the kernel is in the table");
  base::expects(grid.threads >= 1 && grid.threads <= kMostThreads && grid.shared_bytes <= 48 * 1024,
                "a block has at most kMostThreads threads and 48 KB of shared memory");
  kLoops[static_cast<std::size_t>(kernel)](arguments, grid, order);
}

}  // namespace paceline::engine::cuda
