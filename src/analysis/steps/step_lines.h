#pragma once

/// Divides a measured step into lines (parts) that add up, with the waiting divided by cause. The waterfall
/// compares these lines.
///
/// All lines are those of the typical rank: the middle one by own work (the lower of two). In means over
/// ranks, a part of a slow rank's work would count as everybody's; from the typical rank's view all of it is
/// waiting.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/rng.h"
#include "measure/record.h"

namespace paceline::analysis {

// Replays the reductions of one step from the times at which buckets were ready: how long the step would
// have waited with another link or other buckets. Pure functions.
//
//     start_j = max(ready_j, end_{j-1})      buckets leave in the order posted, one after the other
//     end_j   = start_j + T(N, X_j)
//     exposed = max(0, end_last - end of backward)
//
// Exact for collectives that complete in order, as ours do (measure/spans.h). All times are seconds from the
// begin of the backward pass.

struct ReplayedBucket {
  double ready_s = 0;     ///< when its gradients are final and it is posted
  double transfer_s = 0;  ///< T(N, X): duration of its reduction once it is alone on the link
};

/// How long the step waits after its backward pass.
///
/// Cost     linear
[[nodiscard]] double exposed_seconds(std::span<const ReplayedBucket> buckets, double backward_s);

/// A message, or a bucket, and how long it took.
struct TimedMessage {
  double bytes = 0;
  double seconds = 0;  ///< a median, or a mean
};

/// T(X) = alpha + X / bandwidth for one number of workers, from its own buckets.
struct BucketLink {
  double alpha_s = 0;           ///< per reduction, whatever its size
  double seconds_per_byte = 0;  ///< 1 / bandwidth
  [[nodiscard]] double seconds(double bytes) const { return alpha_s + bytes * seconds_per_byte; }
};
/// The line through the times that minimises relative errors, with no negative part: sizes span decades, so
/// plain least squares would fit only the largest. Nothing if all have one size.
///
/// Requires  bytes and seconds above 0
[[nodiscard]] std::optional<BucketLink> line_of_times(std::span<const TimedMessage> messages);
/// The same of buckets that took time. Nothing if the largest is smaller than twice the smallest: similar
/// sizes do not determine the latency.
[[nodiscard]] std::optional<BucketLink> fit_buckets(std::span<const TimedMessage> buckets);

/// The same gradient cut into buckets of `bucket_bytes`. The time at which each would be ready is
/// interpolated linearly between the measured buckets. The rest at the end is a bucket of its own.
///
/// Shapes   ends [buckets]: bytes of the gradient up to the end of each measured bucket; ready_s [buckets]
[[nodiscard]] std::vector<ReplayedBucket> cut_buckets(std::span<const double> ends,
                                                      std::span<const double> ready_s, double bucket_bytes,
                                                      const BucketLink& link);

enum class Line : std::uint8_t {
  compute,     ///< forward and backward
  imbalance,   ///< waiting: the slowest rank's mean own work minus the typical rank's
  jitter,      ///< waiting: mean over steps of the largest own work, minus the largest mean own work
  other_wait,  ///< exposed waiting minus these two; negative if a part of the waiting was hidden
  latency,     ///< exposed transfer that would remain at infinite bandwidth
  transfer,    ///< the rest of exposed transfer
  data_wait,
  copy,
  update,
  other,
};
inline constexpr std::size_t kLines = 10;

/// Seconds per step.
struct StepLines {
  std::array<double, kLines> seconds{};
  [[nodiscard]] double& operator[](Line line) { return seconds[static_cast<std::size_t>(line)]; }
  [[nodiscard]] double operator[](Line line) const { return seconds[static_cast<std::size_t>(line)]; }
  [[nodiscard]] double total() const;
  StepLines& operator+=(const StepLines& other);
  [[nodiscard]] StepLines scaled(double factor) const;
};

/// The lines of one record, and random draws of what another run with as many listed steps could have given.
///
/// A draw takes blocks of 5 steps (longer ones in a long window: at most 200 blocks) with replacement.
/// Records have phases only for the whole window. So phases of own work are scaled by the drawn own work,
/// exposed ones by the rest of the drawn step.
class SampledSteps {
 public:
  /// Keeps no reference to the record.
  ///
  /// Requires  the record has ranks and steps
  explicit SampledSteps(const measure::Record& record);

  [[nodiscard]] const StepLines& lines() const { return lines_; }
  /// Cost     linear in blocks and ranks
  [[nodiscard]] StepLines draw(base::Rng& rng) const;

  [[nodiscard]] bool can_be_drawn() const { return blocks_.size() > 1; }  ///< else all draws are the same
  [[nodiscard]] bool knows_jitter() const { return knows_own_; }          ///< else it is in other_wait
  [[nodiscard]] bool knows_latency() const { return knows_latency_; }     ///< else it is in transfer
  [[nodiscard]] std::size_t typical() const { return typical_; }          ///< its index among the ranks
  [[nodiscard]] std::size_t slowest() const { return slowest_; }

 private:
  /// Sums over the steps of a block.
  struct Block {
    double steps = 0, step_s = 0, most_own_s = 0;
    std::vector<double> own_s;  ///< of each rank
  };
  void choose_ranks(const measure::Record& record);
  void add_blocks(const measure::Record& record);
  void split_waiting(StepLines& lines, double wait, double imbalance, double jitter) const;

  StepLines lines_;
  std::vector<Block> blocks_;
  std::size_t typical_ = 0, slowest_ = 0;
  bool knows_own_ = false, knows_latency_ = false;
  double wait_s_ = 0;  ///< exposed waiting of the typical rank
};

/// What the buckets of a record say about link and overlap.
struct BucketTimes {
  std::vector<double> ends;        ///< bytes of the gradient up to the end of each bucket
  std::vector<double> ready_s;     ///< mean of each
  std::vector<double> transfer_s;  ///< mean of each
  double backward_s = 0;           ///< of rank 0, per step
  std::optional<BucketLink> link;  ///< none: sizes are too similar
  double replayed_s = 0;           ///< mean over steps of the replayed exposed time
  double latency_share = 0;  ///< fraction of it due to latency alone, mean of both orders; with a link only
};
/// Nothing for one worker, or if ready times or transfers are not recorded.
[[nodiscard]] std::optional<BucketTimes> bucket_times(const measure::Record& record);

}  // namespace paceline::analysis
