#pragma once

/// Lets communicators of the host reduce a device's arrays: copies them to the host, reduces there, and
/// copies the result back.
///
/// It is used where no library joins the devices: several workers on one GPU, GPUs without NCCL. The sums are
/// those of the wrapped communicator, bit for bit.

#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace paceline::comm {

/// Wraps each of `inner` so that it accepts devices' arrays as well as the host's. Other calls are forwarded.
///
/// all_reduce() and reduce_scatter() of a device's array read it before they return, so they wait for the
/// work that computes it. wait() writes the result; the array is complete only after wait(). Timing: `posted`
/// is when the array has been read; `done` is when the wrapped reduction was done, plus the time for writing
/// this result and earlier ones.
///
/// Cost     beside inner's: each array twice over the device's bus, and a copy in the host's memory
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> host_staging(
    std::vector<std::unique_ptr<Communicator>> inner);

}  // namespace paceline::comm
