#include "engine/engine.h"

#include "base/error.h"

namespace paceline::engine {

const char* name_of(ConvDirection direction) {
  constexpr const char* kNames[] = {"forward", "backward data", "backward weights"};
  return kNames[static_cast<int>(direction)];
}

void check_options(const CompileOptions& options, std::string_view engine) {
  using base::ErrorKind;
  if (options.batch < 1)
    base::fail(ErrorKind::usage, "engine {}: a batch must hold at least 1 sample, but is {}; raise it",
               engine, options.batch);
  if (options.precision == Precision::f16 && engine != "cuda")
    base::fail(ErrorKind::usage,
               "--precision fp16 is for GPUs, and engine {} computes on the processor; give --precision "
               "fp32, or bf16 where doctor names units for it",
               engine);
  if (options.batch_norm == BatchNormMode::ghost &&
      (options.ghost_size < 1 || options.batch % options.ghost_size != 0))
    base::fail(
        ErrorKind::usage,
        "--bn ghost:{1}: the batch of a worker is {0}, and {1} does not divide it; choose a divisor of {0}",
        options.batch, options.ghost_size);
  base::expects(options.shard == 0 || (options.batch_norm == BatchNormMode::synchronised &&
                                       options.shard > 0 && options.batch % options.shard == 0),
                "shards inside an engine are for synchronised batch norm, and divide the batch");
  base::expects(options.batch_norm != BatchNormMode::synchronised || options.world_size == 1 ||
                    options.reduce_statistics != nullptr,
                "synchronised batch norm has a way to reduce its statistics");
}

void require_second_labels(const StepInput& input, int batch, bool has_two_labels) {
  base::expects(static_cast<int>(input.second_labels.size()) == (has_two_labels ? batch : 0),
                "a step has second labels, one for each sample, where the engine is compiled for them alone");
}

namespace {

void end_without_stored_images() { base::expects(false, "images are stored by engines that keep them"); }

}  // namespace

void Engine::set_byte_values(std::span<const float>) { end_without_stored_images(); }
void Engine::store_images(std::int64_t, std::span<const std::uint8_t>) { end_without_stored_images(); }
LossSums Engine::evaluate_draws(std::span<const base::SampleDraw>, std::span<const std::int32_t>, int, int,
                                std::span<double>) {
  end_without_stored_images();
  return {};
}

base::OwnedArray gradient_memory(const CompileOptions& options, const graph::Layout& layout,
                                 const base::Memory& memory, std::size_t more) {
  if (!options.training) return {.data = nullptr, .size = 0, .memory = &memory};
  const auto size = static_cast<std::size_t>(layout.elements) + more;
  auto gradients = options.gradient_memory ? options.gradient_memory(size, memory) : memory.allocate(size);
  base::expects(gradients.size == size && gradients.memory == &memory,
                "gradient_memory gives as much as is asked for, where it is asked for");
  memory.fill(gradients.array(), 0);
  return gradients;
}

}  // namespace paceline::engine
