#pragma once

/// The events of a list of cells: a study, or a part of one (docs/formats.md).

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/run_log.h"
#include "cli/settings.h"
#include "measure/record.h"
#include "study/study.h"
#include "train/progress.h"

namespace paceline::cli {

/// Threads  one, the command's own; progress() is for rank 0's thread meanwhile
class StudyEvents {
 public:
  /// All three must outlive it.
  StudyEvents(RunLog& log, const Settings& settings, const std::vector<study::PlannedCell>& cells);

  /// Writes "cell_begun", and "start" before the first: a study that is refused leaves nothing. A study that
  /// runs a cell again calls it, and done(), again.
  void begin(std::size_t index, study::Begin how);
  /// Writes "cell_done", and with the last cell of a kind "part_done".
  void done(const measure::Record& record);
  /// Writes "end" where it has begun; `records` as run() gave them.
  void end(const std::vector<measure::Record>& records);

  /// A training's own events, with the cell's id; its begin and end are the cell's.
  [[nodiscard]] std::function<void(const measure::Event&)> progress();

 private:
  /// Those that were planned, and the spares that were run beside them.
  [[nodiscard]] std::int64_t number_of_cells() const;

  struct Part {
    std::size_t cells = 0, done = 0, complete = 0;
    double seconds = 0, best = 0;
    std::string best_cell;
  };

  void start();

  RunLog& log_;
  const Settings& settings_;
  const std::vector<study::PlannedCell>& cells_;
  std::map<std::string, Part> parts_;  ///< by kind
  std::map<std::string, bool> seen_;   ///< ids of cells that are done
  bool has_begun_ = false;
  std::size_t current_ = 0;
  base::TimePoint began_{}, cell_began_{};
};

}  // namespace paceline::cli
