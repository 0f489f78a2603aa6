#pragma once

/// Decides whether a printed number follows from others, and if not, which known mistake explains it.
///
/// A claim c with half a unit h of its last digit follows from an interval if [c - t, c + t] meets it, with t
/// = max(2h, 0.5 %), since people truncate, and round twice. A wrong form explains c at t = max(2h, 2 %), if
/// the form and c are more than 3 % away from every right one. Forms vote over a column, since one mistake is
/// usually made in all cells.

#include <optional>
#include <string>
#include <vector>

#include "table/table.h"

namespace paceline::check {

struct Interval {
  double low = 0, high = 0;
  [[nodiscard]] double middle() const { return (low + high) / 2; }
};

/// All values that could have been printed like this, rounded or truncated: half a unit below to a whole one
/// above.
[[nodiscard]] Interval interval_of(const table::Number& number);
[[nodiscard]] Interval exactly_one(double value);
/// The range of possible values, combining opposite ends. Requires positive numbers.
[[nodiscard]] Interval times(const Interval& a, const Interval& b);
[[nodiscard]] Interval divided(const Interval& a, const Interval& b);
[[nodiscard]] Interval times(const Interval& a, double factor);

inline constexpr double kFollows = 0.005;
inline constexpr double kExplains = 0.02;
inline constexpr double kApart = 0.03;

[[nodiscard]] bool meets(const table::Number& claim, const Interval& interval, double tolerance);

/// A known wrong way to compute a number.
struct WrongForm {
  std::string id;  ///< the same in all rows, for the vote: "times N"
  Interval value;
  std::string sentence;  ///< "3.20 is 4 x 0.80: ..."
};

struct Claim {
  std::size_t row = 0;  ///< of the table
  table::Number printed;
  std::vector<Interval> right;  ///< several if the source does not say which is meant: each of them is right
  std::vector<WrongForm> wrong;
};

/// Whether one of the right forms gives the printed number. Wrong forms are not needed.
[[nodiscard]] bool follows(const Claim& claim);

struct Judgement {
  enum class Word { follows, explained, unexplained } word = Word::follows;
  const WrongForm* form = nullptr;  ///< of `explained`
};
/// One per claim; forms point into `claims`.
[[nodiscard]] std::vector<Judgement> judge(const std::vector<Claim>& claims);

}  // namespace paceline::check
