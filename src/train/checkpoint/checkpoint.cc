#include "train/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/error.h"
#include "graph/fingerprint.h"
#include "train/checkpoint/checkpoint_header.h"
#include "train/checkpoint/safetensors.h"
#include "train/checkpoint/safetensors_checksum.h"
#include "train/given/kernels_text.h"
#include "train/given/names.h"

namespace paceline::train {
namespace {

using base::ErrorKind;
using base::fail;

std::string state_name(std::string_view array, const std::string& parameter) {
  return fmt::format("optimizer.{}.{}", array, parameter);
}

std::string slow_name(const std::string& parameter) { return std::string(kSlowPrefix) + parameter; }

/// PyTorch's name for the batch counter beside a running mean: "bn1.running_mean" ->
/// "bn1.num_batches_tracked".
std::string batches_name(const std::string& running_mean) {
  return running_mean.substr(0, running_mean.rfind('.') + 1) + "num_batches_tracked";
}

template <typename T>
std::span<T> part_of(std::span<T> flat, const graph::Slot& slot) {
  return flat.subspan(static_cast<std::size_t>(slot.offset), static_cast<std::size_t>(slot.elements));
}

}  // namespace

TrainingArrays arrays_of(engine::Engine& engine, const engine::UpdateRule& rule,
                         std::span<const float> slow_weights) {
  TrainingArrays arrays{.graph = &engine.graph(),
                        .layout = &engine.layout(),
                        .weights = engine.weights(),
                        .optimizer_state = {},
                        .slow_weights = slow_weights};
  for (int slot = 0; slot < engine::state_slots(rule); ++slot)
    arrays.optimizer_state.push_back(engine.optimizer_state(slot));
  return arrays;
}

void write_checkpoint(const std::filesystem::path& path, const TrainingArrays& arrays, const Options& options,
                      const Resolved& resolved, const Standing& standing) {
  const auto& counters = standing.counters;
  const auto& graph = *arrays.graph;
  const auto& layout = *arrays.layout;
  std::vector<Tensor> tensors;
  const auto add = [&](std::string name, const graph::Parameter& parameter, std::span<const float> values) {
    tensors.push_back({std::move(name), base::DType::f32, parameter.shape, std::as_bytes(values)});
  };
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const auto& parameter = graph.parameters[i];
    const auto& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[i])];
    add(parameter.name, parameter, part_of(arrays.weights, slot));
    if (parameter.role == graph::Role::running_mean)
      tensors.push_back({batches_name(parameter.name),
                         base::DType::i64,
                         {},
                         std::as_bytes(std::span(&counters.update, 1))});
  }
  const auto state = state_names(options.rule);
  for (std::size_t array = 0; array < state.size(); ++array) {
    for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
      const auto& parameter = graph.parameters[i];
      if (!graph::is_trainable(parameter.role)) continue;
      const auto& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[i])];
      add(state_name(state[array], parameter.name), parameter, part_of(arrays.optimizer_state[array], slot));
    }
  }
  for (std::size_t i = 0; i < graph.parameters.size() && !arrays.slow_weights.empty(); ++i) {
    const auto& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[i])];
    add(slow_name(graph.parameters[i].name), graph.parameters[i], part_of(arrays.slow_weights, slot));
  }
  Metadata metadata{{"format", kCheckpointFormat},
                    {"model", graph.name},
                    {"precision", std::string(name(resolved.precision))},
                    {"optimizer", std::string(name(options.rule.kind))},
                    {"update", std::to_string(counters.update)},
                    {"epoch", std::to_string(counters.epoch)},
                    {"step", std::to_string(counters.step)},
                    {"global_batch", std::to_string(resolved.global_batch)},
                    {"train_samples", std::to_string(resolved.train_samples)},
                    {"lr", fmt::format("{}", resolved.rate.peak)},
                    {"seed", std::to_string(options.seed)},
                    {"graph_sha256", graph::fingerprint(graph)},
                    {std::string(kChecksumKey), ""}};
  if (resolved.algorithms != nullptr) metadata["kernels"] = as_text(*resolved.algorithms);
  metadata.merge(texts_of(standing.validation));
  metadata.merge(texts_of(standing.guard));
  write_safetensors(path, tensors, metadata);
}

void read_weights(const std::filesystem::path& path, const graph::Graph& graph, const graph::Layout& layout,
                  std::span<float> weights) {
  const SafetensorsFile file = open_checkpoint(path);
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const auto& parameter = graph.parameters[i];
    const auto& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[i])];
    file.copy_f32(parameter.name, parameter.shape, part_of(weights, slot));
  }
}

void read_checkpoint(const std::filesystem::path& path, engine::Engine& engine, std::span<float> slow_weights,
                     const Options& options) {
  const SafetensorsFile file = open_checkpoint(path);
  const auto& graph = engine.graph();
  const auto& layout = engine.layout();
  const auto arrays = state_names(options.rule);
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const auto& parameter = graph.parameters[i];
    const auto& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[i])];
    file.copy_f32(parameter.name, parameter.shape, part_of(engine.weights(), slot));
    if (!slow_weights.empty())
      file.copy_f32(slow_name(parameter.name), parameter.shape, part_of(slow_weights, slot));
    if (!graph::is_trainable(parameter.role)) continue;
    for (std::size_t array = 0; array < arrays.size(); ++array)
      file.copy_f32(state_name(arrays[array], parameter.name), parameter.shape,
                    part_of(engine.optimizer_state(static_cast<int>(array)), slot));
  }
  engine.weights_changed();
}

CheckpointInfo read_checkpoint_info(const std::filesystem::path& path) {
  auto file = path;
  if (!std::filesystem::is_regular_file(path)) {
    const auto paths = checkpoints_in(path);
    if (paths.empty())
      fail(ErrorKind::data, "{}: is neither a checkpoint nor a directory with checkpoint-*.safetensors in it",
           path.string());
    const auto best = validation_in(open_header(paths.front())).best_update;
    file = best > 0 ? best_checkpoint_path(path, best) : paths.front();
  }
  const SafetensorsFile opened = open_header(file);
  return {.path = file,
          .model = text_in(opened, "model"),
          .precision = text_in(opened, "precision"),
          .updates = number_in(opened, "update"),
          .algorithms = algorithms_from(text_in(opened, "kernels"), file.string())};
}

}  // namespace paceline::train
