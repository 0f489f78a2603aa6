#pragma once

/// Carries GPUs' arrays with NCCL and leaves everything else to a communicator of the host.
///
/// For GPUs of one process (a thread each) or of many. The host's communicator keeps votes, counts, barriers,
/// deadlines and the naming of lost ranks, and distributes NCCL's id, so launchers work as without NCCL.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/archive.h"
#include "comm/communicator.h"
#include "comm/nccl/api.h"

namespace paceline::comm::nccl {

/// The memory that NCCL uses on each GPU for its channels, for the memory plan. An estimate that was not
/// measured: the real size depends on the links, NCCL_BUFFSIZE and NCCL_MAX_NCHANNELS.
inline constexpr std::int64_t kBufferBytes = 400'000'000;

struct Options {
  /// Returns NCCL's functions.
  ///
  /// Errors   Error(device): why there are none
  /// Threads  any
  std::function<const Api&()> open = open_nccl;
  std::chrono::milliseconds deadline{60000};         ///< as of the wrapped communicators
  bool is_blocking = nccl::is_blocking();            ///< whether calls of NCCL block
  std::function<void(const std::string&)> say = {};  ///< prints rank 0's messages; may be empty
  /// Called once by a rank that has failed, when a call of NCCL or of its device does not return; gets rank,
  /// call and collective. Nothing can end the thread in this call, so the communicators cannot be destroyed
  /// either: the process has to be ended. Must be quick; called from a thread of the rank.
  std::function<void(const std::string&)> hangs = {};
};

/// What a rank says of itself before the ranks decide whether NCCL joins them.
struct Offer {
  std::string device;   ///< bus id and host
  std::string uuid;     ///< of the device; empty: unknown
  std::string machine;  ///< the kernel's boot id: two machines may have one name
  std::string problem;  ///< why this rank cannot; empty: it can
};
template <typename A>
void fields(A& archive, base::In<A, Offer>& value) {
  base::each_member(archive, value.device, value.uuid, value.machine, value.problem);
}
/// Why NCCL cannot join these ranks; empty if it can.
[[nodiscard]] std::string why_not_joined(std::span<const Offer> offers);

/// Wraps each of `inner` so that it accepts devices' arrays too (host_staging.h).
///
/// The first array() in a device's memory decides, on all ranks alike. NCCL is used if every rank has the
/// library, a device of its own, and a memory with side streams. Else inner carries the arrays, and rank 0
/// says why in one sentence. From then on name() is "nccl", or inner's. A memory is recognised by its
/// address, so its engine must live as long as its arrays are used here.
///
/// Reductions run on a stream beside the engine's and begin after the work that the engine was given; wait()
/// orders the engine's later work after them. Sums are the same bits on all ranks, in an order of NCCL's own
/// that depends on the array's length, so sums_in_tree() is false. After demand_tree() all parts are gathered
/// and added on the device in the tree of base/summation_tree.h; that moves size() times the bytes and needs
/// a buffer of that size, which reserve() allocates.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> around(
    std::vector<std::unique_ptr<Communicator>> inner, const Options& options);

}  // namespace paceline::comm::nccl
