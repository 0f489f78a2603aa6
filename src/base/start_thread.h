#pragma once

/// Starts threads, and makes the error for a thread that the system refuses. The system says EAGAIN for every
/// limit, so the error lists the limits that are set.

#include <functional>
#include <string>
#include <system_error>
#include <thread>

#include "base/cgroup.h"
#include "base/error.h"

namespace paceline::base {

/// Starts a thread, as start_thread() does; tests pass a function that fails.
using StartThread = std::function<std::jthread(std::function<void()>)>;

/// Errors   std::system_error when the system refuses
[[nodiscard]] std::jthread start_thread(std::function<void()> work);

/// Whether `error` means that the system refused a thread.
[[nodiscard]] bool is_refused_thread(const std::system_error& error);

/// The Error(device) to throw instead. `which` begins the sentence: "worker thread 2 of 4".
[[nodiscard]] Error refused_thread(const std::string& which, const std::system_error& error,
                                   const CgroupLimits& cgroup = cgroup_limits());

}  // namespace paceline::base
