#include "cluster/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/guard.h"

namespace paceline::cluster {
namespace {

// A signal handler gets no argument, so its data must be global; lock-free atomics only.
std::atomic<int> first_signal{0};
std::atomic<std::int64_t> first_at_ms{0};
std::atomic<bool> has_repeated{false};
std::atomic<bool> is_suspended{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

constexpr std::array kSignals{SIGTERM, SIGINT, SIGHUP, SIGTSTP};
/// The former actions of the signals.
std::array<struct sigaction, kSignals.size()> earlier_actions;

extern "C" void note_signal(int signal) {
  if (signal == SIGTSTP) {
    is_suspended = true;
    return;
  }
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal))
    first_at_ms = now_ms();
  else if (now_ms() - first_at_ms >= kSameSignalMs)
    has_repeated = true;
}

// A signal handler gets no argument, so its data must be global; lock-free atomics only.
std::atomic<int> caught_signal{0};
std::atomic<int> pipe_end{-1};
std::atomic<std::int64_t> caught_at{0};  ///< ms
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

struct sigaction previous_int, previous_term, previous_hup;
int pipe_ends[2] = {-1, -1};

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
  int none = 0;
  if (!caught_signal.compare_exchange_strong(none, signal)) {
    if (now_ms() - caught_at < kSameSignalMs) {
      errno = saved;
      return;
    }
    write_all(STDERR_FILENO,
              "\npaceline: stopped at once; the record of this run is as it was last written\n");
    Guard::dismiss();
    ::_exit(128 + signal);
  }
  caught_at = now_ms();
  write_all(pipe_end.load(), "s");
  errno = saved;
}

}  // namespace

StopRequest::StopRequest() {
  first_signal = 0;
  has_repeated = is_suspended = false;
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  action.sa_handler = note_signal;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &earlier_actions[i]);
    const bool is_ignored =
        earlier_actions[i].sa_handler == SIG_IGN && (kSignals[i] == SIGHUP || kSignals[i] == SIGTSTP);
    if (!is_ignored) ::sigaction(kSignals[i], &action, nullptr);
  }
}

StopRequest::~StopRequest() { restore_in_child(); }

void StopRequest::restore_in_child() const {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &earlier_actions[i], nullptr);
}

int StopRequest::signal() const { return first_signal; }

bool StopRequest::is_urgent() const { return has_repeated; }

bool StopRequest::take_suspension() const { return is_suspended.exchange(false); }

bool StopRequest::wait(std::chrono::milliseconds time) const {
  constexpr auto kLook = std::chrono::milliseconds(20);
  for (const auto end = base::Clock::now() + time; first_signal == 0 && base::Clock::now() < end;)
    std::this_thread::sleep_for(kLook);
  return first_signal != 0;
}

Interrupt::Interrupt(std::function<bool()> silent) {
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0)
    base::fail(base::ErrorKind::device,
               "no pipe could be made to listen for Ctrl-C (errno {}); too many open files?", errno);
  caught_signal = 0;
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
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &previous_int);
  ::sigaction(SIGTERM, &action, &previous_term);
  // SIGHUP: the terminal closes. Ignored under nohup, whose purpose is to outlive the terminal.
  ::sigaction(SIGHUP, nullptr, &previous_hup);
  if (previous_hup.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &previous_int, nullptr);
  ::sigaction(SIGTERM, &previous_term, nullptr);
  ::sigaction(SIGHUP, &previous_hup, nullptr);
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
