#include "engine/engine.h"

#include "base/error.h"

namespace paceline::engine {

base::Buffer gradient_memory(const CompileOptions& options, const graph::Layout& layout) {
  if (!options.training) return {};
  const std::size_t bytes = static_cast<std::size_t>(layout.elements) * sizeof(float);
  base::Buffer buffer = options.gradient_memory ? options.gradient_memory(bytes) : base::Buffer(bytes);
  base::expects(buffer.bytes() == bytes, "gradient_memory gives as much as is asked for");
  buffer.fill_zero();
  return buffer;
}

}  // namespace paceline::engine
