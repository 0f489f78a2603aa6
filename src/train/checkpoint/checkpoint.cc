#include "train/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "graph/layout.h"
#include "train/checkpoint/checkpoint_header.h"
#include "train/checkpoint/safetensors.h"
#include "train/given/names.h"

namespace paceline::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kBestPrefix = "best-";
constexpr std::string_view kSuffix = ".safetensors";

using base::ErrorKind;
using base::fail;

std::string state_name(std::string_view array, const std::string& parameter) {
  return fmt::format("optimizer.{}.{}", array, parameter);
}

std::string slow_name(const Options& options, const std::string& parameter) {
  return (options.ema.decay > 0 ? kAveragePrefix : kSlowPrefix) + parameter;
}

/// PyTorch's name for the batch counter beside a running mean: "bn1.running_mean" ->
/// "bn1.num_batches_tracked".
std::string batches_name(const std::string& running_mean) {
  return running_mean.substr(0, running_mean.rfind('.') + 1) + "num_batches_tracked";
}

/// Calls `each` with every parameter and its slot.
template <typename Each>
void for_each_parameter(const graph::Graph& graph, const graph::Layout& layout, const Each& each) {
  for (std::size_t i = 0; i < graph.parameters.size(); ++i)
    each(graph.parameters[i], layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[i])]);
}

template <typename T>
std::span<T> part_of(std::span<T> flat, const graph::Slot& slot) {
  return flat.subspan(static_cast<std::size_t>(slot.offset), static_cast<std::size_t>(slot.elements));
}

}  // namespace

std::optional<std::int64_t> update_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  return base::to_number<std::int64_t>(
      name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
}

fs::path checkpoint_path(const fs::path& directory, std::int64_t update) {
  return directory / fmt::format("{}{:08}{}", kPrefix, update, kSuffix);
}

fs::path best_checkpoint_path(const fs::path& directory, std::int64_t update) {
  return directory / fmt::format("{}{:08}{}", kBestPrefix, update, kSuffix);
}

std::vector<fs::path> checkpoints_in(const fs::path& directory) {
  std::vector<fs::path> paths;
  for (const auto& entry : base::entries_of(directory))
    if (update_of(entry.path())) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end(),
            [](const auto& a, const auto& b) { return *update_of(a) > *update_of(b); });
  return paths;
}

void link_to(const fs::path& target, const char* name) {
  const auto link = target.parent_path() / name;
  const auto made = target.parent_path() / (std::string(".") + name + ".paceline-new");
  std::error_code failed;
  const auto there = fs::symlink_status(link, failed);
  if (fs::exists(there) && !fs::is_symlink(there)) return;  // a file that is not ours
  fs::remove(made, failed);                                 // left by a process that was killed in between
  fs::create_symlink(target.filename(), made, failed);
  if (!failed) fs::rename(made, link, failed);
}

fs::path set_aside_damaged(const fs::path& file) {
  const auto aside = file.parent_path() / ("damaged-" + file.filename().string());
  std::error_code failed;
  fs::rename(file, aside, failed);
  return failed ? file : aside;
}

void Snapshot::take(const TrainingArrays& arrays) {
  std::size_t elements = arrays.weights.size() + arrays.slow_weights.size();
  for (const auto& state : arrays.optimizer_state) elements += state.size();
  if (copy_.bytes() != elements * sizeof(float)) copy_ = base::Buffer(elements * sizeof(float));
  auto left = copy_.as<float>();
  const auto copied = [&](std::span<const float> from) -> std::span<const float> {
    const auto to = left.first(from.size());
    std::copy(from.begin(), from.end(), to.begin());
    left = left.subspan(from.size());
    return to;
  };
  arrays_ = {.graph = arrays.graph,
             .layout = arrays.layout,
             .weights = copied(arrays.weights),
             .loss_scale = arrays.loss_scale};
  for (const auto& state : arrays.optimizer_state) arrays_.optimizer_state.push_back(copied(state));
  arrays_.slow_weights = copied(arrays.slow_weights);
}

std::int64_t Snapshot::planned_bytes(const graph::Graph& graph, const Options& options) {
  const auto bytes = static_cast<std::size_t>(checkpoint_bytes(graph, options));
  return static_cast<std::int64_t>(base::Buffer::resident_bytes(bytes));
}

std::int64_t checkpoint_bytes(const graph::Graph& graph, const Options& options) {
  const std::int64_t arrays = 1 + engine::state_slots(options.rule) + (has_slow_weights(options) ? 1 : 0);
  return static_cast<std::int64_t>(sizeof(float)) * arrays * graph::flat_layout(graph).elements;
}

std::optional<std::string> lack_of_space(const fs::path& out, std::int64_t bytes, int files) {
  const auto free = base::free_bytes(out);
  if (!free || *free / std::max(files, 1) >= bytes) return std::nullopt;
  const auto megabytes = [](std::int64_t count) { return 1e-6 * static_cast<double>(count); };
  return fmt::format(
      "--out {}: {:.1f} MB are free, but {} of {:.1f} MB need{} {:.1f} MB; make room, or the "
      "next ones will not be kept",
      out.string(), megabytes(*free), base::counted(files, "checkpoint"), megabytes(bytes),
      files == 1 ? "s" : "", megabytes(bytes * files));
}

TrainingArrays arrays_of(engine::Engine& engine, const engine::UpdateRule& rule,
                         std::span<const float> slow_weights) {
  TrainingArrays arrays{.graph = &engine.graph(),
                        .layout = &engine.layout(),
                        .weights = engine.weights(),
                        .slow_weights = slow_weights,
                        .loss_scale = engine.loss_scale()};
  for (int slot = 0; slot < engine::state_slots(rule); ++slot)
    arrays.optimizer_state.push_back(engine.optimizer_state(slot));
  return arrays;
}

void write_checkpoint(const std::filesystem::path& path, const TrainingArrays& arrays, const Options& options,
                      const Resolved& resolved, const TrainingState& standing) {
  const auto& counters = standing.counters;
  const auto& graph = *arrays.graph;
  const auto& layout = *arrays.layout;
  using graph::Parameter, graph::Slot;
  std::vector<Tensor> tensors;
  const auto add = [&](std::string name, const Parameter& parameter, std::span<const float> values) {
    tensors.push_back({std::move(name), base::DType::f32, parameter.shape, std::as_bytes(values)});
  };
  static constexpr std::int64_t kNoBatches = 0;
  for_each_parameter(graph, layout, [&](const Parameter& parameter, const Slot& slot) {
    add(parameter.name, parameter, part_of(arrays.weights, slot));
    if (parameter.role != graph::Role::running_mean) return;
    const auto* norm = graph.nodes[static_cast<std::size_t>(parameter.node)].as<graph::BatchNorm>();
    const bool is_frozen = norm != nullptr && norm->is_frozen;
    tensors.push_back({batches_name(parameter.name),
                       base::DType::i64,
                       {},
                       std::as_bytes(std::span(is_frozen ? &kNoBatches : &counters.update, 1))});
  });
  const auto state = state_names(options.rule);
  for (std::size_t array = 0; array < state.size(); ++array)
    for_each_parameter(graph, layout, [&](const Parameter& parameter, const Slot& slot) {
      if (graph::is_trainable(parameter.role))
        add(state_name(state[array], parameter.name), parameter,
            part_of(arrays.optimizer_state[array], slot));
    });
  if (!arrays.slow_weights.empty())
    for_each_parameter(graph, layout, [&](const Parameter& parameter, const Slot& slot) {
      add(slow_name(options, parameter.name), parameter, part_of(arrays.slow_weights, slot));
    });
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
                    {"graph", graph::canonical_text(graph)},
                    {"graph_sha256", graph::fingerprint(graph)},
                    {std::string(kChecksumKey), ""}};
  if (resolved.algorithms != nullptr) metadata["kernels"] = as_text(*resolved.algorithms);
  metadata.merge(texts_of(resolved.data));
  metadata.merge(texts_of(standing.validation));
  metadata.merge(texts_of(standing.guard));
  if (arrays.loss_scale) metadata.merge(texts_of(*arrays.loss_scale));
  write_safetensors(path, tensors, metadata);
}

void read_weights(const std::filesystem::path& path, const graph::Graph& graph, const graph::Layout& layout,
                  std::span<float> weights, bool is_averaged) {
  const SafetensorsFile file = open_checkpoint(path);
  if (is_averaged && !has_arrays(file, kAveragePrefix))
    fail(ErrorKind::data, "{}: has no averaged weights, since its run had no --ema; leave --use-ema out",
         path.string());
  const std::string prefix = is_averaged ? kAveragePrefix : "";
  for_each_parameter(graph, layout, [&](const graph::Parameter& parameter, const graph::Slot& slot) {
    file.copy_f32(prefix + parameter.name, parameter.shape, part_of(weights, slot));
  });
}

void read_checkpoint(const std::filesystem::path& path, engine::Engine& engine, std::span<float> slow_weights,
                     const Options& options) {
  const SafetensorsFile file = open_checkpoint(path);
  const auto arrays = state_names(options.rule);
  const auto copy = [&](const graph::Parameter& parameter, const graph::Slot& slot) {
    file.copy_f32(parameter.name, parameter.shape, part_of(engine.weights(), slot));
    if (!slow_weights.empty())
      file.copy_f32(slow_name(options, parameter.name), parameter.shape, part_of(slow_weights, slot));
    if (!graph::is_trainable(parameter.role)) return;
    for (std::size_t array = 0; array < arrays.size(); ++array)
      file.copy_f32(state_name(arrays[array], parameter.name), parameter.shape,
                    part_of(engine.optimizer_state(static_cast<int>(array)), slot));
  };
  for_each_parameter(engine.graph(), engine.layout(), copy);
  engine.set_loss_scale(loss_scale_in(file));
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
          .graph = text_in(opened, "graph"),
          .updates = number_in(opened, "update"),
          .data = data_in(opened),
          .algorithms = algorithms_from(text_in(opened, "kernels"), file.string())};
}

}  // namespace paceline::train
