#pragma once

/// Rule: a rule of `paceline check`, with the columns that it needs and the function that applies it to a
/// table; and the catalogue of all rules.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check/check.h"
#include "check/study.h"

namespace paceline::check {

/// Bytes/s of one unit: 1e9 for "GB/s", 2^30 for "GiB/s", 1.25e8 for "Gbit/s" (also Gb/s, Gbps); nothing for
/// other words.
[[nodiscard]] std::optional<double> bytes_per_s(std::string_view unit);

// Computes from a table's row what its all-reduces move, and in what time.

/// Bytes of one reduction, X: the message, or parameters times bytes per element (4 if unknown).
[[nodiscard]] std::optional<Interval> message_bytes(const Row& row);
/// Seconds of the row's reductions; for a row about messages alone its time.
[[nodiscard]] std::optional<table::Number> communication_time(const Row& row);
/// The number of reductions in that time.
[[nodiscard]] std::optional<Interval> reductions(const Row& row);
/// 2(N-1)/N.
[[nodiscard]] double ring_factor(double n);
/// The claimed bandwidth in bytes/s; nothing if its unit is unknown.
[[nodiscard]] std::optional<table::Number> claimed_bytes_per_s(const Row& row);

/// Collects the findings of one rule on one table.
class Findings {
 public:
  Findings(std::string_view rule, const Study& study, std::vector<Finding>& all)
      : rule_(rule), study_(study), all_(all) {}

  struct About {
    std::vector<std::size_t> rows;  ///< the wrong one first
    std::string printed = {};
    std::optional<Figure> corrected = {};
    bool is_of_all = false;  ///< the sentence applies to all rows alike: name more than the first ones
    std::string cause = {};  ///< which of the rule's mistakes: findings of one cause are one mistake
  };
  void add(Severity severity, const About& about, std::string sentence);
  /// Says that so many figures were held against others, whether right or wrong.
  void compared(std::size_t figures = 1) { compared_ += figures; }
  [[nodiscard]] std::size_t number_compared() const { return compared_; }

 private:
  std::string_view rule_;
  const Study& study_;
  std::vector<Finding>& all_;
  std::size_t compared_ = 0;
};

struct Rule {
  std::string_view name;  ///< "ratio.speedup"
  Severity worst;         ///< of its possible findings
  /// Columns that some row must have for the rule to apply, separated by blanks; "a|b" if one is enough.
  std::string_view needs;
  std::string_view what;  ///< a short description, for tools that list rules
  void (*run)(const Study& study, Findings& findings);
  /// Further columns with which it finds more: where one is absent and the rule found nothing, it is listed
  /// as checked in part.
  std::string_view helps = {};
  /// What rows it holds against each other: where no such rows are, it is listed as not checked. "" for a
  /// rule that only looks at words and counts.
  std::string_view pairs = {};
};

inline constexpr std::string_view kTwoRows = "two rows of one set-up whose times or rates can be compared";

/// Why no speedup can be computed from the times or rates of the table, as what is missing; "" if one can.
[[nodiscard]] std::string why_no_ratio(const Study& study);

// The parts of the catalogue, one per file.
[[nodiscard]] std::span<const Rule> claim_rules();
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

/// `value` with an interval; orders low and high.
[[nodiscard]] Figure figure_of(double value, const Interval& interval);
/// "0.80": at least three digits, without an exponent if possible.
[[nodiscard]] std::string shown(double value);

/// Which of several one-sided tests are significant together (Holm, 5 % in all). `z`: standard errors from
/// zero.
[[nodiscard]] std::vector<bool> holm(const std::vector<double>& z);

}  // namespace paceline::check
