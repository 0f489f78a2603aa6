#include "engine/cuda/plan.h"

#include "engine/cuda/input_buffers.h"
#include "engine/cuda/optimizer.h"
#include "engine/cuda/runtime/device_runtime.h"
#include "engine/cuda/runtime/memory.h"
#include "engine/cuda/step_reports.h"
#include "engine/cuda/stored_images.h"

namespace paceline::engine::cuda {

namespace {

/// Device memory of the CUDA context, loaded kernels and handles for each worker, besides the engine's own
/// blocks. An estimate, since it was never measured on a GPU.
constexpr std::int64_t kDriverAndLibraryBytes = 600'000'000;

}  // namespace

graph::MemoryPlan plan_of(const Program& program, const DeviceFacts& device) {
  using Place = graph::MemoryPlan::Place;
  const CompileOptions& options = program.options();
  const std::int64_t flat = program.layout().elements * static_cast<std::int64_t>(sizeof(float));
  const int states = options.training ? state_slots(options.rule) : 0;
  const std::int64_t input = InputBuffers::bytes_of_set(program.graph(), options);
  graph::MemoryPlan plan;
  // Adds a line for `count` blocks of equal size, each of which is allocated separately.
  const auto on_device = [&](const char* purpose, std::int64_t count, std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    plan.lines.push_back({purpose,
                          count * static_cast<std::int64_t>(device.is_gpu ? allocated_bytes(size) : size),
                          device.is_gpu ? Place::device : Place::host});
  };
  on_device("activations", 1, program.memory().arena_bytes());
  on_device("weights", 1, flat);
  on_device("packed weights and statistics", 1, program.memory().kept_bytes());
  on_device("tables of layers and parameters", 1, Optimizer::bytes(program));
  if (options.training) {
    on_device("gradients", 1, flat + static_cast<std::int64_t>(kVoteFloats * sizeof(float)));
    on_device("optimizer state", states, flat);
  }
  on_device("workspace", 1, program.memory().scratch_bytes());
  on_device("input", InputBuffers::kSets, input);
  if (options.stored_images > 0)
    on_device("images of the data set", 1, StoredImages::bytes(program.graph(), options.stored_images));
  on_device("loss", 1, static_cast<std::int64_t>(sizeof(LossResult)));
  on_device("reports of steps", 1, StepReports::device_bytes());
  if (device.is_gpu) plan.lines.push_back({"driver and libraries", kDriverAndLibraryBytes, Place::device});
  plan.lines.push_back({"host copies of weights and optimizer state", (1 + states) * flat, Place::host});
  plan.lines.push_back({"pinned buffers",
                        InputBuffers::kSets * input + program.pinned_bytes() +
                            Optimizer::pinned_bytes(program) + StepReports::pinned_bytes() +
                            static_cast<std::int64_t>(sizeof(LossResult)) +
                            static_cast<std::int64_t>(DeviceMemory::kStagingBytes),
                        Place::host});
  return plan;
}

}  // namespace paceline::engine::cuda
