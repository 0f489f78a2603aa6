#pragma once

/// What trainers log, read from CSV or JSON in any of the forms that programs write: entries with named
/// values, still as texts. metrics.cc makes a table of them.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::table {

struct MetricCell {
  std::size_t name;  ///< which of MetricLog::names
  std::string text;
  std::size_t line = 0, column = 0;  ///< where it stands; 0: not known
};

struct MetricLog {
  std::vector<std::string> names;  ///< of all values that any entry has
  std::vector<std::vector<MetricCell>> entries;
  std::vector<std::size_t> behind_heads;  ///< entries before which the columns were named again, in order
  std::vector<std::string> notes;         ///< what was left out, with its first line
  bool has_decimal_commas = false;

  /// The number of a name, which is added if it is new.
  std::size_t number_of(const std::string& name);
  /// "file:3:7", or "file: entry 3" where lines say nothing.
  [[nodiscard]] std::string place(const std::string& where, const MetricCell& cell) const;
  bool counts_entries = false;  ///< MetricCell::line counts entries, and no lines

 private:
  std::map<std::string, std::size_t, std::less<>> numbers_;
};

/// Makes each tag a name of its own, in the order of steps, if the log has an entry for each value: tag,
/// step, value.
void spread_values(MetricLog& log);

/// What tells entries apart.
enum class MetricKey : char { epoch, step };
/// The key that people call so: "Epoch", "_step", "global_step".
[[nodiscard]] std::optional<MetricKey> metric_key_of(std::string_view name);
/// "# epoch" and "[rank0]: epoch" without what stands before the last word.
[[nodiscard]] std::string_view last_word_of_prefix(std::string_view cell);
/// The number of the rank in what a launcher wrote before a line: "[rank3]:", "[default3]:",
/// "[1,3]<stdout>:", "3: ".
[[nodiscard]] std::optional<int> rank_in(std::string_view prefix);

/// Lines of ranks other than the first one that was met are left out.
class FirstRank {
 public:
  /// Numbers that rise by one from each of the lines of `text` to the next count lines, as `grep -n` does,
  /// and are of no ranks: all lines count.
  explicit FirstRank(std::string_view text);

  /// Whether a line behind `prefix` counts.
  [[nodiscard]] bool takes(std::string_view prefix);
  /// "" if no line was left out.
  [[nodiscard]] std::string note() const;

 private:
  std::optional<int> rank_;
  bool are_lines_counted_ = false;
  std::size_t left_out_ = 0;
};

/// Whether a text has a line of heads that names epochs or steps, above lines of figures.
[[nodiscard]] bool has_metrics_csv(std::string_view text);
/// Errors   Error(data) with `where` and the line: cells and heads that do not match, quotes that are not
/// closed
[[nodiscard]] MetricLog metrics_of_csv(std::string_view text, const std::string& where);

/// Whether a text is JSON of metrics, or has lines that are.
[[nodiscard]] bool has_metrics_json(std::string_view text);
/// Errors   Error(data) with `where`: no entry in it
[[nodiscard]] MetricLog metrics_of_json(std::string_view text, const std::string& where);

}  // namespace paceline::table
