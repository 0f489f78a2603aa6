#pragma once

/// The record that a run left beside its checkpoints, as far as it can be used: a resume needs the checkpoint
/// alone, so that a record that is damaged, or that somebody made up, never stands in its way.

#include <filesystem>
#include <optional>
#include <string>

#include "measure/record.h"

namespace paceline::train {

struct KeptRecord {
  std::optional<measure::Record> record;  ///< none: there is no file, or it cannot be used
  std::string damage;                     ///< why it cannot; "" where there is none or it can
};

/// Reads a record and checks what a resume computes with: epochs one after the other, counts that are
/// neither negative nor absurd. Never throws for what is in the file.
[[nodiscard]] KeptRecord read_kept_record(const std::filesystem::path& path);

}  // namespace paceline::train
