#pragma once

/// Bounds that a user gives for figures of a report (--expect), and whether they hold.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/document.h"

namespace paceline::report {

struct Conclusions;

/// "efficiency>=0.9" as read.
struct Bound {
  enum class Is { at_least, above, at_most, below };
  std::size_t figure = 0;  ///< its place among the names
  Is is = Is::at_least;
  double value = 0;
  std::string text{};  ///< "efficiency >= 0.9", as typed but for blanks
};

/// Reads NAME, one of >=, >, <=, <, and a number; for a ratio also in percent.
///
/// Errors   Error(usage): the end of a sentence that begins with the option's name; for an unknown name with
///          all names
[[nodiscard]] Bound read_bound(std::string_view text);

/// "throughput (images/s), efficiency, ...": all names, with their units.
[[nodiscard]] std::string names_of_figures();

/// Holds each bound against its figure, for each model and data set of the records. A figure that other
/// programs may have changed is a range, open to the side to which they can have moved it; it passes or fails
/// only with all values of its range.
[[nodiscard]] std::vector<Expectation> judge_bounds(const Conclusions& conclusions,
                                                    std::span<const Bound> bounds);

/// A line each: the verdict, the bound, the figure with its mark, and why.
[[nodiscard]] std::vector<std::string> lines_of_expectations(const std::vector<Expectation>& expectations);

}  // namespace paceline::report
