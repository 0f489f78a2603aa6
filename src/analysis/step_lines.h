#pragma once

/// A measured step as lines that add up, with the waiting taken apart: what the waterfall compares.
///
/// All lines are those of the typical rank: of the ranks by their own work the middle one (of an even number
/// the lower). Means over ranks would book a part of a slow rank's work as everybody's; seen from the typical
/// rank all of it is waiting.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/replay.h"
#include "base/rng.h"
#include "measure/record.h"

namespace paceline::analysis {

enum class Line : std::uint8_t {
  compute,     ///< forward and backward
  imbalance,   ///< waiting: the slowest rank's mean own work less the typical rank's
  jitter,      ///< waiting: mean over steps of the most own work less the most mean own work
  other_wait,  ///< exposed waiting less these two; negative where a part of the waiting was hidden
  latency,     ///< exposed transfer that is left at infinite bandwidth
  transfer,    ///< the rest of it
  data_wait,
  copy,
  update,
  other,
};
inline constexpr std::size_t kLines = 10;

/// Seconds a step.
struct StepLines {
  std::array<double, kLines> seconds{};
  [[nodiscard]] double& operator[](Line line) { return seconds[static_cast<std::size_t>(line)]; }
  [[nodiscard]] double operator[](Line line) const { return seconds[static_cast<std::size_t>(line)]; }
  [[nodiscard]] double total() const;
  StepLines& operator+=(const StepLines& other);
  [[nodiscard]] StepLines scaled(double factor) const;
};

/// The lines of one record, and draws of what another run of as many steps could have given.
///
/// A draw takes blocks of 5 steps (longer ones of a long window: 200 blocks at most), with replacement.
/// Phases are kept for the whole window only: those of own work are scaled by the drawn own work, exposed
/// ones by the rest of the drawn step.
class SampledSteps {
 public:
  /// Precondition: ranks and steps are there. Lifetime: keeps nothing of the record.
  explicit SampledSteps(const measure::Record& record);

  [[nodiscard]] const StepLines& lines() const { return lines_; }
  /// Cost: linear in blocks and ranks
  [[nodiscard]] StepLines draw(base::Rng& rng) const;

  [[nodiscard]] bool knows_jitter() const { return knows_own_; }       ///< else it is in other_wait
  [[nodiscard]] bool knows_latency() const { return knows_latency_; }  ///< else it is in transfer
  [[nodiscard]] std::size_t typical() const { return typical_; }       ///< its place among the ranks
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

/// What the buckets of a record say of the link and of the overlap.
struct BucketTimes {
  std::vector<double> ends;        ///< bytes of the gradient up to the end of each bucket
  std::vector<double> ready_s;     ///< mean, of each
  std::vector<double> transfer_s;  ///< mean, of each
  double backward_s = 0;           ///< of rank 0, a step
  std::optional<BucketLink> link;  ///< none: sizes too alike
  double replayed_s = 0;           ///< mean over steps of the replayed exposed time
  double latency_share = 0;  ///< of it, what latency alone leaves, mean of both orders; with a link only
};
/// Nothing for one worker, or where ready times or transfers are not recorded.
[[nodiscard]] std::optional<BucketTimes> bucket_times(const measure::Record& record);

}  // namespace paceline::analysis
