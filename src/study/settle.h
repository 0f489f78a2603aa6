#pragma once

/// A study settles its figures: what the answers rest on is measured long enough to know whether other
/// programs were at work, and what they disturbed is measured again.
///
/// After all its cells a study repeats
///   - the three fastest set-ups that may be advised (complete, a core for each thread, not disturbed), where
///     most of their time was measured in windows too short to see other programs,
///   - then every timed set-up of which a repeat was found disturbed,
/// each at most once, and at most kMostRepeats of them all. A repeat may change which are the fastest: it is
/// looked again until there is nothing left to repeat.
///
/// Several processes go by one list of cells on which they agree before the first is run. So that list holds
/// a spare for each timed set-up, and the first process runs those that it finds to be needed. What is needed
/// is a pure function of the records: a study that goes on decides as it would have done, and keeps the
/// spares that it has measured. A spare that is not needed leaves nothing behind.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "measure/record.h"
#include "study/study.h"

namespace paceline::study {

inline constexpr std::size_t kFastest = 3;
inline constexpr std::size_t kMostRepeats = 8;
/// A spare's window. Three repeats (the default) too short to know of others last less than 3 s together, so
/// that most of the time is known after it.
inline constexpr double kSpareSeconds = 3.2;

/// A spare for each set-up that `cells` time, in their order. Of windows by steps it has a longer one, by
/// time; a whole epoch stays one.
[[nodiscard]] std::vector<PlannedCell> spare_cells(const std::vector<PlannedCell>& cells);

struct Repeat {
  std::size_t place = 0;  ///< of the spare in the list of cells
  std::string why;        ///< "other programs kept 0.75 of 2 cores busy"
  bool is_disturbed = false;
};
struct Repeats {
  std::vector<Repeat> chosen;  ///< the most useful first
  std::size_t left_out = 0;    ///< further set-ups were disturbed, and the bound is met
};
/// What is to be repeated after `records`, those of some of `cells`. Cost: linear in the records' steps.
[[nodiscard]] Repeats choose_repeats(const std::vector<PlannedCell>& cells,
                                     std::span<const measure::Record> records);

/// Runs all that is no spare as run_cells() does, then the spares that are needed; the records of all that
/// was run, and of spares that an earlier run of the study has measured.
[[nodiscard]] std::vector<measure::Record> run_settled(const std::vector<PlannedCell>& cells,
                                                       const Runner& runner);

}  // namespace paceline::study
