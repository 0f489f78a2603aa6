#pragma once

/// What is wrong with, or must be said of, one record by itself: sums shown as means, worker counts that the
/// steps contradict, ledgers that do not close, steps that do not fit into them, single timings.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/disturbance.h"
#include "measure/record.h"

namespace paceline::analysis {

struct Finding {
  bool is_error = false;  ///< the record contradicts itself; else a weakness that the reader must know
  std::string text;       ///< a sentence with the numbers
  std::string rule = {};  ///< its name in docs/check.md: "size.product"
};

[[nodiscard]] std::vector<Finding> check(const measure::Record& record);

using measure::is_disturbed;
/// Whether other programs used the processors while something was measured, in how many windows and how much
/// at worst. Nothing where they did not, or where no window knows.
[[nodiscard]] std::optional<Finding> busy(std::span<const measure::Record> records);

/// The first error of check(): a record that has one answers no question, since nobody knows which of its
/// figures are true.
[[nodiscard]] std::optional<std::string> contradiction(const measure::Record& record);

/// Workers that `steps` an epoch imply: samples / (steps x local batch), rounded. 3,120 steps in 40 epochs of
/// 60,000 samples at 128 a worker are 6 workers.
[[nodiscard]] long implied_workers(std::int64_t samples, std::int64_t steps_per_epoch,
                                   std::int64_t local_batch);

/// The ledger may miss or exceed the wall time by this part.
inline constexpr double kClosure = 0.01;

}  // namespace paceline::analysis
