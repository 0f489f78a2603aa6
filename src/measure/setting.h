#pragma once

/// The one table of what options mean: what a difference in each does to a comparison of two runs. The
/// command line, records, comparability checks and labels all read it.
///
/// A new option is a row here and its reader in src/cli/option_*_rows.cc; without either nothing compiles.
/// Where the row's role is recorded, train/recorded_settings.cc must write its value, or nothing compiles.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace paceline::measure {

/// What kind of choice an option is.
enum class Role : std::uint8_t {
  fixed,       ///< what every comparison holds fixed: what is trained, on what, and how it is tested
  size,        ///< workers and batches, which scaling and sweeps vary
  length,      ///< how long is trained
  window,      ///< how long is measured, and which sample of the same distribution is drawn
  precision,   ///< compared as the precision that "auto" came to, which records hold apart
  cores,       ///< which cores a worker has: execution, of which records say the outcome apart
  execution,   ///< how the work is done: changes times, and of the result no more than rounding
  remedy,      ///< parts of the algorithm that are exchanged to keep the accuracy of a large batch
  rule,        ///< numbers of the learning rule: the same kernels run whatever they are
  lr_scaling,  ///< how the learning rate follows the batch: rule, of which records say the outcome apart
  unrecorded,  ///< which runs are made, where, and what they leave behind; no record holds it as a setting
};

/// What a difference between two runs does to a ratio of their figures.
enum class Effect : std::uint8_t {
  none,    ///< nothing: it may differ
  remark,  ///< nothing, but the reader must know of it
  refuse,  ///< the ratio would be about this difference, and is refused
};

struct SettingRow {
  /// Refused where nothing is said: nothing is known of an unrecorded one in another program's record.
  consteval SettingRow(std::string_view its_key, Role its_role, Effect its_effect_on_time = Effect::refuse,
                       Effect its_effect_on_accuracy = Effect::refuse)
      : key(its_key), role(its_role), on_time(its_effect_on_time), on_accuracy(its_effect_on_accuracy) {}

  std::string_view
      key;  ///< "global-batch": --global-batch, the key in recipes and in the settings of records
  Role role;
  Effect on_time;      ///< when times a step are compared
  Effect on_accuracy;  ///< when accuracies are compared
};

namespace setting_table {

using enum Role;
using enum Effect;

/// In four parts, one for each file of src/cli that reads them (cli/option_rows.h says where each part
/// begins). Where several options that nothing reads are given, the user is told in this order.
inline constexpr auto kRows = std::to_array<SettingRow>({
    // One training: option_training_rows.cc.
    {"model", fixed, refuse, refuse},
    {"data", fixed, refuse, refuse},
    {"device", fixed, refuse, refuse},
    {"precision", precision, none, none},
    {"seed", window, none, none},
    {"augment", fixed, refuse, refuse},
    {"crop-padding", fixed, refuse, refuse},
    {"crop-fill", fixed, refuse, refuse},
    {"flip", fixed, refuse, refuse},
    {"test-time-augmentation", fixed, refuse, refuse},
    {"validation-split", fixed, refuse, refuse},
    {"bad-images", fixed, refuse, refuse},
    {"label-smoothing", fixed, refuse, refuse},
    {"workers", size, none, none},
    {"threads", cores, refuse, none},
    {"local-batch", size, none, none},
    {"global-batch", size, none, none},
    {"shard", remedy, refuse, none},  // a shard's samples have batch-norm statistics of their own
    {"bn", remedy, refuse, none},
    {"pin", cores, refuse, none},
    {"measured-kernels", execution, refuse, none},
    {"loader-threads", execution, refuse, none},
    {"bucket-mb", execution, refuse, none},
    {"bucket", unrecorded},  // recorded as bucket-mb, auto
    {"deadline", unrecorded},
    {"epochs", length, none, refuse},
    {"steps", length, none, refuse},
    {"evaluate-every", execution, none, none},  // a time a step does not include evaluations

    // The learning rule: option_rule_rows.cc.
    {"optimizer", remedy, refuse, none},
    {"lr", rule, remark, none},
    {"scale-lr", lr_scaling, remark, none},
    {"lr-batch", lr_scaling, remark, none},
    {"momentum", rule, remark, none},
    {"nesterov", remedy, refuse, none},
    {"weight-decay", rule, remark, none},
    {"decay-norm-and-bias", remedy, refuse, none},
    {"schedule", rule, remark, none},
    {"warmup", rule, remark, none},
    {"step-epochs", rule, remark, none},
    {"step-factor", rule, remark, none},
    {"final-factor", rule, remark, none},
    {"one-cycle-peak", rule, remark, none},
    {"one-cycle-start", rule, remark, none},
    {"beta1", rule, remark, none},
    {"beta2", rule, remark, none},
    {"alpha", rule, remark, none},
    {"rho", rule, remark, none},
    {"trust", rule, remark, none},
    {"epsilon", rule, remark, none},
    {"lookahead", fixed, refuse, refuse},
    {"lookahead-keep", fixed, refuse, refuse},
    {"lookahead-power", fixed, refuse, refuse},

    // Between workers, processes and hosts: option_launch_rows.cc.
    {"sizes", unrecorded},
    {"gradients-as", fixed, refuse, refuse},  // sums are rounded to bf16: more than the order of additions
    {"shared-memory", execution, refuse, none},
    {"emulate-link", execution, refuse, none},
    {"emulate-straggler", execution, refuse, none},
    {"processes", unrecorded},
    {"hosts", unrecorded},
    {"restarts", unrecorded},
    {"print", unrecorded},
    {"nodes", unrecorded},
    {"workers-per-node", unrecorded},
    {"cores", unrecorded},
    {"gpus", unrecorded},
    {"time", unrecorded},
    {"partition", unrecorded},
    {"name", unrecorded},
    {"requeue", unrecorded},
    {"script", unrecorded},
    {"submit", unrecorded},

    // What is varied and timed, and left behind: option_study_rows.cc.
    {"batches", unrecorded},
    {"mode", unrecorded},
    {"repeats", unrecorded},
    {"window-steps", window, none, none},
    {"warmup-steps", window, none, none},
    {"window-seconds", window, none, none},
    {"compare", unrecorded},
    {"baseline-batch", unrecorded},
    {"large-batch", unrecorded},
    {"quick", unrecorded},
    {"with-sweep", unrecorded},
    {"with-scale", unrecorded},
    {"with-converge", unrecorded},
    {"out", unrecorded},
    {"resume", unrecorded},
    {"checkpoints", unrecorded},
    {"checkpoint-every", unrecorded},
    {"log-steps", unrecorded},
    {"json", unrecorded},
    {"timeline", unrecorded},
    {"html", unrecorded},
    {"markdown", unrecorded},
    {"csv", unrecorded},
    {"decoded", unrecorded},
    {"cache", unrecorded},
    {"from", unrecorded},
    {"kernels", unrecorded},
    {"measure", unrecorded},
});

/// The number of the row of `key`, or that of all rows.
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
static_assert(has_unique_keys(), "two rows of kRows have one key");

/// Never constant, so that the compiler names it where a literal is no key.
void this_key_has_no_row_in_the_table_of_settings();

}  // namespace setting_table

/// One option: a row of the table. A literal becomes one where it is written, and one that is no key does not
/// compile.
class Setting {
 public:
  consteval Setting(const char* key) : row_(setting_table::row_of(key)) {
    if (row_ == count()) setting_table::this_key_has_no_row_in_the_table_of_settings();
  }

  /// The setting of a key that was read; nothing for one that no row has, as of a later version's record.
  [[nodiscard]] static std::optional<Setting> find(std::string_view key);

  /// How many there are, and the one of row `row`.
  [[nodiscard]] static constexpr std::size_t count() { return setting_table::kRows.size(); }
  [[nodiscard]] static constexpr Setting at(std::size_t row) { return Setting(row); }

  [[nodiscard]] constexpr std::size_t row() const { return row_; }
  [[nodiscard]] constexpr std::string_view key() const { return of_table().key; }
  [[nodiscard]] constexpr Role role() const { return of_table().role; }
  [[nodiscard]] constexpr Effect on_time() const { return of_table().on_time; }
  [[nodiscard]] constexpr Effect on_accuracy() const { return of_table().on_accuracy; }
  [[nodiscard]] constexpr bool is_recorded() const { return role() != Role::unrecorded; }

  friend constexpr bool operator==(Setting, Setting) = default;

 private:
  explicit constexpr Setting(std::size_t row) : row_(row) {}
  [[nodiscard]] constexpr const SettingRow& of_table() const { return setting_table::kRows[row_]; }

  std::size_t row_;
};

/// The settings of a run as records hold them: texts by key.
using SettingTexts = std::map<std::string, std::string>;

/// The text of `setting`, or nullptr where the run has none.
[[nodiscard]] const std::string* find_text(const SettingTexts& texts, Setting setting);

/// The role of a key that was read; nothing for one that no row has.
[[nodiscard]] std::optional<Role> role_of(std::string_view key);

/// Whether it changes times, and of the result no more than rounding.
[[nodiscard]] bool is_of_execution(std::string_view key);

/// Whether it says only how long was measured and which sample was drawn: times a step have the same
/// distribution with any of its values.
[[nodiscard]] bool is_of_window(std::string_view key);

}  // namespace paceline::measure
