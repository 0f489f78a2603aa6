#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/error.h"
#include "train/names.h"
#include "train/safetensors.h"

namespace paceline::train {
namespace {

using base::ErrorKind;
using base::fail;

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr const char* kFormat = "paceline-checkpoint-1";

/// The updates in a checkpoint's file name; nothing for other files.
std::optional<std::int64_t> update_of(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  std::int64_t update = 0;
  const char* end = name.data() + name.size() - kSuffix.size();
  const auto result = std::from_chars(name.data() + kPrefix.size(), end, update);
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return update;
}

/// All checkpoints of a directory, the newest (most updates) first.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  std::error_code missing;  // no directory: no checkpoints
  for (const auto& entry : std::filesystem::directory_iterator(directory, missing))
    if (update_of(entry.path())) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end(),
            [](const auto& a, const auto& b) { return *update_of(a) > *update_of(b); });
  return paths;
}

std::string state_name(const std::string& array, const std::string& parameter) {
  return "optimizer." + array + "." + parameter;
}

/// PyTorch's module path of a running mean: "bn1.running_mean" -> "bn1.num_batches_tracked".
std::string batches_name(const std::string& running_mean) {
  return running_mean.substr(0, running_mean.rfind('.') + 1) + "num_batches_tracked";
}

std::span<float> part_of(std::span<float> flat, const graph::Slot& slot) {
  return flat.subspan(static_cast<std::size_t>(slot.offset), static_cast<std::size_t>(slot.elements));
}

std::int64_t number_in(const Metadata& metadata, const std::string& key, const std::filesystem::path& path) {
  const auto found = metadata.find(key);
  std::int64_t value = 0;
  if (found == metadata.end() ||
      std::from_chars(found->second.data(), found->second.data() + found->second.size(), value).ec !=
          std::errc{})
    fail(ErrorKind::data,
         "{}: the checkpoint's '{}' is missing or no number; it was not written by this program",
         path.string(), key);
  return value;
}

}  // namespace

std::filesystem::path checkpoint_path(const std::filesystem::path& directory, std::int64_t update) {
  return directory / fmt::format("{}{:08}{}", kPrefix, update, kSuffix);
}

void write_checkpoint(const std::filesystem::path& path, engine::Engine& engine, const Options& options,
                      const Resolved& resolved, const Counters& counters) {
  const auto& graph = engine.graph();
  const auto& layout = engine.layout();
  std::vector<Tensor> tensors;
  const auto add = [&](std::string name, const graph::Parameter& parameter, std::span<const float> values) {
    tensors.push_back({std::move(name), base::DType::f32, parameter.shape, std::as_bytes(values)});
  };
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const auto& parameter = graph.parameters[i];
    const auto& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[i])];
    add(parameter.name, parameter, part_of(engine.weights(), slot));
    if (parameter.role == graph::Role::running_mean)
      tensors.push_back({batches_name(parameter.name),
                         base::DType::i64,
                         {},
                         std::as_bytes(std::span(&counters.update, 1))});
  }
  const auto arrays = state_names(options.rule);
  for (std::size_t array = 0; array < arrays.size(); ++array) {
    for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
      const auto& parameter = graph.parameters[i];
      if (!graph::is_trainable(parameter.role)) continue;
      const auto& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[i])];
      add(state_name(arrays[array], parameter.name), parameter,
          part_of(engine.optimizer_state(static_cast<int>(array)), slot));
    }
  }
  write_safetensors(path, tensors,
                    {{"format", kFormat},
                     {"model", graph.name},
                     {"optimizer", std::string(name(options.rule.kind))},
                     {"update", std::to_string(counters.update)},
                     {"epoch", std::to_string(counters.epoch)},
                     {"step", std::to_string(counters.step)},
                     {"global_batch", std::to_string(resolved.global_batch)},
                     {"seed", std::to_string(options.seed)}});
}

Counters read_checkpoint(const std::filesystem::path& path, engine::Engine& engine, const Options& options,
                         const Resolved& resolved) {
  const SafetensorsFile file(path);
  const auto& metadata = file.metadata();
  if (!metadata.contains("format") || metadata.at("format") != kFormat)
    fail(ErrorKind::data,
         "{}: its format is '{}' and '{}' is expected; it was not written by this program's train",
         path.string(), metadata.contains("format") ? metadata.at("format") : "none", kFormat);
  const auto& graph = engine.graph();
  const auto& layout = engine.layout();
  const auto arrays = state_names(options.rule);
  const std::string rule(name(options.rule.kind));
  if (metadata.contains("optimizer") && metadata.at("optimizer") != rule)
    fail(ErrorKind::data, "{}: was trained with --optimizer {} and this run has {}; give the same one",
         path.string(), metadata.at("optimizer"), rule);
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const auto& parameter = graph.parameters[i];
    const auto& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[i])];
    file.copy_f32(parameter.name, parameter.shape, part_of(engine.weights(), slot));
    if (!graph::is_trainable(parameter.role)) continue;
    for (std::size_t array = 0; array < arrays.size(); ++array)
      file.copy_f32(state_name(arrays[array], parameter.name), parameter.shape,
                    part_of(engine.optimizer_state(static_cast<int>(array)), slot));
  }
  engine.weights_changed();

  const Counters counters{.update = number_in(metadata, "update", path),
                          .epoch = number_in(metadata, "epoch", path),
                          .step = number_in(metadata, "step", path)};
  const std::int64_t global_batch = number_in(metadata, "global_batch", path);
  if (counters.step != 0 && global_batch != resolved.global_batch)
    fail(ErrorKind::data,
         "{}: ends inside epoch {} at global batch {}, and this run's is {}: some samples would come twice "
         "in that epoch, "
         "others never; resume with --global-batch {}",
         path.string(), counters.epoch + 1, global_batch, resolved.global_batch, global_batch);
  return counters;
}

std::filesystem::path find_checkpoint(const std::filesystem::path& resume) {
  if (std::filesystem::is_regular_file(resume)) return resume;
  const auto paths = checkpoints_in(resume);
  if (paths.empty())
    fail(ErrorKind::data, "--resume {}: is neither a checkpoint nor a directory with {}*{} in it",
         resume.string(), kPrefix, kSuffix);
  return paths.front();
}

void prune_checkpoints(const std::filesystem::path& directory, int keep) {
  const auto paths = checkpoints_in(directory);
  for (std::size_t i = static_cast<std::size_t>(keep); i < paths.size(); ++i) {
    std::error_code ignored;  // one that cannot be removed only takes room
    std::filesystem::remove(paths[i], ignored);
  }
}

}  // namespace paceline::train
