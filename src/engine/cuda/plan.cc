#include "engine/cuda/plan.h"

#include "engine/cuda/input_buffers.h"
#include "engine/cuda/memory.h"
#include "engine/cuda/optimizer.h"

namespace paceline::engine::cuda {

graph::MemoryPlan plan_of(const Program& program, const DeviceFacts& device) {
  using Place = graph::MemoryPlan::Place;
  const CompileOptions& options = program.options();
  const std::int64_t flat = program.layout().elements * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t state = options.training ? state_slots(options.rule) * flat : 0;
  const std::int64_t input = InputBuffers::bytes(program.graph(), options.batch);
  const Place there = device.is_gpu ? Place::device : Place::host;
  graph::MemoryPlan plan;
  plan.lines.push_back({"activations", program.memory().arena_bytes(), there});
  plan.lines.push_back({"weights", flat, there});
  plan.lines.push_back(
      {"packed weights and statistics", program.memory().kept_bytes() + Optimizer::bytes(program), there});
  if (options.training) {
    plan.lines.push_back({"gradients", flat, there});
    plan.lines.push_back({"optimizer state", state, there});
  }
  plan.lines.push_back({"workspace", program.memory().scratch_bytes(), there});
  plan.lines.push_back({"input", input, there});
  plan.lines.push_back({"host copies of weights and optimizer state", flat + state, Place::host});
  plan.lines.push_back(
      {"pinned buffers",
       input + program.pinned_bytes() + static_cast<std::int64_t>(DeviceMemory::kStagingBytes), Place::host});
  return plan;
}

}  // namespace paceline::engine::cuda
