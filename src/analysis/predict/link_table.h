#pragma once

/// All-reduces that were timed over one level of links, as curves over sizes for each number of ranks.

#include <span>
#include <vector>

#include "analysis/predict/cluster.h"

namespace paceline::analysis {

/// Between two timed sizes the time is interpolated in logarithms. Beyond them, and for numbers of ranks that
/// were not timed, the formulas give it, times what the nearest timed ones took of theirs.
class LinkTable {
 public:
  /// `reference`: whose formulas are meant; a cluster of fixed ranges without tables.
  ///
  /// Requires  at least one time, all positive and finite, of at least 2 ranks
  LinkTable(Cluster reference, std::span<const TimedAllReduce> timed);

  /// The factor by which formula_cost() of the reference is to be multiplied.
  ///
  /// Cost     a second formula, a binary search, two logarithms
  [[nodiscard]] double measured_over_formula(int workers, double bytes) const;

  /// Whether this number of ranks was timed.
  [[nodiscard]] bool has(int workers) const;
  /// Standard deviation of the logarithms of measured over formula, over all that was timed: how far formulas
  /// are from the truth that carry it to another number of ranks.
  [[nodiscard]] double spread() const { return spread_; }

 private:
  struct Curve {
    int ranks = 0;
    std::vector<double> log_bytes, log_seconds;  ///< ascending bytes
  };
  [[nodiscard]] double log_factor(const Curve& curve, double bytes) const;

  Cluster reference_;
  std::vector<Curve> curves_;  ///< ascending ranks
  double spread_ = 0;
};

}  // namespace paceline::analysis
