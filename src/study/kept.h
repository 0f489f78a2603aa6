#pragma once

/// What an earlier, stopped study left in its directory: records of cells that are complete, and the
/// beginnings of trainings that are not.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/study.h"

namespace paceline::study {

/// directory/records/<id>.json
[[nodiscard]] std::filesystem::path record_path(const Runner& runner, const PlannedCell& cell);

/// The backend that runs the cell: of all processes that have work in it.
[[nodiscard]] train::Backend backend_for(const Runner& runner, const train::Options& options);

/// Where the cell's training keeps checkpoints and record until it is complete:
/// directory/trainings/<training>. Empty for a cell that is timed (half a window is no measurement) and where
/// nothing is kept.
[[nodiscard]] std::filesystem::path training_directory(const Runner& runner, const PlannedCell& cell);

/// The folder of what was set aside; `report` passes over it.
inline constexpr const char* kSetAside = "earlier";

/// Complete records by the cells' ids. What another program, machine or data set left under these cells'
/// names is moved to directory/earlier, records and trainings.
class Kept {
 public:
  /// Errors   Error(usage) when a record or a training was made with other settings: it answers another
  ///          question, may be hours of somebody's measuring, and is never overwritten
  Kept(const std::vector<PlannedCell>& cells, const Runner& runner);

  /// The record, once; it is moved out.
  [[nodiscard]] std::optional<measure::Record> take(const std::string& id);

 private:
  std::map<std::string, measure::Record> records_;
};

/// Whether the cell's training was begun and can go on from a checkpoint. Leaves its directory so that it
/// can: a record without a checkpoint, and a checkpoint after which nothing is left to do, are removed.
[[nodiscard]] bool can_go_on(const Runner& runner, const PlannedCell& cell);

}  // namespace paceline::study
