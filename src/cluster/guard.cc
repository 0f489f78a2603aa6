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
#include <system_error>

#include "base/process.h"
#include "base/text.h"
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

void ExitWatchdog::begin(const std::string& text, base::ErrorKind kind) {
  if (thread_.joinable()) return;
  const auto end = [this, text, kind, within = time_to_end()](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const bool hangs = wake_.wait_for(lock, stop, within, [this] { return !hang_.empty(); });
    if (hangs) wake_.wait_for(lock, stop, kToEndWithoutGpu, [] { return false; });
    if (stop.stop_requested()) return;
    log_line(hangs ? fmt::format("{}; this process cannot end by itself: {}; it is ended", text, hang_)
                   : fmt::format("{}; this process has not ended {} s after that, most likely in a read "
                                 "or write that hangs; it is ended",
                                 text, within.count()));
    Guard::dismiss();
    std::_Exit(static_cast<int>(kind));
  };
  try {
    thread_ = std::jthread(end);
  } catch (const std::system_error&) {
    // The system refuses threads, which most likely made the run fail; it then ends without a watchdog.
  }
}

void ExitWatchdog::hurry(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (hang_.empty()) hang_ = what;
  wake_.notify_one();
}

}  // namespace paceline::cluster
