#pragma once

/// Makes messages about a training that diverged, and checks that weights are finite.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "comm/communicator.h"

namespace paceline::train {

/// "the loss is no longer finite (nan on rank 1)". `loss` is that of rank `rank`. It may be finite: then
/// another rank's loss is not.
[[nodiscard]] std::string loss_not_finite(double loss, int rank);
/// "the test loss is no longer finite (inf)"
[[nodiscard]] std::string part_not_finite(std::string_view part, double loss);

/// Whether every value is finite on every rank. Collective; the same answer on every rank.
[[nodiscard]] bool is_finite_everywhere(std::span<const float> values, comm::Communicator& communicator);

/// Where a training diverged.
struct Divergence {
  std::int64_t step = 0;     ///< from 1
  std::int64_t updates = 0;  ///< of the whole training
  double lr = 0;
  std::string last_checkpoint;  ///< empty: there is no good one
  bool can_go_back = false;     ///< whether to suggest --on-nan rollback
};

/// A sentence: `what` happened, where, and what to try.
[[nodiscard]] std::string not_finite_sentence(const Divergence& where, std::string_view what);

}  // namespace paceline::train
