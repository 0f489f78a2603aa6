#include "engine/engine.h"

#include "base/error.h"

namespace paceline::engine {

base::OwnedArray gradient_memory(const CompileOptions& options, const graph::Layout& layout,
                                 const base::Memory& memory) {
  if (!options.training) return {.data = nullptr, .size = 0, .memory = &memory};
  const auto size = static_cast<std::size_t>(layout.elements);
  auto gradients = options.gradient_memory ? options.gradient_memory(size, memory) : memory.allocate(size);
  base::expects(gradients.size == size && gradients.memory == &memory,
                "gradient_memory gives as much as is asked for, where it is asked for");
  memory.fill(gradients.array(), 0);
  return gradients;
}

}  // namespace paceline::engine
