#pragma once

/// A resumed training and the one before it are one training: its epochs, joined.

#include <optional>
#include <string>
#include <vector>

#include "measure/record.h"
#include "train/checkpoint.h"

namespace paceline::train {

struct Earlier {
  std::vector<measure::EpochRecord> epochs;
  std::string note;  ///< how the run before was lost, and what of it is done again; "" when it was not
};

/// What the resumed training had already behind it, from the record beside its checkpoint.
/// Errors   Error(data) when that record cannot be read
[[nodiscard]] Earlier read_earlier(const std::optional<ResumePoint>& resume);

/// What a resumed training had behind it, then what this run did. The epoch that the resume cut is one again
/// where its first part is known; otherwise it stays a part, as its `steps` say.
[[nodiscard]] std::vector<measure::EpochRecord> joined(std::vector<measure::EpochRecord> earlier,
                                                       std::vector<measure::EpochRecord> here);

}  // namespace paceline::train
