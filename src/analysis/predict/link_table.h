#pragma once

/// All-reduces that were timed over one level of links, as curves over sizes for each number of ranks.

#include <span>
#include <vector>

#include "analysis/predict/cluster.h"

namespace paceline::analysis {

/// Keeps how many times longer than their formula they took. Between two timed sizes, and two numbers of
/// ranks, this factor is interpolated in logarithms; beyond them it stays that of the nearest.
class LinkTable {
 public:
  /// `reference`: whose formulas are meant; a cluster of fixed ranges without tables.
  ///
  /// Requires  at least one time, all positive and finite, of at least 2 ranks
  LinkTable(const Cluster& reference, std::span<const TimedAllReduce> timed);

  /// The factor by which formula_cost() of the reference is to be multiplied.
  ///
  /// Cost     a binary search, a logarithm and a power
  [[nodiscard]] double measured_over_formula(int workers, double bytes) const;

  /// Whether this number of ranks was timed.
  [[nodiscard]] bool has(int workers) const;
  /// Standard deviation of the logarithms of measured over formula, over all that was timed: how far formulas
  /// are from the truth that carry it to another number of ranks.
  [[nodiscard]] double spread() const { return spread_; }

 private:
  struct Curve {
    int ranks = 0;
    std::vector<double> log_bytes, log_factors;  ///< ascending bytes
    [[nodiscard]] double log_factor(double log_bytes_asked) const;
  };

  std::vector<Curve> curves_;  ///< ascending ranks
  double spread_ = 0;
};

}  // namespace paceline::analysis
