#include "engine/cpu/ops/compiled_op.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {

void* merged_gradient(const Run& run, const Value& value) {
  std::byte* sum = run.memory.at(value.gradient.front());
  const std::int64_t size = bytes_of(value.gradient_storage);
  for (std::size_t term = 1; term < value.gradient.size(); ++term) {
    const std::byte* other = run.memory.at(value.gradient[term]);
    parallel_ranges(
        run.pool, run.options.batch * value.shape.elements(), kRangeElements, [&](int, Range part) {
          std::byte* to = sum + part.begin * size;
          run.typed(value.gradient_storage).add(to, other + part.begin * size, to, false, part.size());
        });
  }
  return sum;
}

void mask_by_relu(const Run& run, const Value& value, BufferId gradient, std::int64_t first,
                  std::int64_t count) {
  std::byte* d = run.memory.at(gradient) + first * bytes_of(value.gradient_storage);
  const std::byte* y = run.memory.at(value.buffer) + first * bytes_of(value.storage);
  run.typed(value.gradient_storage).relu_backward(y, d, d, count);
}

double seconds_of(const std::function<void()>& call) {
  constexpr int kRuns = 3;
  call();
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = base::Clock::now();
    call();
    least = std::min(least, base::seconds_since(begin));
  }
  return least;
}

void Step::measure(Run& run, const Traffic& traffic, std::vector<KernelChoice>& choices) {
  const std::size_t first = choices.size();
  describe(run, choices);
  if (choices.size() == first) return;
  const auto rate = [](std::int64_t bytes, double seconds) {
    return fmt::format("{:.1f} GB/s ({:.1f} MB)", static_cast<double>(bytes) / seconds / 1e9,
                       static_cast<double>(bytes) / 1e6);
  };
  choices.back().rate = "forward " + rate(traffic.forward, seconds_of([&] { forward(run); }));
  if (traffic.backward > 0)
    choices.back().rate += ", backward " + rate(traffic.backward, seconds_of([&] { backward(run); }));
}

KernelChoice own_kernel(const Run& run, const std::string& what) {
  const Isa best = isas_here().back();
  return {.op = what,
          .implementation = "own " + std::string(name_of(run.kernels.isa)),
          .reason = run.kernels.isa == best ? isa_limit().empty()
                                                  ? "the best instruction set of this machine"
                                                  : "the best one that PACELINE_MAX_CPU_ISA leaves"
                                            : "asked for; this machine has " + std::string(name_of(best))};
}

}  // namespace paceline::engine::cpu
