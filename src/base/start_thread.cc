#include "base/start_thread.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace paceline::base {
namespace {

/// Empty where there is no limit.
std::optional<std::uint64_t> limit_of(decltype(RLIMIT_NPROC) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::string limits_set(const CgroupLimits& cgroup) {
  std::vector<std::string> limits;
  if (const auto threads = limit_of(RLIMIT_NPROC))
    limits.push_back(fmt::format("ulimit -u {} (processes and threads of this user)", *threads));
  if (cgroup.threads)
    limits.push_back(
        fmt::format("pids.max {} (processes and threads of this control group)", *cgroup.threads));
  if (const auto bytes = limit_of(RLIMIT_AS))  // every thread has a stack
    limits.push_back(fmt::format("ulimit -v {} (KiB of addresses)", *bytes / 1024));
  return limits.empty() ? "only that of the machine (kernel.threads-max)"
                        : fmt::format("{}", fmt::join(limits, ", "));
}

}  // namespace

std::jthread start_thread(std::function<void()> work) { return std::jthread(std::move(work)); }

bool is_refused_thread(const std::system_error& error) {
  return error.code() == std::errc::resource_unavailable_try_again;
}

Error refused_thread(const std::string& which, const std::system_error& error, const CgroupLimits& cgroup) {
  return {
      ErrorKind::device,
      fmt::format("{} could not be started: {}; the limits here: {}; ask for fewer (--workers, --threads, "
                  "--loader-threads) or have the limit raised",
                  which, error.code().message(), limits_set(cgroup))};
}

}  // namespace paceline::base
