#pragma once

/// Carries arrays of a device over communicators of the host: reads them into the host's memory, reduces
/// there and writes the result back.
///
/// For devices that no library of their own joins: several workers on one GPU, GPUs without NCCL. The sums
/// are those of the communicator below, bit for bit.

#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace paceline::comm {

/// Communicators that carry devices' arrays as well as the host's, around `inner`, one each. Everything else
/// is as inner does it.
///
/// all_reduce() and reduce_scatter() of a device's arrays read the array before they return, so they wait for
/// the work that computes it; wait() writes the result. The array is complete after wait() only. Timing:
/// posted when the array has been read; done when the reduction below was done, plus what writing this result
/// and those before it took.
/// Cost     beside inner's: each array twice over the device's bus, and once more in the host's memory
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> host_bounce(
    std::vector<std::unique_ptr<Communicator>> inner);

}  // namespace paceline::comm
