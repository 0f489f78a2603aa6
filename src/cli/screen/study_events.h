#pragma once

/// Writes the events of a study or a part of one (docs/formats.md).

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/options/settings.h"
#include "cli/screen/run_log.h"
#include "measure/record.h"
#include "study/study.h"
#include "train/given/progress.h"

namespace paceline::cli {

/// Threads  the command's thread; progress() is called by rank 0's thread meanwhile
class StudyEvents {
 public:
  /// All three must outlive it.
  StudyEvents(RunLog& log, const Settings& settings, const std::vector<study::PlannedCell>& cells);

  /// Writes "cell_begun", and "start" before the first one, so that a study that is refused leaves no event.
  /// Called again, with done(), for a cell that is run again.
  void begin(std::size_t index, study::Begin how);
  /// Writes "cell_done", and with the last cell of a kind "part_done".
  void done(const measure::Record& record);
  /// Writes "end" if "start" was written; `records` are the result of the study.
  void end(const std::vector<measure::Record>& records);

  /// Writes a training's own events with the cell's id, except its start and end, which are the cell's.
  [[nodiscard]] std::function<void(const measure::Event&)> progress();

 private:
  /// Planned cells and the spares that were run.
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
