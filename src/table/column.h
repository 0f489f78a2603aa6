#pragma once

/// The columns of `paceline-table-1`: what a row can say about a measurement by any program. docs/check.md
/// has their meanings and examples.
///
/// A new column is a row here; the reader, templates and errors with the nearest name use this table.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace paceline::table {

enum class ColumnKind : std::uint8_t {
  text,    ///< any words
  word,    ///< one of `words`
  words,   ///< several of `words`, separated by blanks
  count,   ///< an integer of at least 0, known exactly
  number,  ///< at least 0; known to half a unit of its last printed digit
  part,    ///< a number between 0 and 1
};

/// The role of a column when two rows of one study are compared.
enum class ColumnRole : std::uint8_t {
  name,           ///< identifies the row
  configuration,  ///< what was run: rows that agree in all of these measured the same
  condition,      ///< how it was measured
  figure,         ///< the result
  claim,          ///< what the source says about the result
};

struct ColumnRow {
  std::string_view name;
  ColumnKind kind;
  ColumnRole role;
  std::string_view words = {};  ///< for `word` and `words`, separated by blanks
};

namespace column_table {

using enum ColumnKind;
using enum ColumnRole;

inline constexpr auto kRows = std::to_array<ColumnRow>({
    {"run", text, name},
    {"program", text, configuration},
    {"model", text, configuration},
    {"device", text, configuration},
    {"nodes", count, configuration},
    {"workers", count, configuration},
    {"repeat", count, name},
    {"seed", count, name},
    {"local_batch", count, configuration},
    {"global_batch", count, configuration},
    {"batch", count, configuration},
    {"train_samples", count, configuration},
    {"test_samples", count, configuration},
    {"classes", count, configuration},
    {"epochs", number, configuration},
    {"steps", count, figure},
    {"updates", count, figure},
    {"time_s", number, figure},
    {"time_of", word, configuration, "step epoch run"},
    {"covers", words, configuration, "data copy compute communication update evaluation startup"},
    {"excludes", words, configuration, "data copy compute communication update evaluation startup"},
    {"statistic", word, condition, "single mean median best"},
    {"repeats", count, condition},
    {"spread_s", number, condition},
    {"spread_is", word, condition, "sd se range ci95"},
    {"warmup", count, condition},
    {"clock", word, condition, "device host"},
    {"rate_per_s", number, figure},
    {"rate_of", word, configuration, "all worker"},
    {"compute_s", number, figure},
    {"communication_s", number, figure},
    {"data_wait_s", number, figure},
    {"other_s", number, figure},
    {"communication_is", word, condition, "exposed total residual"},
    {"scaling", word, configuration, "weak strong"},
    {"baseline", text, claim},
    {"claimed_speedup", number, claim},
    {"claimed_efficiency", number, claim},
    {"claim", text, claim},
    {"best", word, claim, "yes no"},
    {"parameters", number, configuration},
    {"element_bytes", count, configuration},
    {"message_bytes", number, configuration},
    {"algorithm", text, configuration},
    {"claimed_bandwidth", number, claim},
    {"bandwidth_unit", text, claim},
    {"bandwidth_is", word, claim, "sent algbw busbw"},
    {"wrong_elements", count, figure},
    {"link", number, configuration},
    {"link_unit", text, configuration},
    {"link_is", word, configuration, "one-way both-ways"},
    {"claimed_utilisation", part, claim},
    {"loss", number, figure},
    {"accuracy", part, figure},
    {"quality_of", text, configuration},
    {"seeds", count, condition},
    {"accuracy_sd", number, condition},
    {"learning_rate", number, configuration},
    {"optimizer", text, configuration},
    {"flops_per_sample", number, configuration},
    {"peak_flops", number, configuration},
    {"utilisation", part, figure},
    {"transfer_s", number, figure},        // part of the communication: bytes move
    {"late_peer_s", number, figure},       // part of it: waiting for a later worker
    {"update_s", number, figure},          // part of the time: the optimizer
    {"not_attributed_s", number, figure},  // part of the time: unknown
});

constexpr std::size_t row_of(std::string_view name) {
  std::size_t row = 0;
  while (row < kRows.size() && kRows[row].name != name) ++row;
  return row;
}

/// Declared only: a call in a constant expression is an error, which shows this name and the column.
void this_name_is_no_column_of_the_table();

}  // namespace column_table

/// A column, as a reference to its row. Column("time_s") compiles because there is a column of that name.
class Column {
 public:
  consteval Column(const char* name) : row_(column_table::row_of(name)) {
    if (row_ == count()) column_table::this_name_is_no_column_of_the_table();
  }
  [[nodiscard]] static constexpr std::size_t count() { return column_table::kRows.size(); }
  [[nodiscard]] static constexpr Column at(std::size_t row) { return Column(row); }
  [[nodiscard]] static constexpr std::optional<Column> find(std::string_view name) {
    const auto row = column_table::row_of(name);
    return row == count() ? std::nullopt : std::optional(at(row));
  }

  [[nodiscard]] constexpr std::size_t row() const { return row_; }
  [[nodiscard]] constexpr std::string_view name() const { return column_table::kRows[row_].name; }
  [[nodiscard]] constexpr ColumnKind kind() const { return column_table::kRows[row_].kind; }
  [[nodiscard]] constexpr ColumnRole role() const { return column_table::kRows[row_].role; }
  [[nodiscard]] constexpr std::string_view words() const { return column_table::kRows[row_].words; }

  friend constexpr bool operator==(Column, Column) = default;

 private:
  explicit constexpr Column(std::size_t row) : row_(row) {}
  std::size_t row_;
};

/// Prefix of columns for settings of a program: "setting.precision".
inline constexpr std::string_view kSettingPrefix = "setting.";

}  // namespace paceline::table
