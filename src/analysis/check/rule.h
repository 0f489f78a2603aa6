#pragma once

/// A rule of the catalogue: what it needs, and the function that holds a table against it.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/check/finding.h"
#include "analysis/check/study.h"

namespace paceline::analysis::rules {

/// Takes the findings of one rule on one table.
class Findings {
 public:
  Findings(std::string_view rule, const Study& study, std::vector<Finding>& all)
      : rule_(rule), study_(study), all_(all) {}

  struct About {
    std::vector<std::size_t> rows;  ///< the one that is wrong first
    std::string printed = {};
    std::optional<Figure> corrected = {};
    bool is_of_all = false;  ///< the sentence is said of all rows alike: more than the first are named
  };
  void add(Severity severity, const About& about, std::string sentence);

 private:
  std::string_view rule_;
  const Study& study_;
  std::vector<Finding>& all_;
};

struct Rule {
  std::string_view name;  ///< "ratio.speedup"
  Severity worst;         ///< the severest finding that it can give
  /// Columns that some row must have for the rule to say anything: with blanks between them, "a|b" where one
  /// is enough.
  std::string_view needs;
  std::string_view what;  ///< in a few words, for tools that list rules
  void (*run)(const Study& study, Findings& findings);
};

// The catalogue in its parts, one a file.
[[nodiscard]] std::span<const Rule> ratio_rules();
[[nodiscard]] std::span<const Rule> scaling_rules();
[[nodiscard]] std::span<const Rule> time_rules();
[[nodiscard]] std::span<const Rule> size_rules();
[[nodiscard]] std::span<const Rule> comparison_rules();
[[nodiscard]] std::span<const Rule> bandwidth_rules();
[[nodiscard]] std::span<const Rule> link_rules();
[[nodiscard]] std::span<const Rule> model_rules();
[[nodiscard]] std::span<const Rule> accuracy_rules();
[[nodiscard]] std::span<const Rule> protocol_rules();

/// All rules, in the order of docs/check.md.
[[nodiscard]] std::vector<Rule> catalogue();

/// `value` with an interval; low and high are put in order.
[[nodiscard]] Figure figure_of(double value, const Interval& interval);
/// "0.80": three digits or more, without an exponent where one can.
[[nodiscard]] std::string shown(double value);

/// Which of several one-sided tests hold when all are looked at (Holm, 5 % in all). `z`: standard errors from
/// zero.
[[nodiscard]] std::vector<bool> holm(const std::vector<double>& z);

}  // namespace paceline::analysis::rules
