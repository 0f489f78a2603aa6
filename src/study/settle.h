#pragma once

/// Decides which cells of a study are measured again, and runs them: those that decide its answer, where
/// other programs worked, or may have worked, while they were measured.
///
/// After all its cells a study looks at the choice that the report will make (analysis/compare/
/// operating_point.h), and repeats
///   - the best cell,
///   - the cells that may be faster than it without other programs (Choice::unsettled), the likeliest first,
///   - the runs of one worker that the best is compared with,
/// if they are not certainly undisturbed, or if their intervals leave the choice open: once each, in turn, so
/// that they meet the same load; then it looks again. A cell is repeated kSparesEach times at most, a study
/// repeats Runner::most_repeats cells.
///
/// Several processes agree on one list of cells before the first is run. So that list contains spares for
/// each timed set-up, and the first process runs the spares that are needed. Which ones are needed is a pure
/// function of the records, so a continued study decides alike and keeps the spares that it has measured. An
/// unused spare leaves nothing behind.

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "measure/disturbance.h"
#include "measure/record.h"
#include "study/study.h"

namespace paceline::study {

// Reads what an earlier, stopped run of a study left in its directory: records of complete cells, and
// unfinished trainings.

/// directory/records/<id>.json
[[nodiscard]] std::filesystem::path record_path(const Runner& runner, const std::string& id);

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
///
/// Errors   Error(usage) when a record or training of a cell has other settings: it may be hours of
///          somebody's measuring, and is never overwritten
[[nodiscard]] std::map<std::string, measure::Record> kept_records(const std::vector<PlannedCell>& cells,
                                                                  const Runner& runner);

/// Whether the cell's training can continue from a checkpoint. Prepares its directory: removes a record
/// without a checkpoint, and a checkpoint of a finished training.
[[nodiscard]] bool can_go_on(const Runner& runner, const PlannedCell& cell);

inline constexpr int kSparesEach = 2;
/// A spare's window: long enough that most of the time of a set-up is known, even if its other windows were
/// too short to see other programs.
inline constexpr double kSpareSeconds = 1.6;

/// kSparesEach spares for each set-up that `cells` time: the first of all set-ups, in their order, then the
/// second ones. Their windows are by time and longer, unless the window is a whole epoch.
[[nodiscard]] std::vector<PlannedCell> spare_cells(const std::vector<PlannedCell>& cells);

/// Refuses a directory whose records of these cells were measured with other settings. Run by a study, and by
/// its plan.
///
/// Errors   Error(usage): the record, the setting and both values
void require_own_records(const std::vector<PlannedCell>& cells, const std::filesystem::path& directory);

struct Repeat {
  std::size_t place = 0;  ///< index of the spare in the list of cells
  std::string why;        ///< "other programs kept 0.75 of 2 cores busy", "too short to see other programs"
  measure::Disturbance was = measure::Disturbance::maybe;
  bool stood_still = false;  ///< because of a repeat in which the run stood still
};
struct Repeats {
  std::vector<Repeat> chosen;  ///< the most useful first
  std::size_t left_out = 0;    ///< further set-ups that would help, beyond the limits
};
/// What is to be repeated, given `records` of some of `cells`.
///
/// Cost     linear in the records' steps
[[nodiscard]] Repeats choose_repeats(const std::vector<PlannedCell>& cells,
                                     std::span<const measure::Record> records,
                                     std::size_t most_repeats = kMostRepeats);

/// Runs all cells but spares as run_cells() does, then the spares that are needed. Returns the records of
/// everything that was run, and of spares that an earlier run of the study has measured.
[[nodiscard]] std::vector<measure::Record> run_settled(const std::vector<PlannedCell>& cells,
                                                       const Runner& runner);

}  // namespace paceline::study
