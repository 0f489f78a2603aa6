#pragma once

/// Which cells to run, in which order, and when to stop. A cell is one configuration to measure; train::run
/// runs it and writes one record. A stopped study can be continued: complete records with the same id and
/// settings are read and not run again, and a training continues from its last checkpoint.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "measure/record.h"
#include "measure/setting.h"
#include "train/backend.h"
#include "train/options.h"
#include "train/progress.h"

namespace paceline::study {

/// Returns how many cores each of a cell's `workers` has; 0: there are more workers than cores.
using CoresEach = std::function<int(int workers)>;

/// What is varied. Lists are in the order of the tables; repeats are interleaved (all cells once, then
/// again).
struct Axes {
  std::vector<int> workers{1, 2, 4};
  std::vector<std::int64_t> batches{32, 128, 512};  ///< local for weak and sweep, global for strong
  bool automatic_batches = false;  ///< sweep: multiply by `batch_factor` until memory or data ends
  int batch_factor = 2;
  std::string mode = "weak";  ///< "weak", "strong" or "both"
  int repeats = 3;
  CoresEach cores_each = {};  ///< empty: this process's cores are divided
};

/// Convergence of one large batch and its remedies, or (if `workers` is not empty) of numbers of workers.
struct ConvergeAxes {
  std::int64_t baseline_batch = 128;  ///< global; with `workers`: the local batch
  std::int64_t large_batch = 2048;    ///< global
  std::vector<std::string> variants;  ///< empty: all, in the order of `converge_variants`; see remedies.h
  /// Changes for pieces of a variant's name that are no remedies: "weight-decay 0.0001".
  std::map<std::string, std::function<void(train::Options& options)>> changes = {};
  double warmup_epochs =
      -1;           ///< of the variants with warm-up; -1: a fifth of the training, at most one epoch
  int repeats = 1;  ///< seeds seed, seed + 1, ...
  /// Not empty: instead of the remedies, a training for each number of workers, whose global batch grows with
  /// them, with the learning rate of the first and with a linearly scaled one.
  std::vector<int> workers = {};
  CoresEach cores_each = {};  ///< empty: this process's cores are divided
};
[[nodiscard]] std::vector<std::string> converge_variants();

/// Options of a search; see search.h.
struct SearchOptions {
  int seeds = 1;  ///< trainings of each configuration
  bool halving = false;
};

/// How a cell begins: it is run; its training continues from a checkpoint; its record is read; or it is run
/// although its record exists, since its weights are needed and were removed.
enum class Begin { anew, resumed, kept, again };

/// How cells are run and where their records are written.
struct Runner {
  train::Backend backend;
  /// For several processes. This process, the first one, keeps the records; before each cell it tells the
  /// others, which run the cell too if they take part in it. Empty: this process runs all cells, on
  /// `backend`.
  struct Together {
    std::function<train::Backend(const train::Options&)>
        backend;  ///< of the processes that run these options
    std::function<void(int index, bool resumed)> begin;
  };
  std::optional<Together> together = {};
  std::stop_token stop;
  train::Progress progress;
  /// For records/<id>.json and unfinished trainings/<id>; empty: nothing is kept or resumed
  std::filesystem::path directory;
  std::string command;                                                               ///< for the records
  std::function<void(int index, int cells, const std::string& id, Begin how)> cell;  ///< before each cell
  std::function<void(const measure::Record&)> done;                                  ///< after each cell
  /// Called before some of many planned cells are run, with their indices in the list and the reason in
  /// words. The other cells of their kind are not run.
  std::function<void(const std::vector<std::size_t>& places, const std::string& why)> chosen = {};
  /// Times the all-reduce alone for a cell that is_of_collectives(). The caller adds labels and settings to
  /// the record.
  std::function<measure::Record(const train::Options&, const train::Backend&, double seconds)> collectives =
      {};
};

/// One configuration to measure.
struct PlannedCell {
  std::string id;    ///< file name of its record
  std::string kind;  ///< "sweep", "scale", "comm", "converge", "search"
  std::string scaling;
  std::string also = {};  ///< "sweep" for a scaling cell that belongs to the sweep too
  std::string variant;
  int repeat = 0;
  train::Options options;
  std::string skip;           ///< if not empty, the reason why it is not run; its record has status "skipped"
  bool fits = false;          ///< skipped, but its plan fits the memory: the largest such batch
  std::string training = {};  ///< of a whole training: its folder in directory/trainings; empty: it is timed
  bool keeps_training =
      false;               ///< keep that folder when the cell is complete, since another cell continues there
  std::string stage = {};  ///< of a search, for the screen: "rung 2 of 3: epoch 4"
  bool is_spare = false;   ///< run only if it is needed; see settle.h
  double chance = 1;  ///< of a cell that is run only if chosen: the expected part of such cells that are run
  std::string note = {};     ///< added to the notes of its record if not empty
  double collectives_s = 0;  ///< > 0: nothing is trained; the all-reduce alone is timed for about this long

  [[nodiscard]] bool is_of_collectives() const { return collectives_s > 0; }
};

/// The part of a list of cells on which several processes must agree. It leaves out the size of the largest
/// batch that fits, since free memory changes between two processes' looks at it.
[[nodiscard]] std::string agreed_on(const std::vector<PlannedCell>& cells);

// The lists of cells: pure functions of the options (sweep also of the memory plan), so that a study can be
// shown before it is run.
[[nodiscard]] std::vector<PlannedCell> sweep_cells(const train::Options& base, const Axes& axes,
                                                   const train::Backend& backend);
[[nodiscard]] std::vector<PlannedCell> scale_cells(const train::Options& base, const Axes& axes);
/// The all-reduce alone, once for each number of workers that have a core each; nothing for devices, which
/// reduce elsewhere. `quick`: all of it within five seconds.
[[nodiscard]] std::vector<PlannedCell> comm_cells(const train::Options& base, const Axes& axes, bool quick);
[[nodiscard]] std::vector<PlannedCell> converge_cells(const train::Options& base, const ConvergeAxes& axes);

/// The options with which a cell is run now; `command` goes into its record.
[[nodiscard]] train::Options as_run(const PlannedCell& cell, const std::string& command);

/// What a study measures: sweep, weak and strong scaling, the all-reduce alone, convergence. `quick` chooses
/// sizes that take at most five minutes on two cores with the default model; otherwise the given axes are
/// used.
struct StudyOptions {
  bool quick = false;
  Axes sweep, scale;
  ConvergeAxes converge;
  SearchOptions search = {};
  /// Of every cell in several processes; see cli/commands/assign_processes.h.
  std::vector<train::Placement> placements{train::Placement::packed};
  bool with_sweep = true, with_scale = true, with_converge = true;
  bool with_comm = true;  ///< only if there is scaling
};
/// Applies `quick` to `base` and `options`; settings that the user gave explicitly (`given`) stay.
void apply_quick(train::Options& base, StudyOptions& options, const std::vector<measure::Setting>& given);
[[nodiscard]] std::vector<PlannedCell> study_cells(const train::Options& base, const StudyOptions& options,
                                                   const train::Backend& backend);

/// The reason in the record of a cell that a stopped study has not begun; its status is "interrupted".
inline constexpr const char* kNotBegun = "not begun when the study was stopped";

/// Runs the cells in order; returns a record for each, including skipped and failed ones, which do not end
/// the study. A cell that its options or its plan rule out has status "skipped", one that fails while it runs
/// "failed", each with the reason. With several processes a failure that not all ranks find alike
/// (base::AgreedError, as for a loss that is not finite) ends the study for all.
///
/// If asked to stop, it leaves a record (kNotBegun) for every cell that was not begun and not kept from
/// before, so that a report does not take the part for the whole. A continued study replaces these records.
///
/// Records and trainings with the same settings from another program or machine are moved to
/// directory/earlier and done again.
///
/// Errors   Error(usage), before anything runs, when the directory holds complete records of the same cells
///          with other settings: they are not overwritten
[[nodiscard]] std::vector<measure::Record> run_cells(const std::vector<PlannedCell>& cells,
                                                     const Runner& runner);

}  // namespace paceline::study
