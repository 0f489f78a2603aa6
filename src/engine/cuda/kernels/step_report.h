#pragma once

/// The kernels at both ends of a queued step, for which the host does not wait: WriteVotes writes this rank's
/// votes after the gradients, JudgeVotes reads the sum over ranks and decides about the update.
///
///     SoftmaxLoss -> LossFold -> WriteVotes ... (sum over ranks) -> JudgeVotes -> Update, RunningStatistics
///
/// Votes are engine::kVoteFloats floats, as train/step/loss_guard.h defines them on the host.

#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/kernels/softmax_cross_entropy.h"

namespace paceline::engine::cuda {

constexpr int kVotes = 8;
enum VoteIndex { kVoteStop, kVoteNotFinite, kVoteEnough, kVoteLoss };

/// The report of a step to the host. The device has one in its own memory, to which passes add.
struct StepReport {
  LossResult local;     ///< sums of this rank over all passes of the step
  float votes[kVotes];  ///< sums over all ranks
  std::int32_t is_left_out;
  double gradient_norm;  ///< before it was clipped (clip.h); not written where it is not
  /// By SquaresOf: sums of squares of gradients (gradient_squares.h); 0 where nobody asked for them.
  double squares[2];
};

/// Adds the result of a pass to the result of its step, and rewrites this rank's votes.
///
/// Cost   one thread, some microseconds
struct WriteVotes {
  const LossResult* result;  ///< of the pass
  const StepNumbers* numbers;
  StepReport* report;
  float* votes;

  [[nodiscard]] Grid grid() const { return {.blocks = 1, .threads = 1, .shared_bytes = 0}; }
  PACELINE_HD void run(const ThreadIndex&) const {
    LossResult sum = *result;
    if (numbers->is_first_pass == 0) {
      sum.loss += report->local.loss;
      sum.correct += report->local.correct;
    } else {
      report->squares[0] = report->squares[1] = 0;
    }
    report->local = sum;
    const bool is_finite = sum.loss - sum.loss == 0;
    votes[kVoteStop] = numbers->stop != 0 ? 1.0f : 0.0f;
    votes[kVoteNotFinite] = is_finite ? 0.0f : 1.0f;
    votes[kVoteEnough] = numbers->enough != 0 ? 1.0f : 0.0f;
    // 2^35: 59 bits with the fraction, which fit into five parts of 12.
    constexpr double kMost = 34359738368.0;
    double told = is_finite ? sum.loss : 0;
    told = told < 0 ? 0 : told > kMost ? kMost : told;
    // The value is a multiple of 2^-24, so nothing is rounded.
    auto left = static_cast<std::uint64_t>(told * 16777216.0);
    for (int part = kVoteLoss; part < kVotes; ++part, left >>= 12)
      votes[part] = static_cast<float>(left & 4095u);
  }
};

/// Decides whether the step's update happens, and reports the step to the host. If the loss of any rank is
/// not finite, all updates are skipped until the host sets `is_halted` to 0.
///
/// The report goes into the host's memory from here: so small a copy would keep the stream for longer than
/// this kernel, since another engine of the device makes it.
struct JudgeVotes {
  const float* votes;  ///< sums over all ranks
  const StepNumbers* numbers;
  const StepReport* report;  ///< of the step's passes
  std::int32_t* is_halted;

  [[nodiscard]] Grid grid() const { return {.blocks = 1, .threads = 1, .shared_bytes = 0}; }
  PACELINE_HD void run(const ThreadIndex&) const {
    if (!(votes[kVoteNotFinite] == 0)) *is_halted = 1;
    StepReport& told = *numbers->report;
    told.local = report->local;
    for (int i = 0; i < kVotes; ++i) told.votes[i] = votes[i];
    told.is_left_out = *is_halted;
    for (int i = 0; i < 2; ++i) told.squares[i] = report->squares[i];
  }
};

}  // namespace paceline::engine::cuda
