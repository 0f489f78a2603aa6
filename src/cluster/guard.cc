#include "cluster/guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>

#include "base/process.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "cluster/log.h"

namespace paceline::cluster {
namespace {

/// The end of a pipe to the child, which the system closes when this process ends; -1: there is no child.
std::atomic<int> to_child{-1};

/// What the child does until its parent has ended. Returns whether it may end at once: the parent said
/// goodbye, or it was killed here, where nobody waits for it any more.
bool watch(int from_parent, pid_t parent, std::chrono::seconds longest_stop, const std::string& sentence) {
  bool is_dismissed = false;
  for (std::chrono::seconds::rep looks = 0;;) {
    pollfd pipe{.fd = from_parent, .events = POLLIN, .revents = 0};
    char byte = 0;
    if (::poll(&pipe, 1, 1000) > 0) {
      if (::read(from_parent, &byte, 1) <= 0) return is_dismissed;
      is_dismissed = true;
      continue;
    }
    if (::getppid() != parent) return is_dismissed;  // another process has the other end of the pipe too
    // Counts checks instead of time, since no checks happen while this child is stopped too.
    looks = base::state_of_process(parent) == 'T' ? looks + 1 : 0;
    if (looks <= longest_stop.count()) continue;
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
    ::kill(parent, SIGKILL);
    return true;
  }
}

}  // namespace

Guard::Guard(const Options& options) {
  const auto sentence = fmt::format(
      "paceline: process {} on host {} (pid {}) has been stopped for {} s and was not continued; it is "
      "killed\n",
      options.process, base::host_name(), ::getpid(), options.longest_stop.count());
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child > 0) {
    to_child = pipe[1];  // pipe[0] stays open: a byte to a child that is gone must raise no SIGPIPE
    return;
  }
  if (child < 0) {
    for (const int end : pipe) ::close(end);
    return;
  }
  ::close(pipe[1]);
  ::prctl(PR_SET_PDEATHSIG, SIGCONT);  // a child that is stopped itself must notice the end too
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
    ::signal(signal, SIG_IGN);  // only SIGKILL ends it
  if (!watch(pipe[0], parent, options.longest_stop, sentence)) {
    const timespec moment{options.outlives.count() / 1000, options.outlives.count() % 1000 * 1000000};
    ::nanosleep(&moment, nullptr);
  }
  ::_exit(0);
}

void Guard::dismiss() {
  if (to_child < 0) return;
  [[maybe_unused]] const auto written = ::write(to_child, "", 1);
}

std::chrono::seconds time_to_end() {
  constexpr int kSeconds = 20;
  const char* const text = std::getenv("PACELINE_END_WITHIN");
  const int seconds = text == nullptr ? kSeconds : std::atoi(text);
  return std::chrono::seconds(seconds >= 1 ? seconds : kSeconds);
}

void ExitWatchdog::watch(std::function<std::optional<Failure>()> failure) {
  if (thread_.joinable()) return;
  thread_ =
      std::jthread([this, failure = std::move(failure), within = time_to_end()](const std::stop_token& stop) {
        constexpr std::chrono::milliseconds kLook(500);
        while (!base::stopped_within(stop, kLook)) {
          const auto failed = failure();
          const std::lock_guard lock(mutex_);
          const bool by_gpu = !hang_.empty() && base::Clock::now() - hangs_since_ >= kToEndWithoutGpu;
          if (!failed || (!by_gpu && base::Clock::now() - failed->known_at < within)) continue;
          const auto why = by_gpu ? fmt::format("cannot end by itself after the run failed: {}", hang_)
                                  : fmt::format(
                                        "has not ended {} s after the run failed, most likely in a read "
                                        "or write that hangs",
                                        within.count());
          if (!failed->unsaid.empty()) log_line(failed->unsaid);
          log_line(fmt::format("{} {}; it is ended", who_, why));
          Guard::dismiss();
          std::_Exit(static_cast<int>(failed->kind));
        }
      });
}

void ExitWatchdog::hurry(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (!hang_.empty()) return;
  hang_ = what;
  hangs_since_ = base::Clock::now();
}

}  // namespace paceline::cluster
