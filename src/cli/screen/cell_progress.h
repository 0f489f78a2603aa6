#pragma once

/// The progress display of a study: on a terminal one bar, elsewhere a line per tenth of the whole (at most
/// every 10 s). In both cases a permanent line is printed for each part (a kind of cells, or the repeats),
/// and for each cell that failed or took more than a minute.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/screen/screen.h"
#include "cli/screen/time_left.h"
#include "measure/record.h"
#include "study/study.h"

namespace paceline::cli {

/// The members are called by the callbacks of a study::Runner (study/study.h).
///
/// Threads  one at a time
class CellProgress {
 public:
  /// `cells` and `screen` must outlive it; `cores` of this host, for the estimate of the time left.
  CellProgress(const std::vector<study::PlannedCell>& cells, int cores, Screen& screen);

  void begin(std::size_t cell, study::Begin how);
  void step(double images_per_s);
  void done(const measure::Record& record);
  /// Of the cells that run only if chosen, those at the indices `places` will run, for the reason `why`.
  void choose(const std::vector<std::size_t>& places, const std::string& why);
  /// Prints the line of the last part, unless no cell began.
  void finish();

 private:
  struct Part {
    std::string name;
    std::size_t all = 0, done = 0, kept = 0, skipped = 0, failed = 0, disturbed = 0;
    bool is_of_trainings = false;
    base::TimePoint began = base::Clock::now();
    double best = 0;        ///< images/s, or an accuracy
    std::string best_text;  ///< "8,557 images/s at 2 x 32"
  };

  [[nodiscard]] bool is_due() const;
  [[nodiscard]] Bar bar() const;
  void show();
  void count(const measure::Record& record);
  void take_best(const measure::Record& record);

  const std::vector<study::PlannedCell>& cells_;
  Screen& screen_;
  TimeLeft left_;
  const base::TimePoint began_ = base::Clock::now();
  std::vector<Part> parts_;  ///< the last is the current one
  std::size_t chosen_ = 0;   ///< chosen cells that have not begun
  std::size_t cell_ = 0;
  study::Begin how_ = study::Begin::anew;
  base::TimePoint cell_began_{};
  std::string rate_;
  base::TimePoint last_shown_ = base::Clock::now();  ///< when a bar or a line was last shown
  double last_share_ = 0;                            ///< fraction of the whole at the last line
};

/// The part that a cell belongs to: its kind, or "repeats" for a spare one (study::PlannedCell).
[[nodiscard]] std::string part_of(const study::PlannedCell& cell);
/// A short name of a cell: "batch 64, repeat 2", "weak 2 x 128, repeat 1", "linear scaling, seed 2".
[[nodiscard]] std::string short_name(const study::PlannedCell& cell);

}  // namespace paceline::cli
