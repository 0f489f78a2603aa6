#pragma once

/// The options of all commands, and the settings that they set. The command line, recipes, `--help` and
/// docs/switches.md are made from their rows.

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/interval.h"
#include "analysis/predict/forecast.h"
#include "analysis/trainings/claim.h"
#include "base/error.h"
#include "cluster/batch_script.h"
#include "cluster/launch_line.h"
#include "graph/graph.h"
#include "measure/setting.h"
#include "report/expect.h"
#include "study/search.h"
#include "study/study.h"
#include "train/classify.h"
#include "train/evaluate_checkpoint.h"
#include "train/given/backend.h"
#include "train/given/option_rows.h"
#include "train/given/options.h"

namespace paceline::cluster {
class Session;
}  // namespace paceline::cluster

namespace paceline::cli {

using base::ErrorKind;
using train::Command;
using enum train::Command;

/// Exit codes of commands that judge: what they were asked to look for is there, or what was expected does
/// not hold; that is not known or not decided.
inline constexpr int kDoesNotHold = 1, kUndecided = 2;

/// The settings of a command, from defaults, site file, recipe and command line. One struct serves all
/// commands.
struct Settings {
  Command command = kTrain;
  std::string action;                   ///< of a command that is told first what to do: one of actions_of()
  cluster::Session* session = nullptr;  ///< the other processes of this run; nullptr: none
  train::Options train;
  study::StudyOptions study;
  std::vector<study::Configuration>
      configurations;                   ///< search: every combination of the values that were given
  std::string typed;                    ///< the command as typed, for records
  std::vector<measure::Setting> given;  ///< what recipe or command line set
  std::string recipe;                   ///< which recipe set what, for records; "" without one
  std::vector<std::string> notes;       ///< messages before the run: defaults that were chosen, unused keys
  [[nodiscard]] bool is_given(measure::Setting setting) const {
    return std::find(given.begin(), given.end(), setting) != given.end();
  }
  bool plan = false;                             ///< print what would be done, and do nothing
  bool calibrate = true;                         ///< a plan may time a few steps
  int planned_processes = 1, planned_nodes = 1;  ///< of a plan: how many launch or sbatch would start
  std::vector<std::string> origins;              ///< of each of `given`: "--lr", "recipes/mnist.toml:7: lr"
  bool json = false;                             ///< only the record on standard output
  bool tensorboard = false;                      ///< train: also write event files for TensorBoard
  bool tables = false;                           ///< print all tables of the report

  struct Report {
    std::vector<std::filesystem::path> records;  ///< files, or directories with records
    std::filesystem::path html, markdown, csv, json, records_csv, latex, figures, mllog;
    bool summary = false;               ///< only a summary on standard output
    std::vector<report::Bound> bounds;  ///< that figures must keep
    double margin = analysis::kMargin;  ///< of claims that an accuracy is no worse
    bool is_same_machine = false;       ///< tables may be compared with records
  } report;

  struct Compare {
    double noise = analysis::kNoise;  ///< smaller differences do not matter
    bool fails_on_regressed = false;
  } compare;

  struct Check {
    std::string template_name;  ///< print this table to fill in; checks nothing
    bool strict = false;        ///< warnings fail too, and tables in which nothing was compared
    bool shows_all = false;     ///< --why
    std::filesystem::path json, sarif;
  } check;

  struct Predict {
    std::vector<std::int64_t> workers = analysis::worker_grid(1, 64);
    std::int64_t local_batch = 0, global_batch = 0;  ///< 0: of the records
    bool is_strong = false;
    std::string cluster;         ///< a file, or the name of a preset; empty: as measured
    std::filesystem::path link;  ///< a record of `comm`, or a table of all-reduces
    analysis::ParsedWhatIf what_if;
    double efficiency = 0.8;
    std::int64_t at_most = 0;  ///< workers of the next measurement; 0: four times the most measured
    analysis::Fidelity fidelity = analysis::Fidelity::closed;
    std::filesystem::path out, score;
    std::vector<std::filesystem::path> calibrate_by;
  } predict;

  double accuracy = 0;  ///< to be reached, reference and target; 0: that of `reference.against`
  struct Reference {
    std::filesystem::path out, against;  ///< the curve: written, read
  } reference;

  /// Besides `predict`: workers, cluster and link.
  struct Target {
    double deadline_s = 0, budget = 0;  ///< 0: not asked for
    double price = 0;                   ///< of an hour of one worker; 0: of the cluster, else worker-hours
  } target;

  struct Import {
    std::filesystem::path out;               ///< empty: standard output
    std::map<std::string, std::string> set;  ///< what the files do not say: columns and their texts
  } import;

  struct Doctor {
    std::string kernels_model;  ///< if not empty, lists the implementation of each op of this model
    bool measure = true;  ///< bandwidth of memory and all-reduce: about two seconds, 200 MB; kernels: longer
  } doctor;

  train::EvaluationRequest evaluate;
  train::ClassifyRequest classify;
  std::filesystem::path classified;  ///< the table that classify writes; empty: lines on standard output
  std::string submission_columns;    ///< of that table, as a competition takes it: Submission
  std::filesystem::path sample_submission;

  struct DataOptions {
    std::string spec;             ///< get: the name of a package
    std::filesystem::path pack;   ///< the file that pack writes; with shards a folder
    bool decoded = false;         ///< pack pixels
    int shards = 0;               ///< > 0: pack so many shards
    int max_side = 0;             ///< > 0: scale larger images down in shards
    int quality = 90;             ///< of those
    bool keep_order = false;      ///< of the training samples in shards
    std::filesystem::path to;     ///< stage: a directory of this host
    std::string list;             ///< verify: a file for its findings; empty: none
    std::filesystem::path cache;  ///< get: target directory; empty: the user's cache
    std::string from;             ///< get: an address to use instead of the publisher's
  } data;

  struct Init {
    std::string directory;                        ///< of the user's images
    std::filesystem::path out = "paceline.toml";  ///< the recipe that is written
    bool force = false;                           ///< overwrite an existing one
  } init;

  struct Comm {
    std::size_t smallest = 1024, largest = std::size_t{256} << 20;  ///< bytes; 4 times as large each time
    int repeats = 20;
  } comm;

  struct RunList {
    std::vector<std::filesystem::path> paths;  ///< directories; list: the one to search
    bool yes = false;
  } runs;

  struct ModelRequest {
    std::string name;    ///< show: of the zoo, or a file; export: a checkpoint
    graph::Shape input;  ///< no channels: the model's usual one
    int classes = 10;
    std::filesystem::path onnx;  ///< export: the file that is written
    bool is_raw_input = false;   ///< export: without the node that normalises
  } model;

  struct Serve {
    std::filesystem::path directory = "paceline-out";
    std::string host = "127.0.0.1";
    int port = 8765;
    std::string token;
    std::filesystem::path token_file;
    bool has_no_token = false;
  } serve;

  /// Part `number` (from 1) of `of` parts of a study's cells, for several jobs; `of` = 0: all cells.
  struct CellPart {
    int number = 0, of = 0;
  } cell_part;
  std::string interface;                 ///< network interface between processes; "": the system chooses
  int meet_within_s = 0;                 ///< how long to wait for all processes; 0: depends on the launcher
  std::filesystem::path meeting_secret;  ///< a file (base::read_secret); "": none
  cluster::LaunchOptions launch;
  cluster::BatchOptions batch;
  std::vector<std::string> child;   ///< launch, sbatch: the words of the command to start, "train" first
  std::filesystem::path child_out;  ///< its --out
  std::string child_data;           ///< its --data
  std::string child_device;         ///< its --device
  bool has_child_workers = false;   ///< its --workers was given
};

/// The settings of a command before anything is given.
[[nodiscard]] Settings defaults(Command command);

// Translates names of options in other programs (PyTorch's scripts, Keras, Horovod, Lightning, Slurm) for
// users who type the names that they know.

/// The end of a sentence that begins with the typed option, "is not an option here: ..."; nothing for an
/// unknown name. `prefix` stands before the names of options: "--", or nothing in a recipe.
/// docs/coming-from.md has words that are no options.
/// `command`: in which it was given.
[[nodiscard]] std::optional<std::string> hint_for_other_word(std::string_view name, std::string_view prefix,
                                                             Command command = kTrain);

// --variants of converge: parses which remedies of a large batch to train.

/// Parses "linear+warmup, linear+warmup+weight-decay=1e-4". The baseline and the large batch without a remedy
/// come first, then these. A piece key=value may set any option of the learning rule.
///
/// Errors   Error(usage): the end of a sentence that begins with the option
void choose_variants(Settings& settings, std::string_view text);

/// An option of some commands: a row of a training's options (train/given/option_rows.h), or one of this
/// folder (option_*_rows.cc).
struct Option {
  measure::Setting setting;  ///< its meaning; its key is the option's name
  std::string_view value;    ///< how its value is written in help texts; empty: a switch
  std::string_view group;    ///< heading in help
  train::Help help;
  unsigned commands;  ///< Command bits that accept it
  train::OptionRules rules;
  const train::Field<Settings>* of_settings;  ///< nullptr: it is of_training
  const train::Field<train::Options>* of_training;

  /// Parses `text` into the settings.
  ///
  /// Errors   Error(usage): the end of a sentence that begins with the option's name (base/text.h)
  void set(Settings& settings, std::string_view text) const {
    of_settings != nullptr ? of_settings->set(settings, text) : of_training->set(settings.train, text);
  }
  /// The current value as text, "" for none: the default that help shows.
  [[nodiscard]] std::string get(const Settings& settings) const {
    return of_settings != nullptr ? of_settings->shown(settings) : of_training->shown(settings.train);
  }
  /// "global-batch": --global-batch on the command line, global-batch = ... in a recipe
  [[nodiscard]] std::string_view name() const { return setting.key(); }
  /// Whether it belongs to the learning rule, so that trainings that differ in it may be compared.
  [[nodiscard]] bool is_of_the_rule() const;
  [[nodiscard]] bool in_recipes() const { return (commands & kRuns) != 0 && !rules.is_only_typed; }
};

/// All options, grouped, in the order in which they are set.
[[nodiscard]] const std::vector<Option>& options();

/// The row of `name` for a command, or nullptr.
[[nodiscard]] const Option* find_option(std::string_view name, Command command);

/// Why `name` is no option of this command, and what was probably meant: the end of a sentence "--batch ...".
[[nodiscard]] std::string why_unknown(std::string_view name, Command command, std::string_view prefix = "--");

/// What can be typed to change something about an option in one command.
struct TypedForm {
  std::string name;     ///< "lr", "strict"; "no-augment" for a switch that is on
  std::string help;     ///< what that does: "without: ..." for a switch that is on
  std::string present;  ///< the value if it is not given; "" for a switch
};
/// `is_short`: with the help text up to its first break in thought, to be shown beside a name.
[[nodiscard]] TypedForm typed_form(const Option& option, Command command, bool is_short = true);

/// A text up to its first break in thought.
[[nodiscard]] std::string beginning_of(const std::string& text);

/// The name of a command as typed: "train".
[[nodiscard]] std::string command_name(Command command);

/// "all that train, evaluate": the commands of a row, for display.
[[nodiscard]] std::string commands_that_take(const Option& option);

/// The default, "`128`; study: `64`": that of the first command that accepts the option, then of commands
/// with another one. "" for none.
[[nodiscard]] std::string defaults_of(const Option& option);

}  // namespace paceline::cli
