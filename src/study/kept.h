#pragma once

/// Reads what an earlier, stopped run of a study left in its directory: records of complete cells, and
/// unfinished trainings.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/study.h"

namespace paceline::study {

/// directory/records/<id>.json
[[nodiscard]] std::filesystem::path record_path(const Runner& runner, const PlannedCell& cell);

/// The backend that runs the cell, over all processes that take part in it.
[[nodiscard]] train::Backend backend_for(const Runner& runner, const train::Options& options);

/// Where the cell's training keeps checkpoints and record until it is complete:
/// directory/trainings/<training>. Empty for a timed cell (half a window is no measurement), and if nothing
/// is kept.
[[nodiscard]] std::filesystem::path training_directory(const Runner& runner, const PlannedCell& cell);

/// The folder of records that were set aside; `report` ignores it.
inline constexpr const char* kSetAside = "earlier";

/// Complete records by cell id. Records and trainings of these cells from another program, machine or data
/// set are moved to directory/earlier.
class Kept {
 public:
  /// Errors   Error(usage) when a record or training of a cell has other settings: it may be hours of
  ///          somebody's measuring, and is never overwritten
  Kept(const std::vector<PlannedCell>& cells, const Runner& runner);

  /// Moves the record out; later calls return nothing.
  [[nodiscard]] std::optional<measure::Record> take(const std::string& id);

 private:
  std::map<std::string, measure::Record> records_;
};

/// Whether the cell's training can continue from a checkpoint. Prepares its directory: removes a record
/// without a checkpoint, and a checkpoint of a finished training.
[[nodiscard]] bool can_go_on(const Runner& runner, const PlannedCell& cell);

}  // namespace paceline::study
