#pragma once

/// Unions, differences and intersections of sets of time intervals, for traces.

#include <vector>

namespace paceline::table {

struct Stretch {
  double begin = 0, end = 0;
};

/// In order and without overlaps.
using Stretches = std::vector<Stretch>;

/// The union, in order and without overlaps. Intervals that end before they begin are left out.
[[nodiscard]] Stretches united(std::vector<Stretch> any);
[[nodiscard]] Stretches without(const Stretches& from, const Stretches& what);
[[nodiscard]] Stretches common(const Stretches& a, const Stretches& b);
/// The part between `begin` and `end`.
[[nodiscard]] Stretches clipped(const Stretches& from, double begin, double end);
[[nodiscard]] double length(const Stretches& all);

}  // namespace paceline::table
