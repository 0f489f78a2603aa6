#pragma once

/// About how long the rest of a list of cells takes, from those that were run so far.
///
/// Cells differ by a factor of a hundred, so the estimate goes by the seconds that a sample took, and by what
/// ends a cell: its steps, or the time of its window.

#include <string>
#include <vector>

#include "base/clock.h"
#include "measure/record.h"
#include "study/study.h"

namespace paceline::cli {

class TimeLeft {
 public:
  /// `cells` must outlive it.
  explicit TimeLeft(const std::vector<study::PlannedCell>& cells) : cells_(cells) {}

  void begin(study::Begin how) { running_ = how == study::Begin::anew, began_ = base::Clock::now(); }
  void end(const study::PlannedCell& cell, const measure::Record& record) {
    note(cell, record, base::seconds_since(began_));
  }
  /// The cell took so long; one that was not run from its beginning tells nothing.
  void note(const study::PlannedCell& cell, const measure::Record& record, double seconds);

  /// Of the cells from `next` on; 0 before the first that was run.
  [[nodiscard]] double seconds(std::size_t next) const;
  /// ", about 12 min left"; "" before the first cell that was run.
  [[nodiscard]] std::string text(std::size_t next) const;

 private:
  [[nodiscard]] double seconds_of(const study::PlannedCell& cell) const;

  const std::vector<study::PlannedCell>& cells_;
  bool running_ = true;
  base::TimePoint began_{};
  double seconds_ = 0, samples_ = 0;  ///< of the cells that were run
  double epoch_samples_ = 0;
};

}  // namespace paceline::cli
