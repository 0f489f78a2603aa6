#pragma once

/// The same workers joined in several ways: threads of one process, processes of one node or of several, or
/// one worker in the middle (--parallel data-parallel). Where the same training was measured in more than one
/// way, the ways stand beside each other with what each sends, what it takes, and its memory.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/by_worker.h"
#include "analysis/cell.h"
#include "analysis/comparability.h"

namespace paceline::analysis {

/// compare() of times, where how the workers are joined is what is compared: neither the settings parallel,
/// placement and shared-memory nor the communicator are refused or remarked.
[[nodiscard]] Verdict compare_ways(const measure::Record& baseline, const measure::Record& other);

/// joined_as() of each cell; the same where two cells are joined alike, else with what tells them apart:
/// "2 processes by messages, launcher slurm".
[[nodiscard]] std::vector<std::string> names_of_ways(const std::vector<const Cell*>& cells);

struct Way {
  std::string name;  ///< of names_of_ways()
  const Cell* cell = nullptr;
  std::vector<const measure::Record*> records;  ///< its repeats: those of `cell`
  Estimate step_s, images_per_s;
  std::optional<double> sent, received;    ///< bytes a step by worker 0, counted
  std::optional<double> sent_by_all;       ///< bytes a step by all workers
  std::optional<std::int64_t> peak_bytes;  ///< of all processes together
  Estimate longer;                         ///< its step over that of the fastest way
  /// Slower than the fastest beyond the error of both; the fastest itself is not.
  [[nodiscard]] bool is_slower() const { return has_interval(longer) && longer.low > 1; }
};

/// One training on so many workers, in at least two ways, in the order of the records.
struct WaysOfOne {
  std::string label;  ///< "b 64, N 2", with what tells it from another training of that size
  std::vector<Way> ways;
  std::size_t fastest = 0;  ///< index of the shortest step
};

/// Of measured cells with several workers whose set-ups differ in nothing else than how workers are joined
/// and on which cores they run. A way is one cell: what the repeats of a cell share, those of a way do.
/// Lifetime  looks into `cells`
[[nodiscard]] std::vector<WaysOfOne> ways(std::span<const Cell> cells);

}  // namespace paceline::analysis
