#include "cli/options/checkpoint_options.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>

#include "graph/zoo.h"
#include "measure/record.h"
#include "train/checkpoint/checkpoint.h"

namespace paceline::cli {
namespace {

/// The options on which a sample's logits and loss depend, to the last bit; the number of workers is not
/// among them.
constexpr std::array kTaken{
    "model",           "data",  "device", "validation-split",       "bad-images",
    "label-smoothing", "shard", "bn",     "test-time-augmentation", "measured-kernels"};

}  // namespace

std::vector<CheckpointOption> options_of_checkpoint(const std::filesystem::path& checkpoint) {
  const auto info = train::read_checkpoint_info(checkpoint);
  std::vector<CheckpointOption> given;
  const auto take = [&](const std::string& key, const std::string& text, const std::string& where) {
    if (const auto* option = find_option(key, kEvaluate); option != nullptr && !text.empty())
      given.push_back({option, text, where + ": " + key});
  };
  const auto path = info.path.parent_path() / "record.json";
  if (!std::filesystem::exists(path)) {
    const auto known = graph::model_names();
    if (std::find(known.begin(), known.end(), info.model) != known.end())
      take("model", info.model, info.path.string());
    take("precision", info.precision, info.path.string());
    return given;
  }
  const auto record = measure::read_record(path);
  for (const char* key : kTaken) {
    const auto found = record.settings.find(key);
    const bool is_off =
        found != record.settings.end() && found->second == "0";  // as --shard, which takes none
    if (found != record.settings.end() && !is_off) take(key, found->second, path.string());
  }
  take("precision", record.precision, path.string());
  take("local-batch", std::to_string(record.local_batch), path.string());
  return given;
}

}  // namespace paceline::cli
