#pragma once

/// Reads the record beside a run's checkpoints as far as it can be used. A resume needs only the checkpoint,
/// so a damaged or forged record must never prevent it.

#include <filesystem>
#include <optional>
#include <string>

#include "measure/record.h"

namespace paceline::train {

struct KeptRecord {
  std::optional<measure::Record> record;  ///< none: there is no file, or it cannot be used
  std::string damage;                     ///< why it cannot be used; "" otherwise
};

/// Reads a record and checks what a resume uses: epochs in sequence, counts that are neither negative nor
/// absurd. Never throws for the contents of the file.
[[nodiscard]] KeptRecord read_kept_record(const std::filesystem::path& path);

}  // namespace paceline::train
