#pragma once

/// Computes the figures of each worker of a cell: what it did in a step, what it waited for, what it sent,
/// and its process's memory.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/compare/interval.h"

namespace paceline::analysis {

/// Seconds of one step, means over the steps of all repeats; they add up to the step.
struct WorkerShare {
  int rank = 0;
  int process = 0;       ///< in which it ran, from 0
  std::string host;      ///< empty: one process
  double compute_s = 0;  ///< forward, backward, update
  double data_wait_s = 0;
  double rest_s = 0;      ///< copy and other
  double transfer_s = 0;  ///< exposed: bytes move and the step has nothing else to do
  double waiting_s = 0;   ///< for a later rank
  std::optional<double> bytes_sent, bytes_received;  ///< per step; empty in older records
  std::optional<std::int64_t> peak_bytes;            ///< largest memory of its process, over the repeats

  /// Its own time of a step, without waiting for others.
  [[nodiscard]] double own_s() const { return compute_s + data_wait_s + rest_s; }
  [[nodiscard]] double step_s() const { return own_s() + transfer_s + waiting_s; }
  /// The fraction of a step in which it computes.
  [[nodiscard]] double utilisation() const { return step_s() > 0 ? compute_s / step_s() : 0; }
};

struct ByWorker {
  const Cell* cell = nullptr;
  std::vector<WorkerShare> workers;  ///< in the order of ranks
  std::size_t slowest = 0;           ///< index of the worker with the most own time
  std::size_t next = 1;              ///< the one with the most of the others
  /// How many seconds per step the slowest works more than the next: mean over repeats and its 95 % interval
  /// (Student). n = 1: one repeat, no interval.
  Estimate lead_s;
  /// Whether the lead is larger than the differences between repeats, so that the slowest is no accident.
  [[nodiscard]] bool is_told_apart() const { return lead_s.n > 1 && lead_s.low > 0; }
  double imbalance = 0;  ///< its own time over the mean of all, less 1
  /// The same of the slowest of each repeat, which may be another worker each time: mean over repeats.
  double imbalance_of_a_repeat = 0;
};

/// Nothing for a cell that is not measured or has one worker.
[[nodiscard]] std::optional<ByWorker> by_worker(const Cell& cell);

/// Whether no worker is slower than the others over all repeats, but in each of them one is.
[[nodiscard]] bool takes_turns(const ByWorker& workers);

/// Below this imbalance the slowest worker is the slowest by chance: clocks of equal cores differ by as much.
inline constexpr double kBalanced = 0.03;

}  // namespace paceline::analysis
