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

namespace paceline::analysis {

/// How the workers of a record are joined.
///
/// Returns  "threads of one process", "threads of one process, data-parallel", "2 processes of one node",
///          "4 processes of 2 nodes, 2 threads each", "..., by messages" where a node's memory was not used
[[nodiscard]] std::string way_of(const measure::Record& record);

struct Way {
  std::string name;                             ///< way_of()
  std::vector<const measure::Record*> records;  ///< its repeats
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
  std::string label;  ///< of the cell: "b 64, N 2"
  std::vector<Way> ways;
  std::size_t fastest = 0;  ///< index of the shortest step
};

/// Of measured cells with several workers that differ in nothing else: settings (but those that say how
/// workers are joined), model, data, batches, precision, device, cores of a worker.
[[nodiscard]] std::vector<WaysOfOne> ways(std::span<const Cell> cells);

}  // namespace paceline::analysis
