#pragma once

/// Lists and runs the cells of a study. A cell is one configuration to measure; train::run() runs it and
/// writes one record. A stopped study can be continued: complete records with the same id and settings are
/// read instead of run again, and a training continues from its last checkpoint.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "measure/record.h"
#include "measure/setting.h"
#include "train/given/backend.h"
#include "train/given/job.h"
#include "train/given/options.h"

namespace paceline::study {

/// Returns how many cores each of a cell's `workers` has; 0: there are more workers than cores.
using CoresEach = std::function<int(int workers)>;
/// The same; without `each` this process's cores are divided.
[[nodiscard]] int cores_of_each(const CoresEach& each, int workers);

/// What is varied. Lists are in the order in which tables show them; repeats are interleaved (all cells once,
/// then again).
struct Axes {
  std::vector<int> workers{1, 2, 4};
  std::vector<std::int64_t> batches{32, 128, 512};  ///< local for weak and sweep, global for strong
  bool automatic_batches =
      false;  ///< sweep: multiply by `batch_factor` until memory or data ends, and beyond memory a little
  int batch_factor = 2;
  std::string mode = "weak";  ///< of scaling: "weak", "strong" or "both"
  int repeats = 3;
  CoresEach cores_each = {};  ///< empty: this process's cores are divided
};

/// Trainings to compare: one large batch without and with remedies (linear scaling, warm-up ...; below),
/// or (if `workers` is not empty) several numbers of workers.
struct ConvergeAxes {
  std::int64_t baseline_batch = 128;  ///< global; with `workers`: the local batch
  std::int64_t large_batch = 2048;    ///< global
  std::vector<std::string> variants;  ///< empty: all, in the order of `converge_variants`; see below
  /// A variant's name is a list of pieces. For each piece that is not a remedy, such as "weight-decay
  /// 0.0001", the change that it makes to the options.
  std::map<std::string, std::function<void(train::Options& options)>> changes = {};
  double warmup_epochs =
      -1;           ///< of the variants with warm-up; -1: a fifth of the training, at most one epoch
  int repeats = 1;  ///< with seeds --seed, --seed + 1, ...
  /// Not empty: instead of the remedies, two trainings for each number of workers, whose global batch grows
  /// with it: one with the learning rate of the first number, one with a linearly scaled rate.
  std::vector<int> workers = {};
  CoresEach cores_each = {};  ///< empty: this process's cores are divided
  /// Instead of the remedies, trainings of the baseline's batch in several orders of the images: global, and
  /// windows of 1, 8 and 64 shards, as far as there are more: `shards`, which count_shards() sets.
  bool shuffle = false;
  std::int64_t shards = 0;
  /// Not empty: instead of the remedies, trainings of each of these global batches at `rates` learning rates,
  /// each until the options' target.
  std::vector<std::int64_t> batches = {};
  int rates = 4;
};
[[nodiscard]] std::vector<std::string> converge_variants();
/// Sets axes.shards where axes.shuffle needs them.
///
/// Errors   Error(usage): the data are in fewer than two shards; as train::inspect()
void count_shards(const train::Options& base, ConvergeAxes& axes, const train::Backend& backend);

/// Options of a search; see search.h.
struct SearchOptions {
  int seeds = 1;  ///< trainings of each configuration
  bool halving = false;
};

/// The most cells that a study measures again; see settle.h.
inline constexpr std::size_t kMostRepeats = 10;

/// How a cell begins.
enum class Begin {
  anew,     ///< it runs from its start
  resumed,  ///< its training continues from a checkpoint
  kept,     ///< its record is read, and nothing runs
  again,    ///< it runs although its record exists, because its weights are needed and were removed
};

/// How cells are run and where their records are written.
struct Runner {
  train::Backend backend;
  /// For several processes. This process, the first one, keeps the records. Before each cell it calls
  /// `begin`, which tells the others; those that take part in the cell run it too. nullopt: this process
  /// alone runs all cells, on `backend`.
  struct Together {
    std::function<train::Backend(const train::Options&)>
        backend;  ///< joins the processes that take part in a cell with these options
    std::function<void(int index, bool resumed)> begin;
  };
  std::optional<Together> together = {};
  std::stop_token stop;
  train::Progress progress;
  /// Holds records/<id>.json, and trainings/<id> while they are unfinished; empty: nothing is kept or
  /// resumed.
  std::filesystem::path directory;
  std::string command;    ///< for the records
  std::string note = {};  ///< added to the notes of each record that is made; empty: none
  std::function<void(int index, int cells, const std::string& id, Begin how)> cell;  ///< before each cell
  std::function<void(const measure::Record&)> done;                                  ///< after each cell
  /// Called after a cell that a process of the run was asked to end, not necessarily this one: requests
  /// `stop`.
  std::function<void()> interrupted = {};
  /// Called when some of the cells that run only if chosen (spare repeats, later rungs of a search) were
  /// chosen, before they run: their indices in the list, and the reason in words. The others of the same
  /// choice do not run.
  std::function<void(const std::vector<std::size_t>& places, const std::string& why)> chosen = {};
  std::size_t most_repeats = kMostRepeats;
  /// Called before each spare repeat. May wait for a moment in which other programs do not work.
  std::function<void()> before_repeat = {};
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
  std::string skip;  ///< if not empty, the reason why it is not run; its record has status "skipped"
  /// Marks the largest batch whose memory plan fits; the cell is skipped because it was not requested.
  bool fits = false;
  /// For a whole training: its folder in Runner::directory/trainings. Empty: the cell is a timed window.
  std::string training = {};
  bool keeps_training =
      false;               ///< keep that folder when the cell is complete, since another cell continues there
  std::string stage = {};  ///< of a search, for the screen: "rung 2 of 3: epoch 4"
  bool is_spare = false;   ///< run only if it is needed; see settle.h
  double chance = 1;  ///< the probability that it runs, for the time left: below 1 if it runs only if chosen
  std::string note = {};     ///< added to the notes of its record if not empty
  double collectives_s = 0;  ///< > 0: nothing is trained; the all-reduce alone is timed for about this long

  [[nodiscard]] bool is_of_collectives() const { return collectives_s > 0; }
  /// Of its options, which give one of the two.
  [[nodiscard]] std::int64_t local_batch() const {
    return options.local_batch > 0 ? options.local_batch
                                   : options.global_batch / std::max(1, options.workers);
  }
  [[nodiscard]] std::int64_t global_batch() const {
    return options.global_batch > 0 ? options.global_batch : options.local_batch * options.workers;
  }
};

/// What several processes must agree on in a list of cells, as text. It leaves out the size of the largest
/// batch that fits, since each process looks at the free memory at another moment.
[[nodiscard]] std::string agreed_on(const std::vector<PlannedCell>& cells);

// The lists of cells: pure functions of the options (sweep also of the memory plan), so that a study can be
// shown before it is run.
[[nodiscard]] std::vector<PlannedCell> sweep_cells(const train::Options& base, const Axes& axes,
                                                   const train::Backend& backend);
[[nodiscard]] std::vector<PlannedCell> scale_cells(const train::Options& base, const Axes& axes);
/// The all-reduce alone, once for each number of workers that have a core each; no cells on GPUs, whose
/// all-reduce does not run on the host. `quick`: all cells together take five seconds.
[[nodiscard]] std::vector<PlannedCell> comm_cells(const train::Options& base, const Axes& axes, bool quick);
[[nodiscard]] std::vector<PlannedCell> converge_cells(const train::Options& base, const ConvergeAxes& axes);

/// `options` with the smallest batch that they allow, to look at model and data.
[[nodiscard]] train::Options with_smallest_batch(train::Options options);

/// `name` as part of a file name: what is neither letter, digit nor in `kept` becomes one dash.
[[nodiscard]] std::string file_part(std::string_view name, std::string_view kept = {});

/// The options of `cell` with `command`, the command line of this run, for its record.
[[nodiscard]] train::Options as_run(const PlannedCell& cell, const std::string& command);

/// What a study measures: sweep, weak and strong scaling, the all-reduce alone, convergence. With `quick`,
/// axes that the user did not set get sizes that together take a minute and a half on two quiet cores with
/// the default model.
struct StudyOptions {
  bool quick = false;
  Axes sweep, scale;
  ConvergeAxes converge;
  SearchOptions search = {};
  /// How a cell with several processes is placed on the nodes: one cell for each placement. See
  /// cli/commands/assign_processes.h.
  std::vector<train::Placement> placements{train::Placement::packed};
  bool with_sweep = true, with_scale = true, with_converge = true;
  bool with_comm = true;  ///< has no effect without with_scale
  std::size_t most_repeats = kMostRepeats;
};
/// Applies `quick` to `base` and `options`; settings that the user gave explicitly (`given`) stay.
void apply_quick(train::Options& base, StudyOptions& options, const std::vector<measure::Setting>& given);
[[nodiscard]] std::vector<PlannedCell> study_cells(const train::Options& base, const StudyOptions& options,
                                                   const train::Backend& backend);

/// The reason in the record of a cell that a stopped study has not begun; its status is "interrupted".
inline constexpr const char* kNotBegun = "not begun when the study was stopped";

/// Runs the cells in order; returns a record for each, including skipped and failed ones, which do not end
/// the study. A cell that its options or its plan rule out has status "skipped", one that fails while it runs
/// "failed", each with the reason. With several processes the study goes on only after a failure that all
/// ranks found at the same step (base::AgreedError, such as a loss that is not finite); any other failure
/// ends it for all.
///
/// If asked to stop, it writes a record with the reason kNotBegun for every cell without a record, so that a
/// report can tell a part of a study from a whole one. A continued study replaces these records.
///
/// Records and trainings with the same settings that another build of the program or another machine made are
/// moved to directory/earlier, and their cells run again.
///
/// Errors   Error(usage), before anything runs, when the directory holds complete records of the same cells
///          with other settings: they are not overwritten
[[nodiscard]] std::vector<measure::Record> run_cells(const std::vector<PlannedCell>& cells,
                                                     const Runner& runner);

// Runs some of a list of cells. The callbacks of the Runner, which write to the screen and tell other
// processes which cell is next, get the index of a cell in the whole list: it is the same in all processes.

/// The cells at the indices `places`, in that order.
[[nodiscard]] std::vector<PlannedCell> subset(const std::vector<PlannedCell>& cells,
                                              const std::vector<std::size_t>& places);

/// run_cells() for the cells at `places`; the records are in that order.
[[nodiscard]] std::vector<measure::Record> run_subset(const std::vector<PlannedCell>& cells,
                                                      const std::vector<std::size_t>& places,
                                                      const Runner& runner);

/// Whether at least one record says that the study was stopped.
[[nodiscard]] bool was_stopped(const std::vector<measure::Record>& records);

// Names, parses and applies the variants of `converge`: a large batch with remedies. A variant's name lists
// everything that it changes, and is parsed again: "+ linear, warm-up, zero gamma" has three remedies. A
// name with the last one only would credit it with the effect of all three.

/// The values of --variants, for help and errors: "linear, sqrt, warmup, ...".
[[nodiscard]] std::string remedy_words();

/// The name of the variant for `words`: "+ linear, warm-up" for "linear+warmup". "plain" is the large batch
/// without a remedy. A piece key=value that is no remedy becomes "key value"; the caller knows what it
/// changes (ConvergeAxes::changes).
///
/// Errors   Error(usage) for an unknown word (with the nearest one), or one given twice
[[nodiscard]] std::string variant_name(std::string_view words);

/// Applies the remedies of `variant` to `options`, and `axes.changes` for its other pieces.
///
/// Errors   Error(usage) for a name with an unknown piece
void apply_variant(train::Options& options, const std::string& variant, const ConvergeAxes& axes);

/// Whether the variant has no effect with one worker, whose batch norm sees the whole global batch already.
[[nodiscard]] bool needs_several_workers(const std::string& variant);

}  // namespace paceline::study
