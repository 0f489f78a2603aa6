#pragma once

/// The result of `paceline check`: findings, and what could not be checked.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::check {

enum class Severity {
  note,     ///< worth knowing; nothing is wrong
  warning,  ///< may be wrong, or is weaker than it looks
  error,    ///< contradicts itself, or follows from one known mistake
};
[[nodiscard]] std::string_view name(Severity severity);

/// A figure with the range that is compatible with what was printed and measured.
struct Figure {
  double value = 0, low = 0, high = 0;
};

struct Finding {
  std::string rule;  ///< "ratio.speedup"
  Severity severity = Severity::note;
  std::vector<std::string> rows;    ///< names of the runs
  std::string printed;              ///< as in the source; "" if no single figure is meant
  std::optional<Figure> corrected;  ///< what it should have been, in the unit of `printed`
  std::string sentence;             ///< one plain sentence with the numbers
  std::string where;                ///< the file
  std::size_t line = 0;             ///< of its first row; 0: none
};

/// A rule that could not be applied, and what it needs.
struct NotChecked {
  std::string rule;
  std::string missing;  ///< "column workers", "columns time_s or rate_per_s"
};

struct Result {
  std::vector<Finding> findings;        ///< errors first, then in the order of the rows
  std::vector<NotChecked> not_checked;  ///< in the order of the catalogue
  [[nodiscard]] std::size_t number_of(Severity severity) const;
};

}  // namespace paceline::check
