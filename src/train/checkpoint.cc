#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/error.h"
#include "graph/fingerprint.h"
#include "train/kernels_text.h"
#include "train/last_words.h"
#include "train/names.h"
#include "train/safetensors.h"

namespace paceline::train {
namespace {

using base::ErrorKind;
using base::fail;

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kBestPrefix = "best-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kSlowPrefix = "lookahead.";
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

std::string state_name(std::string_view array, const std::string& parameter) {
  return fmt::format("optimizer.{}.{}", array, parameter);
}

std::string slow_name(const std::string& parameter) { return std::string(kSlowPrefix) + parameter; }

/// PyTorch's module path of a running mean: "bn1.running_mean" -> "bn1.num_batches_tracked".
std::string batches_name(const std::string& running_mean) {
  return running_mean.substr(0, running_mean.rfind('.') + 1) + "num_batches_tracked";
}

std::span<float> part_of(std::span<float> flat, const graph::Slot& slot) {
  return flat.subspan(static_cast<std::size_t>(slot.offset), static_cast<std::size_t>(slot.elements));
}

std::string text_in(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? "" : found->second;
}

std::int64_t number_in(const SafetensorsFile& file, const std::string& key) {
  const std::string text = text_in(file, key);
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{})
    fail(ErrorKind::data,
         "{}: the checkpoint's '{}' is missing or no number; it was not written by this program",
         file.path().string(), key);
  return value;
}

/// What the validation part had decided; nothing where there was none.
ValidationState validation_in(const SafetensorsFile& file) {
  ValidationState state;
  if (text_in(file, "best_update").empty()) return state;
  const auto decimal_in = [&](const std::string& key) {
    const std::string text = text_in(file, key);
    double value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{})
      fail(ErrorKind::data, "{}: the checkpoint's '{}' is missing or no number; take an earlier one",
           file.path().string(), key);
    return value;
  };
  state.best_update = number_in(file, "best_update");
  state.best_epoch = number_in(file, "best_epoch");
  state.best_accuracy = decimal_in("best_accuracy");
  state.best_loss = decimal_in("best_loss");
  state.last_epoch = number_in(file, "validated_epoch");
  state.reduced_epoch = number_in(file, "reduced_epoch");
  state.reductions = number_in(file, "reductions");
  return state;
}

void require_own_format(const SafetensorsFile& file) {
  if (const auto format = text_in(file, "format"); format != kFormat)
    fail(ErrorKind::data,
         "{}: its format is '{}' and '{}' is expected; it was not written by this program's train",
         file.path().string(), format.empty() ? "none" : format, kFormat);
}

/// A checkpoint of before this key says nothing of it.
void require_same(const SafetensorsFile& file, const std::string& key, const char* what,
                  const std::string& now) {
  const auto then = text_in(file, key);
  if (then.empty() || then == now) return;
  fail(ErrorKind::data, "{}: {} was {} in its run and is {} in this one; give the same, or begin anew",
       file.path().string(), what, then, now);
}

/// Where it is damaged, its error names the one before it too, if there is one.
SafetensorsFile opened(const std::filesystem::path& path, const std::filesystem::path& earlier) {
  try {
    return SafetensorsFile(path);
  } catch (const base::Error& error) {
    if (earlier.empty()) throw;
    fail(error.kind(), "{}; remove it, and the next --resume goes on from {}", error.what(),
         earlier.string());
  }
}

bool has_slow_weights(const SafetensorsFile& file) {
  const auto& tensors = file.tensors();
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const Tensor& tensor) { return tensor.name.starts_with(kSlowPrefix); });
}

/// The three counters say the same in two ways, which a damaged file hardly does.
void require_possible(const ResumePoint& point, std::int64_t steps_per_epoch) {
  const auto& [update, epoch, step] = point.counters;
  const bool in_range = update >= 0 && epoch >= 0 && epoch <= update && step >= 0 && step <= steps_per_epoch;
  if (in_range && step <= update && (update - step) % steps_per_epoch == 0 &&
      (update - step) / steps_per_epoch == epoch)
    return;
  fail(ErrorKind::data,
       "{}: its next batch is said to be step {} of epoch {} (from 0) after {} updates, which with {} steps "
       "an epoch cannot be; it is damaged: take an earlier checkpoint, or begin anew",
       point.path.string(), step, epoch, update, steps_per_epoch);
}

}  // namespace

std::filesystem::path checkpoint_path(const std::filesystem::path& directory, std::int64_t update) {
  return directory / fmt::format("{}{:08}{}", kPrefix, update, kSuffix);
}

std::filesystem::path best_checkpoint_path(const std::filesystem::path& directory, std::int64_t update) {
  return directory / fmt::format("{}{:08}{}", kBestPrefix, update, kSuffix);
}

void write_checkpoint(const std::filesystem::path& path, engine::Engine& engine,
                      std::span<float> slow_weights, const Options& options, const Resolved& resolved,
                      const Counters& counters, const ValidationState& validation) {
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
  for (std::size_t i = 0; i < graph.parameters.size() && !slow_weights.empty(); ++i) {
    const auto& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[i])];
    add(slow_name(graph.parameters[i].name), graph.parameters[i], part_of(slow_weights, slot));
  }
  Metadata metadata{{"format", kFormat},
                    {"model", graph.name},
                    {"precision", resolved.precision == engine::Precision::f32 ? "fp32" : "bf16"},
                    {"optimizer", std::string(name(options.rule.kind))},
                    {"update", std::to_string(counters.update)},
                    {"epoch", std::to_string(counters.epoch)},
                    {"step", std::to_string(counters.step)},
                    {"global_batch", std::to_string(resolved.global_batch)},
                    {"train_samples", std::to_string(resolved.train_samples)},
                    {"lr", fmt::format("{}", resolved.rate.peak)},
                    {"seed", std::to_string(options.seed)},
                    {"graph_sha256", graph::fingerprint(graph)}};
  if (resolved.algorithms != nullptr) metadata["kernels"] = as_text(*resolved.algorithms);
  if (validation.best_update > 0) {
    metadata["best_update"] = std::to_string(validation.best_update);
    metadata["best_epoch"] = std::to_string(validation.best_epoch);
    metadata["best_accuracy"] = fmt::format("{}", validation.best_accuracy);
    metadata["best_loss"] = fmt::format("{}", validation.best_loss);
    metadata["validated_epoch"] = std::to_string(validation.last_epoch);
    metadata["reduced_epoch"] = std::to_string(validation.reduced_epoch);
    metadata["reductions"] = std::to_string(validation.reductions);
  }
  write_safetensors(path, tensors, metadata);
}

void read_weights(const std::filesystem::path& path, const graph::Graph& graph, const graph::Layout& layout,
                  std::span<float> weights) {
  const SafetensorsFile file(path);
  require_own_format(file);
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const auto& parameter = graph.parameters[i];
    const auto& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[i])];
    file.copy_f32(parameter.name, parameter.shape, part_of(weights, slot));
  }
}

void read_checkpoint(const std::filesystem::path& path, engine::Engine& engine, std::span<float> slow_weights,
                     const Options& options) {
  const SafetensorsFile file(path);
  require_own_format(file);
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

namespace {

/// Whether the run in --out has its last checkpoint and no record that says so: what is left to do is to
/// write it.
bool lost_at_its_end(const Options& options) {
  const auto path = options.out / "record.json";
  if (!goes_on_in_place(options) || !std::filesystem::exists(path)) return false;
  const auto record = measure::read_record(path);
  return record.status == "failed" || record.reason == kNoLastWord;
}

}  // namespace

ResumePoint find_resume_point(const Options& options, const Resolved& resolved, const graph::Graph& graph) {
  ResumePoint point{.path = options.resume, .counters = {}, .validation = {}, .notes = {}};
  std::filesystem::path earlier;
  if (!std::filesystem::is_regular_file(options.resume)) {
    const auto paths = checkpoints_in(options.resume);
    if (paths.empty())
      fail(ErrorKind::data, "--resume {}: is neither a checkpoint nor a directory with {}*{} in it",
           options.resume.string(), kPrefix, kSuffix);
    point.path = paths.front();
    if (paths.size() > 1) earlier = paths[1];
  }
  const SafetensorsFile file = opened(point.path, earlier);
  require_own_format(file);
  if (const auto then = text_in(file, "graph_sha256"); !then.empty() && then != graph::fingerprint(graph))
    fail(
        ErrorKind::data,
        "{}: the layers of its run were others than those of {} now (SHA-256 of the graph {}.. and {}..); give the "
        "model that it was, or begin anew",
        file.path().string(), graph.name, then.substr(0, 8), graph::fingerprint(graph).substr(0, 8));
  require_same(file, "optimizer", "--optimizer", std::string(name(options.rule.kind)));
  require_same(file, "seed", "--seed", std::to_string(options.seed));
  require_same(file, "global_batch", "the global batch", std::to_string(resolved.global_batch));
  require_same(file, "train_samples", "the number of training samples",
               std::to_string(resolved.train_samples));
  point.counters = {.update = number_in(file, "update"),
                    .epoch = number_in(file, "epoch"),
                    .step = number_in(file, "step")};
  point.validation = validation_in(file);
  point.algorithms = algorithms_from(text_in(file, "kernels"), point.path.string());
  const auto best = best_checkpoint_path(point.path.parent_path(), point.validation.best_update);
  if (point.validation.best_update > 0 && !std::filesystem::exists(best))
    fail(
        ErrorKind::data,
        "{}: its best epoch on validation is {}, and {} is not there; copy it beside the checkpoint, or begin "
        "anew",
        point.path.string(), point.validation.best_epoch, best.string());
  require_possible(point, resolved.steps_per_epoch);
  if (options.lookahead.steps > 0 && !has_slow_weights(file))
    fail(ErrorKind::data,
         "{}: --lookahead was off in its run and is {} in this one; give the same, or begin anew",
         point.path.string(), options.lookahead.steps);
  const auto left = resolved.end - point.counters.update;
  if (left < 0 || (left == 0 && !lost_at_its_end(options)))
    fail(ErrorKind::usage, "{}: is already at update {} of {}; give more --epochs or --steps",
         point.path.string(), point.counters.update, resolved.end);
  const auto then = text_in(file, "lr"), now = fmt::format("{}", resolved.rate.peak);
  if (!then.empty() && then != now)
    point.notes.push_back(
        fmt::format("the learning rate's peak is {} from here on; it was {} up to update {}", now, then,
                    point.counters.update));
  return point;
}

CheckpointInfo read_checkpoint_info(const std::filesystem::path& path) {
  auto file = path;
  if (!std::filesystem::is_regular_file(path)) {
    const auto paths = checkpoints_in(path);
    if (paths.empty())
      fail(ErrorKind::data, "{}: is neither a checkpoint nor a directory with {}*{} in it", path.string(),
           kPrefix, kSuffix);
    const auto best = validation_in(SafetensorsFile(paths.front())).best_update;
    file = best > 0 ? best_checkpoint_path(path, best) : paths.front();
  }
  const SafetensorsFile opened(file);
  require_own_format(opened);
  return {.path = file,
          .model = text_in(opened, "model"),
          .precision = text_in(opened, "precision"),
          .updates = number_in(opened, "update"),
          .algorithms = algorithms_from(text_in(opened, "kernels"), file.string())};
}

bool goes_on_in_place(const Options& options) {
  std::error_code missing;  // then it is no place to go on in
  if (options.resume.empty() || options.out.empty()) return false;
  auto directory = std::filesystem::absolute(options.resume);
  if (!std::filesystem::is_directory(directory, missing)) directory = directory.parent_path();
  return std::filesystem::equivalent(directory, options.out, missing);
}

void require_own_directory(const Options& options) {
  if (options.out.empty()) return;
  const auto out = options.out.string();
  const auto there = checkpoints_in(options.out);
  if (goes_on_in_place(options)) {
    const auto asked = options.resume.filename(), newest = there.empty() ? asked : there.front().filename();
    if (std::filesystem::is_regular_file(options.resume) && asked != newest)
      fail(
          ErrorKind::usage,
          "--out {}: holds {}, newer than the {} that --resume names, and a later --resume {} would take it; "
          "give another --out",
          out, newest.string(), asked.string(), out);
    return;
  }
  if (!there.empty())
    fail(ErrorKind::usage,
         "--out {0}: holds another run ({1}); give --resume {0} to go on with it, or another --out", out,
         there.front().filename().string());
  std::error_code unreadable;
  if (std::filesystem::exists(options.out / "record.json", unreadable))
    fail(ErrorKind::usage,
         "--out {}: holds another run's record.json, and no checkpoint to go on from; give another --out",
         out);
}

std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  std::error_code missing;  // no directory: no checkpoints
  for (const auto& entry : std::filesystem::directory_iterator(directory, missing))
    if (update_of(entry.path())) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end(),
            [](const auto& a, const auto& b) { return *update_of(a) > *update_of(b); });
  return paths;
}

}  // namespace paceline::train
