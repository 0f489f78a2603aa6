#pragma once

/// Which cells to run, in which order, and when to stop. A cell is one configuration that is measured: it is
/// run by train::run and leaves one record. A study that was stopped goes on where it was: a record of the
/// same id and settings that is complete is read back, not run again, and a training goes on from its last
/// checkpoint.

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

/// Cores that every worker of a cell of so many has for itself; 0: there are more workers than cores.
using CoresEach = std::function<int(int workers)>;

/// What is varied. Each list is in the order of the tables; repeats are interleaved (all cells once, then
/// again).
struct Axes {
  std::vector<int> workers{1, 2, 4};
  std::vector<std::int64_t> batches{32, 128, 512};  ///< local for weak and sweep, global for strong
  bool automatic_batches = false;  ///< sweep: multiply by `batch_factor` until memory or data ends
  int batch_factor = 2;
  std::string mode = "weak";  ///< "weak", "strong" or "both"
  int repeats = 3;
  CoresEach cores_each = {};  ///< empty: this process's cores, shared out
};

/// Convergence: one large batch and its remedies, or (where `workers` is not empty) numbers of workers.
struct ConvergeAxes {
  std::int64_t baseline_batch = 128;  ///< global; by workers: what every worker takes a step
  std::int64_t large_batch = 2048;    ///< global
  std::vector<std::string> variants;  ///< empty: all, in the order of `converge_variants`; see remedies.h
  /// What a piece of a variant's name changes that is none of the remedies: "weight-decay 0.0001".
  std::map<std::string, std::function<void(train::Options& options)>> changes = {};
  double warmup_epochs =
      -1;           ///< of the variants with warm-up; -1: a fifth of the training, at most one epoch
  int repeats = 1;  ///< seeds seed, seed + 1, ...
  /// Not empty: instead of the remedies, a training of each number of workers whose global batch grows with
  /// them, with the learning rate of the first and with one scaled linearly.
  std::vector<int> workers = {};
  CoresEach cores_each = {};  ///< empty: this process's cores, shared out
};
[[nodiscard]] std::vector<std::string> converge_variants();

/// How a search is made; see search.h.
struct SearchOptions {
  int seeds = 1;  ///< trainings of each configuration
  bool halving = false;
};

/// How a cell begins: it is run, its training goes on from a checkpoint, its record is read back, or it is
/// run although its record is there, since its weights are needed and gone.
enum class Begin { anew, resumed, kept, again };

/// How cells are run and where their records go.
struct Runner {
  train::Backend backend;
  /// Several processes. This one, the first, leads: it keeps the records, and before each cell it tells the
  /// others, who run it too where it has work for them. Empty: all cells are this process's own, on
  /// `backend`.
  struct Together {
    std::function<train::Backend(const train::Options&)>
        backend;  ///< of the processes that run these options
    std::function<void(int index, bool resumed)> begin;
  };
  std::optional<Together> together = {};
  std::stop_token stop;
  train::Progress progress;
  /// records/<id>.json and, while it lasts, trainings/<id> in it; empty: nothing is kept, nothing is resumed
  std::filesystem::path directory;
  std::string command;                                                               ///< for the records
  std::function<void(int index, int cells, const std::string& id, Begin how)> cell;  ///< before each cell
  std::function<void(const measure::Record&)> done;                                  ///< after each cell
  /// Before some of many planned cells are run: their places in the list, and why they are, in words. What of
  /// their kind is not among them is not run.
  std::function<void(const std::vector<std::size_t>& places, const std::string& why)> chosen = {};
  /// Times the all-reduce alone, of a cell that is_of_collectives(): its record, but for labels and settings.
  std::function<measure::Record(const train::Options&, const train::Backend&, double seconds)> collectives =
      {};
};

/// One configuration to measure.
struct PlannedCell {
  std::string id;    ///< file name of its record
  std::string kind;  ///< "sweep", "scale", "comm", "converge", "search"
  std::string scaling;
  std::string also = {};  ///< of a scaling cell that serves the sweep too: "sweep"
  std::string variant;
  int repeat = 0;
  train::Options options;
  std::string skip;   ///< not empty: not run, and why; its record has status "skipped"
  bool fits = false;  ///< skipped, but by its plan it fits: the largest such batch, of which no more is asked
  std::string training = {};  ///< of a whole training: its folder in directory/trainings; empty: it is timed
  bool keeps_training =
      false;               ///< that folder stays when the cell is complete: another cell goes on from there
  std::string stage = {};  ///< of a search, for people: "rung 2 of 3: epoch 4"
  bool is_spare = false;   ///< run only where it is found to be needed; see settle.h
  double chance = 1;  ///< of a cell that is run only where it is chosen: part of such that are expected to be
  std::string note = {};     ///< not empty: added to the notes of its record
  double collectives_s = 0;  ///< above 0: nothing is trained, the all-reduce alone is timed for about so long

  [[nodiscard]] bool is_of_collectives() const { return collectives_s > 0; }
};

/// What of a list of cells several processes must agree on. Not the size of the largest batch that fits: what
/// memory is free changes between two processes' looks at it.
[[nodiscard]] std::string agreed_on(const std::vector<PlannedCell>& cells);

// The lists of cells: pure functions of what is asked (sweep also asks the plan), so that a study can be
// shown before it is run.
[[nodiscard]] std::vector<PlannedCell> sweep_cells(const train::Options& base, const Axes& axes,
                                                   const train::Backend& backend);
[[nodiscard]] std::vector<PlannedCell> scale_cells(const train::Options& base, const Axes& axes);
/// The all-reduce alone, once for each number of workers that have a core each; nothing for devices, which
/// reduce elsewhere. `quick`: all of it within five seconds.
[[nodiscard]] std::vector<PlannedCell> comm_cells(const train::Options& base, const Axes& axes, bool quick);
[[nodiscard]] std::vector<PlannedCell> converge_cells(const train::Options& base, const ConvergeAxes& axes);

/// The options with which a cell is run now; `command` is for its record.
[[nodiscard]] train::Options as_run(const PlannedCell& cell, const std::string& command);

/// Everything a study measures: sweep, weak and strong scaling, the all-reduce alone, convergence. `quick`
/// takes sizes that end within five minutes on two cores with the default model; otherwise the axes given.
struct StudyOptions {
  bool quick = false;
  Axes sweep, scale;
  ConvergeAxes converge;
  SearchOptions search = {};
  /// Of every cell in several processes, see cli/commands/assign_processes.h.
  std::vector<train::Placement> placements{train::Placement::packed};
  bool with_sweep = true, with_scale = true, with_converge = true;
  bool with_comm = true;  ///< only where there is scaling
};
/// Sets what `quick` means into `base` and `options`; what the user gave explicitly (`given`) stays.
void apply_quick(train::Options& base, StudyOptions& options, const std::vector<measure::Setting>& given);
[[nodiscard]] std::vector<PlannedCell> study_cells(const train::Options& base, const StudyOptions& options,
                                                   const train::Backend& backend);

/// The reason in the record of a cell that a stopped study did not begin; its status is "interrupted".
inline constexpr const char* kNotBegun = "not begun when the study was stopped";

/// Runs the cells in order; returns a record for each, skipped and failed ones included. Neither ends the
/// study: a cell that its options or its plan rule out has status "skipped", one that goes wrong while it
/// runs "failed", each with the sentence. With several processes that is so for what the options and the plan
/// tell, and for what all ranks find alike (base::AgreedError: a loss that is no longer finite); what goes
/// wrong on one of them once a cell has begun ends it for all. Stops early when asked to: of every cell that
/// is then not begun, and not kept from before, it leaves a record that says so (kNotBegun), which a study
/// that goes on replaces; else a report would take the part for the whole. Errors Error(usage) before
/// anything runs when the directory holds complete records of the same cells under other settings: they
/// answer another question and are not overwritten. Records and trainings of the same settings from another
/// program or machine are moved to directory/earlier and done anew.
[[nodiscard]] std::vector<measure::Record> run_cells(const std::vector<PlannedCell>& cells,
                                                     const Runner& runner);

}  // namespace paceline::study
