#pragma once

/// The progress display of a study: on a terminal one bar, elsewhere a line per tenth of the whole (at most
/// every 10 s). In both cases a permanent line is printed for each part (a kind of cells, or the repeats),
/// and for each cell that failed or took more than a minute.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/screen/remaining_time.h"
#include "cli/screen/screen.h"
#include "measure/record.h"
#include "study/study.h"
#include "train/given/job.h"

namespace paceline::cli {

/// Threads  the command's thread; progress() is called by rank 0's thread meanwhile
class StudyEvents {
 public:
  /// `start`: the study's first event, which gets the number of cells. Log and cells must outlive this.
  StudyEvents(RunLog& log, measure::Event start, const std::vector<study::PlannedCell>& cells);

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

  RunLog& log_;
  measure::Event start_;
  const std::vector<study::PlannedCell>& cells_;
  std::map<std::string, Part> parts_;  ///< by kind
  std::map<std::string, bool> seen_;   ///< ids of cells that are done
  bool has_begun_ = false;             ///< `start` is written
  std::size_t current_ = 0;
  base::TimePoint began_{}, cell_began_{};
};

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
    std::size_t all = 0, done = 0, kept = 0, skipped = 0, failed = 0, disturbed = 0, still = 0;
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
  RemainingTime left_;
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

}  // namespace paceline::cli
