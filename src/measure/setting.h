#pragma once

/// The table of options: the key of each, its role, and what a difference in it does to a comparison of two
/// runs. The command line, records, comparability checks and labels read it.
///
/// A new option is a row here and a row in train/given or cli/options (docs/adding.md). The program does not
/// compile with one of them alone.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace paceline::measure {

/// What an option chooses.
enum class SettingRole : std::uint8_t {
  fixed,       ///< what is trained, on which data, and how it is tested: the same in every comparison
  size,        ///< workers and batches, which scaling runs and sweeps vary
  length,      ///< how long the training is
  window,      ///< how long the measurement is, and the seed; the distribution of step times stays the same
  precision,   ///< may be "auto"; records have the precision that was used in a field of their own, which
               ///< is compared
  cores,       ///< how many cores a worker has, and whether it is pinned to them
  execution,   ///< other ways to do the work: they change times, and results by no more than rounding
  remedy,      ///< changes to the algorithm that should keep the accuracy of a large batch
  rule,        ///< numbers of the optimizer and of the schedule: the same kernels run with any of them
  lr_scaling,  ///< how the learning rate depends on the batch; records hold the rate itself too
  unrecorded,  ///< which runs are made, where, and what is written: no record holds it as a setting
};

/// What a difference between two runs means for a ratio of their figures.
enum class Effect : std::uint8_t {
  none,    ///< nothing
  remark,  ///< the ratio is valid; the report mentions the difference
  refuse,  ///< the ratio would measure this difference, so it is not made
};

struct SettingRow {
  /// "global-batch": --global-batch on the command line, and the key in recipes and records.
  std::string_view key;
  SettingRole role = SettingRole::unrecorded;
  // By default a difference is refused, since a record of another program may contain any key.
  Effect on_time = Effect::refuse;      ///< when times a step are compared
  Effect on_accuracy = Effect::refuse;  ///< when accuracies are compared
};

namespace setting_table {

using enum SettingRole;
using enum Effect;

/// The options of a training. The rows are in parts, one for each table of the other rows.
inline constexpr auto kOfTrainings = std::to_array<SettingRow>({
    // One training: train/given/option_rows.cc.
    {"model", fixed, refuse, refuse},
    {"data", fixed, refuse, refuse},
    {"device", fixed, refuse, refuse},
    {"precision", precision, none, none},
    {"seed", window, none, none},
    {"augment", fixed, refuse, refuse},
    {"crop-padding", fixed, refuse, refuse},
    {"crop-fill", fixed, refuse, refuse},
    {"flip", fixed, refuse, refuse},
    {"rotate", fixed, refuse, refuse},
    {"shear", fixed, refuse, refuse},
    {"shift", fixed, refuse, refuse},
    {"trivial-augment", fixed, refuse, refuse},
    {"random-erasing", fixed, refuse, refuse},
    {"mixup", fixed, refuse, refuse},
    {"cutmix", fixed, refuse, refuse},
    {"test-time-augmentation", fixed, refuse, refuse},
    {"validation-split", fixed, refuse, refuse},
    {"bad-images", fixed, refuse, refuse},
    {"shuffle", rule, remark, none},  // the same images, but fewer shards are read at a time
    {"label-smoothing", fixed, refuse, refuse},
    {"class-weights", fixed, refuse, refuse},
    {"sampler", fixed, refuse, refuse},
    {"workers", size, none, none},
    {"threads", cores, refuse, none},
    {"local-batch", size, none, none},
    {"global-batch", size, none, none},
    {"shard", remedy, refuse, none},        // a shard's samples have batch-norm statistics of their own
    {"micro-batch", remedy, refuse, none},  // likewise those of a micro-batch
    {"bn", remedy, refuse, none},
    {"pin", cores, refuse, none},
    {"measured-kernels", execution, refuse, none},
    {"deterministic", execution, refuse, none},
    {"kernels-from", unrecorded},  // the record says which kernels they were
    {"loader-threads", execution, refuse, none},
    {"bucket-mb", execution, refuse, none},
    {"bucket", unrecorded},  // recorded as bucket-mb, auto
    {"deadline", unrecorded},
    {"epochs", length, none, refuse},
    {"steps", length, none, refuse},
    {"evaluate-every", execution, none, none},  // evaluations are not part of a step
    {"test-set", fixed, refuse, refuse},        // another epoch's weights are tested
    {"early-stopping", length, none, refuse},
    {"target", length, none, refuse},
    {"evaluate-steps", execution, none, none},
    {"on-nan", rule, remark, none},  // nothing in a training that does not diverge
    {"noise-scale", execution, none, none},

    // The learning rule: train/given/rule_rows.cc.
    {"optimizer", remedy, refuse, none},
    {"lr", rule, remark, none},
    {"scale-lr", lr_scaling, remark, none},
    {"lr-batch", lr_scaling, remark, none},
    {"momentum", rule, remark, none},
    {"nesterov", remedy, refuse, none},
    {"weight-decay", rule, remark, none},
    {"decay-norm-and-bias", remedy, refuse, none},
    {"momentum-correction", rule, remark, none},
    {"clip-norm", remedy, refuse, none},  // one or two passes over the gradients
    {"zero-gamma", rule, remark, none},
    {"weights", rule, remark, none},
    {"weights-by", rule, remark, none},
    {"freeze", remedy, refuse, none},  // frozen layers take no time in backward
    {"lr-factor", rule, remark, none},
    {"schedule", rule, remark, none},
    {"warmup", rule, remark, none},
    {"warmup-start", rule, remark, none},
    {"step-epochs", rule, remark, none},
    {"step-factor", rule, remark, none},
    {"final-factor", rule, remark, none},
    {"one-cycle-peak", rule, remark, none},
    {"one-cycle-start", rule, remark, none},
    {"plateau-patience", rule, remark, none},
    {"plateau-factor", rule, remark, none},
    {"polynomial-power", rule, remark, none},
    {"beta1", rule, remark, none},
    {"beta2", rule, remark, none},
    {"alpha", rule, remark, none},
    {"rho", rule, remark, none},
    {"trust", rule, remark, none},
    {"epsilon", rule, remark, none},
    {"lookahead", fixed, refuse, refuse},
    {"lookahead-keep", fixed, refuse, refuse},
    {"lookahead-power", fixed, refuse, refuse},
    {"ema", remedy, refuse, none},  // a pass over the weights
    {"ema-every", rule, remark, none},
    {"use-ema", unrecorded},  // no training has it

    // Between workers, and what is timed: train/given/option_rows.cc.
    {"parallel", execution, refuse, none},    // the same sums, by another way
    {"gradients-as", fixed, refuse, refuse},  // sums are rounded to bf16: more than the order of additions
    {"shared-memory", execution, refuse, none},
    {"emulate-link", execution, refuse, none},
    {"emulate-straggler", execution, refuse, none},
    {"emulate-compute", fixed, refuse, refuse},
    {"control", fixed, refuse, refuse},
    {"emulate-same-order", rule, remark, none},
    {"placement", size, none, none},  // nodes are what scaling varies, and the baseline has one
    {"window-steps", window, none, none},
    {"warmup-steps", window, none, none},
    {"window-seconds", window, none, none},
});

/// All other options, which are unrecorded; in parts too.
inline constexpr auto kOfCommands = std::to_array<std::string_view>(
    {// Messages, processes and hosts: cli/options/option_launch_rows.cc.
     "sizes", "processes", "hosts", "by", "meet-within", "meeting-secret", "interface", "restarts", "grace",
     "print", "nodes", "workers-per-node", "cores", "gpus-per-node", "gpus", "memory", "time", "account",
     "partition", "qos", "constraint", "mail", "setup", "container", "stage", "mpi", "slurm", "array", "name",
     "requeue", "script", "submit", "status", "plan", "calibrate",
     // What is varied, and left behind: cli/options/option_study_rows.cc.
     "batches", "mode", "repeats", "compare", "baseline-batch", "large-batch", "rates", "choose-on", "seeds",
     "halving", "variants", "quick", "with-sweep", "with-scale", "with-comm", "with-converge", "only-cells",
     "measure-again", "out", "resume", "checkpoints", "checkpoint-every", "keep-checkpoints", "log-steps",
     "json", "timeline", "tensorboard", "tables", "html", "markdown", "csv", "records-csv", "mllog", "latex",
     "figures", "summary", "expect", "margin", "noise", "fail-on", "part", "mistakes", "top", "columns",
     "sample-submission", "decoded", "shards", "max-side", "quality", "keep-order", "to", "list", "cache",
     "from", "kernels", "measure", "input", "classes", "yes", "force", "template", "strict", "why",
     "same-machine", "sarif", "set", "host", "port", "token", "token-file", "no-token", "onnx", "raw-input",
     // What is predicted: cli/options/option_predict_rows.cc.
     "cluster", "link", "what-if", "scaling", "efficiency", "at-most", "fidelity", "score", "calibrate-by",
     // Trainings to an accuracy: cli/options/option_target_rows.cc.
     "accuracy", "against", "budget", "price"});

/// All options, in that order.
inline constexpr auto kRows = [] {
  std::array<SettingRow, kOfTrainings.size() + kOfCommands.size()> rows{};
  auto* const rest = std::ranges::copy(kOfTrainings, rows.begin()).out;
  std::ranges::transform(kOfCommands, rest, [](std::string_view key) { return SettingRow{.key = key}; });
  return rows;
}();

/// The index of the row of `key`; kRows.size() if there is none.
constexpr std::size_t row_of(std::string_view key) {
  std::size_t row = 0;
  while (row < kRows.size() && kRows[row].key != key) ++row;
  return row;
}

consteval bool has_unique_keys() {
  for (std::size_t row = 0; row < kRows.size(); ++row)
    if (kRows[row].key.empty() || row_of(kRows[row].key) != row) return false;
  return true;
}
static_assert(has_unique_keys(), "two rows of kRows have the same key, or one has none");

/// Declared only: a call in a constant expression is an error, which shows this name and the key.
void this_key_has_no_row_in_the_table_of_settings();

}  // namespace setting_table

/// One option, as a reference to its row. Setting("lr") compiles because the table has a row "lr"; a misspelt
/// key does not.
class Setting {
 public:
  consteval Setting(const char* key) : row_(setting_table::row_of(key)) {
    if (row_ == count()) setting_table::this_key_has_no_row_in_the_table_of_settings();
  }

  /// The setting of a key known at run time; nothing for a key without a row, such as one of a later version.
  [[nodiscard]] static std::optional<Setting> find(std::string_view key);

  /// The number of rows, and the setting of one of them.
  [[nodiscard]] static constexpr std::size_t count() { return setting_table::kRows.size(); }
  [[nodiscard]] static constexpr Setting at(std::size_t row) { return Setting(row); }

  [[nodiscard]] constexpr std::size_t row() const { return row_; }
  [[nodiscard]] constexpr std::string_view key() const { return of_table().key; }
  [[nodiscard]] constexpr SettingRole role() const { return of_table().role; }
  [[nodiscard]] constexpr Effect on_time() const { return of_table().on_time; }
  [[nodiscard]] constexpr Effect on_accuracy() const { return of_table().on_accuracy; }
  [[nodiscard]] constexpr bool is_recorded() const { return role() != SettingRole::unrecorded; }

  friend constexpr bool operator==(Setting, Setting) = default;

 private:
  explicit constexpr Setting(std::size_t row) : row_(row) {}
  [[nodiscard]] constexpr const SettingRow& of_table() const { return setting_table::kRows[row_]; }

  std::size_t row_;
};

/// The settings of a run as records hold them: a text for each key.
using SettingTexts = std::map<std::string, std::string>;

/// The text of `setting`, or nullptr where the run has none.
[[nodiscard]] const std::string* find_text(const SettingTexts& texts, Setting setting);

/// The role of a key known at run time; nothing for a key without a row.
[[nodiscard]] std::optional<SettingRole> role_of(std::string_view key);

/// Whether the key's role is `execution` or `cores`: results change by no more than rounding.
[[nodiscard]] bool is_of_execution(std::string_view key);

/// Whether the key's role is `window`.
[[nodiscard]] bool is_of_window(std::string_view key);

}  // namespace paceline::measure
