#include "cluster/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/guard.h"

namespace paceline::cluster {
namespace {

// A signal handler gets no argument, so its data must be global; lock-free atomics only. What was recorded is
// forgotten when other SignalActions begin.
std::atomic<int> caught_signal{0};
std::atomic<std::int64_t> caught_at{0};  ///< ms
std::atomic<bool> has_repeated{false}, is_suspended{false};
std::atomic<int> pipe_end{-1};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

int pipe_ends[2] = {-1, -1};

std::int64_t now_ms() { return static_cast<std::int64_t>(1e3 * base::seconds_of(CLOCK_MONOTONIC)); }

/// Records the first signal; for another one, whether it is a second Ctrl-C. `timeout` and shells signal a
/// process and then its group, so the process gets the same signal twice within moments.
bool is_second(int signal) {
  constexpr std::int64_t kSameSignalMs = 300;
  int none = 0;
  if (!caught_signal.compare_exchange_strong(none, signal)) return now_ms() - caught_at >= kSameSignalMs;
  caught_at = now_ms();
  return false;
}

extern "C" void note_signal(int signal) {
  if (signal == SIGTSTP)
    is_suspended = true;
  else if (is_second(signal))
    has_repeated = true;
}

/// Writes nothing if that would wait: a terminal stopped by Ctrl-S must not keep the second Ctrl-C waiting.
///
/// Threads  any; also in a signal handler
void write_all(int descriptor, std::string_view text) {
  pollfd out{.fd = descriptor, .events = POLLOUT, .revents = 0};
  if (::poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0 || (out.revents & POLLERR) != 0) return;
  while (!text.empty()) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

extern "C" void on_signal(int signal) {
  const int saved = errno;
  if (is_second(signal)) {
    write_all(STDERR_FILENO,
              "\npaceline: stopped at once; the record of this run is as it was last written\n");
    Guard::dismiss();
    ::_exit(128 + signal);
  }
  write_all(pipe_end.load(), "s");
  errno = saved;
}

}  // namespace

SignalActions::SignalActions(std::initializer_list<int> signals, void (*handler)(int)) {
  caught_signal = 0;
  has_repeated = is_suspended = false;
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  action.sa_handler = handler;
  for (const int signal : signals) {
    struct sigaction former {};
    ::sigaction(signal, nullptr, &former);
    former_.emplace_back(signal, former);
    const bool stays_ignored = former.sa_handler == SIG_IGN && (signal == SIGHUP || signal == SIGTSTP);
    if (!stays_ignored) ::sigaction(signal, &action, nullptr);
  }
}

void SignalActions::restore() const {
  for (const auto& [signal, former] : former_) ::sigaction(signal, &former, nullptr);
}

StopRequest::StopRequest() : actions_({SIGTERM, SIGINT, SIGHUP, SIGTSTP}, note_signal) {}

int StopRequest::signal() const { return caught_signal; }

bool StopRequest::is_urgent() const { return has_repeated; }

bool StopRequest::take_suspension() const { return is_suspended.exchange(false); }

bool StopRequest::wait(std::chrono::milliseconds time) const {
  constexpr auto kLook = std::chrono::milliseconds(20);
  for (const auto end = base::Clock::now() + time; signal() == 0 && base::Clock::now() < end;)
    std::this_thread::sleep_for(kLook);
  return signal() != 0;
}

Interrupt::Interrupt(std::function<bool()> silent) {
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0)
    base::fail(base::ErrorKind::device,
               "no pipe could be made to listen for Ctrl-C (errno {}); too many open files?", errno);
  pipe_end = pipe_ends[1];
  watcher_ = std::jthread([this, silent = std::move(silent)] {
    char byte = 0;
    while (::read(pipe_ends[0], &byte, 1) < 0 && errno == EINTR) {
    }
    if (byte != 's') return;  // the end of the run
    source_.request_stop();
    if (silent && silent()) return;
    write_all(
        STDERR_FILENO,
        "\npaceline: stopping after this step and keeping the record; press Ctrl-C again to stop at once\n");
  });
  actions_.emplace({SIGINT, SIGTERM, SIGHUP}, on_signal);
}

Interrupt::~Interrupt() {
  actions_.reset();
  write_all(pipe_ends[1], "e");
  watcher_.join();
  pipe_end = -1;
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

void Interrupt::hear(int signal) {
  heard_ = std::max(heard_.load(), signal);
  source_.request_stop();
}

int Interrupt::signal() const { return std::max(caught_signal.load(), heard_.load()); }

int Interrupt::exit_code() const { return signal() == 0 ? 0 : 128 + signal(); }

}  // namespace paceline::cluster
