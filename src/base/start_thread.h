#pragma once

/// Threads that the system may refuse. It says EAGAIN whichever limit was met, so the limits that are set
/// stand in the sentence.

#include <functional>
#include <string>
#include <system_error>
#include <thread>

#include "base/cgroup.h"
#include "base/error.h"

namespace paceline::base {

/// Starts a thread, as start_thread does; a test gives one that refuses.
using StartThread = std::function<std::jthread(std::function<void()>)>;

/// Errors   std::system_error when the system refuses
[[nodiscard]] std::jthread start_thread(std::function<void()> work);

/// Whether `error` is that.
[[nodiscard]] bool is_refused_thread(const std::system_error& error);

/// What to throw in its place: an Error(device). `which` begins the sentence: "worker thread 2 of 4".
[[nodiscard]] Error refused_thread(const std::string& which, const std::system_error& error,
                                   const CgroupLimits& cgroup = cgroup_limits());

}  // namespace paceline::base
