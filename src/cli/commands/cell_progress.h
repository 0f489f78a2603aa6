#pragma once

/// What a person sees while the cells of a study are run: on a terminal one bar, elsewhere a line each tenth
/// of the whole (and no more often than each 10 s); and in both a kept line a part (sweep, scale, converge,
/// repeats), and one for what a person wants kept: what failed, what took minutes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/commands/time_left.h"
#include "cli/screen.h"
#include "measure/record.h"
#include "study/study.h"

namespace paceline::cli {

/// Threads  those of a study::Runner's callbacks: one at a time
class CellProgress {
 public:
  /// Both must outlive it.
  CellProgress(const std::vector<study::PlannedCell>& cells, int cores, Screen& screen);

  void begin(std::size_t cell, study::Begin how);
  void step(double images_per_s);
  void done(const measure::Record& record);
  void choose(const std::vector<std::size_t>& places, const std::string& why);
  /// The line of the last part. Nothing where it was not begun.
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
  std::vector<Part> parts_;  ///< the last is the present one
  std::size_t chosen_ = 0;   ///< cells of the part that is chosen and not begun
  std::size_t cell_ = 0;
  study::Begin how_ = study::Begin::anew;
  base::TimePoint cell_began_{};
  std::string rate_;
  base::TimePoint last_shown_ = base::Clock::now();  ///< a bar or a line
  double last_share_ = 0;                            ///< of the whole, when the last line was written
};

/// The part that a cell belongs to: its kind, or "repeats".
[[nodiscard]] std::string part_of(const study::PlannedCell& cell);
/// What a cell is, for people: "batch 64, repeat 2", "weak 2 x 128, repeat 1", "linear scaling, seed 2".
[[nodiscard]] std::string short_name(const study::PlannedCell& cell);

}  // namespace paceline::cli
