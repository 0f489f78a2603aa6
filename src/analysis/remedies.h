#pragma once

/// What each remedy of a loss would give: the measured step of a cell replayed with something changed.
///
/// Own work, waiting and data wait of the typical rank stand still or shrink as the remedy says; exposed
/// transfer is replayed from the buckets' ready times (replay.h), which move with the backward pass. So
/// remedies interact: a faster backward pass hides less. Pure functions.

#include <cstdint>
#include <vector>

#include "analysis/waterfall.h"

namespace paceline::analysis {

enum class RemedyKind : std::uint8_t {
  larger_batch,    ///< twice the samples a step
  own_cores,       ///< compute as fast as alone
  even_ranks,      ///< the slowest rank as fast as the typical one
  quiet_host,      ///< no jitter
  bucket_size,     ///< the best size of buckets
  bf16_gradients,  ///< half the bytes; between processes
  faster_link,     ///< twice the bandwidth
  loader_threads,  ///< one more a worker
};

struct Remedy {
  RemedyKind kind = RemedyKind::larger_batch;
  LossPart part = LossPart::other;  ///< that it is for
  double alone = 0;                 ///< part of a step's time that it saves by itself, images for images
  double share = 0;                 ///< its Shapley value: its part of what all of them save together
  bool is_bound = false;            ///< the whole part is taken away: it saves at most so much
  double value = 0;  ///< bucket_size: megabytes; loader_threads: how many; larger_batch: the global batch
};

struct Remedies {
  std::vector<Remedy> list;  ///< that save 1 % alone, at most 6; largest first
  double all = 0;            ///< what all of them save together
  /// all - sum of each alone: below 0 they take from one another, above 0 one makes room for the next.
  [[nodiscard]] double interaction() const;
};

/// Of parts that are within noise there are no remedies. Cost: a replay for each of at most 64 sets
[[nodiscard]] Remedies remedies(const EfficiencyLoss& loss);

}  // namespace paceline::analysis
