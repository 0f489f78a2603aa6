#pragma once

/// How the model of a checkpoint was trained, as far as evaluating it depends on it: options that nobody has
/// to type again.

#include <filesystem>
#include <string>
#include <vector>

#include "cli/options.h"

namespace paceline::cli {

struct CheckpointOption {
  const Option* option = nullptr;
  std::string text;
  std::string where;  ///< "DIR/record.json: model", for errors about the text
};

/// The options of `evaluate` that the record beside the checkpoint gives (data, model, precision, device,
/// batch, validation split ...); without a record, those that the checkpoint itself does: model and
/// precision.
///
/// Errors   Error(data) when there is no such checkpoint or its header is broken; Error(data) for a record
/// that
///          cannot be read
[[nodiscard]] std::vector<CheckpointOption> options_of_checkpoint(const std::filesystem::path& checkpoint);

}  // namespace paceline::cli
