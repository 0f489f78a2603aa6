#pragma once

/// Estimates what each remedy of a loss of efficiency would recover, by replaying the measured step of a cell
/// with something changed.
///
/// Own work, waiting and data wait of the typical rank stay or shrink as the remedy says. Exposed transfer is
/// replayed from the times at which buckets are ready (step_lines.h), which move with the backward pass. So
/// remedies interact: a faster backward pass hides less. Pure functions.

#include <cstdint>
#include <vector>

#include "analysis/steps/waterfall.h"

namespace paceline::analysis {

enum class RemedyKind : std::uint8_t {
  larger_batch,    ///< twice the samples per step
  own_cores,       ///< compute as fast as alone
  even_ranks,      ///< the slowest rank as fast as the typical one
  quiet_host,      ///< no jitter
  bucket_size,     ///< the best bucket size
  bf16_gradients,  ///< half the bytes; between processes
  faster_link,     ///< twice the bandwidth
  loader_threads,  ///< one more per worker
};

struct Remedy {
  RemedyKind kind = RemedyKind::larger_batch;
  LossPart part = LossPart::other;  ///< the part that it reduces
  double alone = 0;                 ///< fraction of a step's time that it saves alone, for the same images
  double share = 0;                 ///< its Shapley value: its part of what all of them save together
  bool is_bound = false;            ///< an upper bound: the whole part is removed
  double value = 0;  ///< bucket_size: megabytes; loader_threads: their number; larger_batch: the global batch
};

struct Remedies {
  std::vector<Remedy> list;  ///< those that save 1 % alone, at most 6; largest first
  double all = 0;            ///< what all of them save together
  /// all - sum of each alone. Negative: their effects overlap. Positive: they help each other.
  [[nodiscard]] double interaction() const;
};

/// Parts that are within noise get no remedies.
///
/// Cost     a replay for each of at most 64 sets of remedies
[[nodiscard]] Remedies remedies(const EfficiencyLoss& loss);

}  // namespace paceline::analysis
