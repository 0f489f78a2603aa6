#pragma once

/// Decides which cells of a study are measured again, and runs them: cells that other programs disturbed, and
/// the best cells if they were measured too briefly to tell.
///
/// After all its cells a study repeats
///   - the three fastest set-ups that may be recommended (complete, a core for each thread, not disturbed),
///     if most of their time was measured in windows too short to detect other programs,
///   - then every timed set-up with a disturbed repeat, each at most once, and at most kMostRepeats in all.
/// A repeat may change which set-ups are the fastest, so this is checked again until there is nothing left to
/// repeat.
///
/// Several processes agree on one list of cells before the first is run. So that list contains a spare for
/// each timed set-up, and the first process runs the spares that are needed. Which ones are needed is a pure
/// function of the records, so a continued study decides alike and keeps the spares that it has measured. An
/// unused spare leaves nothing behind.

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/record.h"
#include "study/study.h"

namespace paceline::study {

// Reads what an earlier, stopped run of a study left in its directory: records of complete cells, and
// unfinished trainings.

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

inline constexpr std::size_t kFastest = 3;
inline constexpr std::size_t kMostRepeats = 8;
/// A spare's window. With it most of the time of a set-up is known: three repeats (the default) too short to
/// detect other programs last less than 3 s together.
inline constexpr double kSpareSeconds = 3.2;

/// A spare for each set-up that `cells` time, in their order. Its window is by time and longer, unless the
/// window is a whole epoch.
[[nodiscard]] std::vector<PlannedCell> spare_cells(const std::vector<PlannedCell>& cells);

struct Repeat {
  std::size_t place = 0;  ///< index of the spare in the list of cells
  std::string why;        ///< "other programs kept 0.75 of 2 cores busy"
  bool is_disturbed = false;
};
struct Repeats {
  std::vector<Repeat> chosen;  ///< the most useful first
  std::size_t left_out = 0;    ///< further disturbed set-ups, beyond the limit
};
/// What is to be repeated, given `records` of some of `cells`.
///
/// Cost     linear in the records' steps
[[nodiscard]] Repeats choose_repeats(const std::vector<PlannedCell>& cells,
                                     std::span<const measure::Record> records);

/// Runs all cells but spares as run_cells() does, then the spares that are needed. Returns the records of
/// everything that was run, and of spares that an earlier run of the study has measured.
[[nodiscard]] std::vector<measure::Record> run_settled(const std::vector<PlannedCell>& cells,
                                                       const Runner& runner);

}  // namespace paceline::study
