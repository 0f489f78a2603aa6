#pragma once

/// How this rank's clock stands to rank 0's: steady clocks of two hosts count from different moments.

#include "comm/communicator.h"

namespace paceline::train {

struct ClockOffset {
  double seconds = 0;  ///< this rank's clock minus rank 0's
  double error_s = 0;  ///< the truth lies within this, either way
};

/// The offset at this moment. An all-gather ends nowhere before it has begun everywhere: each round bounds
/// the offset from above and from below, the tightest bounds of all rounds count, and the answer lies between
/// them. Collective.
///
/// Cost     32 small all-gathers. Drift (some microseconds a second between two hosts) is not followed
/// Source   Cristian, Distributed Computing 3 (1989), with bounds instead of a symmetric delay
[[nodiscard]] ClockOffset clock_offset(comm::Communicator& communicator);

}  // namespace paceline::train
