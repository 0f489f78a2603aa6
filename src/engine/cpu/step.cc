#include "engine/cpu/step.h"

#include "engine/cpu/parallel.h"
#include "engine/cpu/steps.h"

namespace paceline::engine::cpu {

void* merged_gradient(const Run& run, const Value& value) {
  std::byte* sum = run.memory.at(value.gradient.front());
  const std::int64_t size = bytes_of(value.gradient_storage);
  for (std::size_t term = 1; term < value.gradient.size(); ++term) {
    const std::byte* other = run.memory.at(value.gradient[term]);
    parallel_parts(run.pool, run.options.batch * value.shape.elements(), kPartElements, [&](int, Part part) {
      std::byte* to = sum + part.begin * size;
      run.typed(value.gradient_storage).add(to, other + part.begin * size, to, false, part.size());
    });
  }
  return sum;
}

KernelChoice own_kernel(const Run& run, const std::string& what) {
  const Isa best = isas_here().back();
  return {.op = what,
          .implementation = "own " + std::string(name_of(run.kernels.isa)),
          .reason = run.kernels.isa == best ? "the best instruction set of this machine"
                                            : "asked for; this machine has " + std::string(name_of(best))};
}

}  // namespace paceline::engine::cpu
