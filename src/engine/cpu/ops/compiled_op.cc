#include "engine/cpu/ops/compiled_op.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/clock.h"

namespace paceline::engine::cpu {

void* merged_gradient(const ExecContext& exec, const Value& value) {
  std::byte* sum = exec.memory.at(value.gradient.front());
  const std::int64_t size = bytes_of(value.gradient_storage);
  for (std::size_t term = 1; term < value.gradient.size(); ++term) {
    const std::byte* other = exec.memory.at(value.gradient[term]);
    over_elements(exec, value, [&](Range part) {
      std::byte* to = sum + part.begin * size;
      exec.typed(value.gradient_storage).add(to, other + part.begin * size, to, false, part.size());
    });
  }
  return sum;
}

void mask_by_relu(const ExecContext& exec, const Value& value, BufferId gradient, std::int64_t first,
                  std::int64_t count) {
  std::byte* d = exec.memory.at(gradient) + first * bytes_of(value.gradient_storage);
  const std::byte* y = exec.memory.at(value.buffer) + first * bytes_of(value.storage);
  exec.typed(value.gradient_storage).relu_backward(y, d, d, count);
}

double seconds_of(const std::function<void()>& call, int runs) {
  call();
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < runs; ++run) {
    const auto begin = base::Clock::now();
    call();
    least = std::min(least, base::seconds_since(begin));
  }
  return least;
}

void CompiledOp::measure(ExecContext& exec, const OpTraffic& traffic, std::vector<KernelChoice>& choices) {
  const std::size_t first = choices.size();
  describe(exec, choices);
  if (choices.size() == first) return;
  const auto rate = [](std::int64_t bytes, double seconds) {
    return fmt::format("{:.1f} GB/s ({:.1f} MB)", static_cast<double>(bytes) / seconds / 1e9,
                       static_cast<double>(bytes) / 1e6);
  };
  choices.back().rate = "forward " + rate(traffic.forward, seconds_of([&] { forward(exec); }));
  if (traffic.backward > 0)
    choices.back().rate += ", backward " + rate(traffic.backward, seconds_of([&] { backward(exec); }));
}

KernelChoice own_kernel(const ExecContext& exec, const std::string& what) {
  const Isa best = isas_here().back();
  return {.op = what,
          .implementation = "own " + std::string(name_of(exec.kernels.isa)),
          .reason = exec.kernels.isa == best ? isa_limit().empty()
                                                   ? "the best instruction set of this machine"
                                                   : "the best one that PACELINE_MAX_CPU_ISA leaves"
                                             : "asked for; this machine has " + std::string(name_of(best))};
}

}  // namespace paceline::engine::cpu
