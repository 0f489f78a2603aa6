#include "engine/engine.h"

#include "base/error.h"

namespace paceline::engine {

int state_slots(const UpdateRule& rule) {
  const int momentum = rule.momentum != 0 ? 1 : 0;
  switch (rule.kind) {
    case UpdateKind::sgd:
      return momentum;
    case UpdateKind::lars:
      return 1;
    case UpdateKind::adam:
    case UpdateKind::adamw:
    case UpdateKind::adadelta:
      return 2;
    case UpdateKind::rmsprop:
      return 1 + momentum;
  }
  return 0;
}

base::Buffer gradient_memory(const CompileOptions& options, const graph::Layout& layout) {
  if (!options.training) return {};
  const std::size_t bytes = static_cast<std::size_t>(layout.elements) * sizeof(float);
  base::Buffer buffer = options.gradient_memory ? options.gradient_memory(bytes) : base::Buffer(bytes);
  base::expects(buffer.bytes() == bytes, "gradient_memory gives as much as is asked for");
  buffer.fill_zero();
  return buffer;
}

}  // namespace paceline::engine
