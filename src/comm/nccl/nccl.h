#pragma once

/// Carries arrays of GPUs with NCCL, and leaves everything else to a communicator of the host.
///
/// GPUs of one process (a thread each) and of many. The host's communicator keeps votes, counts, barriers,
/// the naming of lost ranks and deadlines, and hands out NCCL's id; so launchers work as without NCCL.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/nccl/api.h"

namespace paceline::comm::nccl {

/// What NCCL takes of a GPU for its channels when it joins several. A guess until GPUs tell: it depends on
/// how they are linked, and on NCCL_BUFFSIZE and NCCL_MAX_NCHANNELS.
inline constexpr std::int64_t kBufferBytes = 400'000'000;

struct Options {
  /// NCCL's functions. Errors   Error(device): why there are none. Threads   any
  std::function<const Api&()> open = open_nccl;
  std::chrono::milliseconds deadline{60000};         ///< as the communicators' below
  std::function<void(const std::string&)> say = {};  ///< hears rank 0's sentences; may be empty
};

/// Communicators around `inner`, one each, which carry devices' arrays too (host_bounce.h).
///
/// The first array() in a device's memory decides, on all ranks alike: NCCL carries what lies there if every
/// rank has the library, a device of its own and a memory that gives side streams; else inner does, and rank
/// 0 says why in one sentence. name() is "nccl" from then on, or inner's. A memory is known by its address:
/// the engine of the last one lives while this is used for its arrays.
///
/// Reductions are put on a stream beside the engine's and begin behind what the engine was given; wait()
/// orders the engine behind them. Sums are the same bits on all ranks, in an order of NCCL's own, which
/// depends on the length of the array: sums_in_tree() is false. After demand_tree() all parts are gathered
/// and added on the device in the tree of base/summation_tree.h: size() times the bytes, and a buffer of so
/// many.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> around(
    std::vector<std::unique_ptr<Communicator>> inner, const Options& options);

}  // namespace paceline::comm::nccl
