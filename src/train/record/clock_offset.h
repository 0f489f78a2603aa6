#pragma once

/// Measures the offset between this rank's clock and rank 0's; steady clocks of two hosts have different
/// origins.

#include "comm/communicator.h"

namespace paceline::train {

struct ClockOffset {
  double seconds = 0;  ///< this rank's clock minus rank 0's
  double error_s = 0;  ///< bound of the error in either direction
};

/// The current offset. No rank leaves an all-gather before all have entered it, so each round bounds the
/// offset from above and from below. The result is the middle of the tightest bounds of all rounds.
/// Collective.
///
/// Cost     32 small all-gathers. Drift (some microseconds a second between two hosts) is not corrected
/// Source   Cristian, Distributed Computing 3 (1989), with bounds instead of a symmetric delay
[[nodiscard]] ClockOffset clock_offset(comm::Communicator& communicator);

}  // namespace paceline::train
