#pragma once

/// Finds the options with which the model of a checkpoint was trained, as far as its evaluation depends on
/// them, so that users need not type them again.

#include <filesystem>
#include <string>
#include <vector>

#include "cli/options/options.h"

namespace paceline::cli {

struct CheckpointOption {
  const Option* option = nullptr;
  std::string text;
  std::string where;  ///< "DIR/record.json: model", for errors about the text
};

/// The options of `evaluate` from the record beside the checkpoint (data, model, precision, device, batch,
/// validation split ...); without a record those in the checkpoint itself: model and precision.
///
/// Errors   Error(data): there is no such checkpoint, its header is broken, or the record cannot be read
[[nodiscard]] std::vector<CheckpointOption> options_of_checkpoint(const std::filesystem::path& checkpoint);

}  // namespace paceline::cli
