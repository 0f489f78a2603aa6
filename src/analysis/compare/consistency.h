#pragma once

/// Finds faults and weaknesses of single records: sums given as means, worker counts that contradict the
/// steps, ledgers that do not close, steps that do not fit them, single timings.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/record.h"

namespace paceline::analysis {

struct Finding {
  bool is_error = false;  ///< the record contradicts itself; else a weakness that the reader must know
  std::string text;       ///< a sentence with the numbers
  std::string rule = {};  ///< its name in docs/check.md: "size.product"
};

[[nodiscard]] std::vector<Finding> check(const measure::Record& record);

/// In how many measured windows other programs used the processors or GPUs, and in how many it is not known.
/// A record counts if it has times of steps and does not contradict itself, or if others were there.
struct WindowsBesideOthers {
  long all = 0, disturbed = 0, unknown = 0;
  void add(const measure::Record& record);
  /// "in 14 of 19 measured windows, and of 5 it is not known"
  [[nodiscard]] std::string text() const;
};

/// Whether other programs used the processors during measurements: in how many windows, and how much at
/// worst. Nothing if they did not, or if no window knows.
[[nodiscard]] std::optional<Finding> busy(std::span<const measure::Record> records);

/// In how many windows the run stood still, and for how long at worst. Nothing if it did in none.
[[nodiscard]] std::optional<Finding> paused(std::span<const measure::Record> records);

/// The first error of check(). Figures of a record with an error are not used, since it is unknown which of
/// them are true.
[[nodiscard]] std::optional<std::string> contradiction(const measure::Record& record);

/// The number of workers implied by `steps_per_epoch`: samples / (steps x local batch), rounded. 3,120 steps
/// in 40 epochs of 60,000 samples at 128 per worker imply 6 workers.
[[nodiscard]] long implied_workers(std::int64_t samples, std::int64_t steps_per_epoch,
                                   std::int64_t local_batch);

/// The largest relative difference between ledger and wall time.
inline constexpr double kClosure = 0.01;

}  // namespace paceline::analysis
