#include "cluster/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "cluster/guard.h"
#include "cluster/same_press.h"

namespace paceline::cluster {
namespace {

// A signal handler gets no argument, so its data must be global; lock-free atomics only.
std::atomic<int> caught_signal{0};
std::atomic<int> pipe_end{-1};
std::atomic<std::int64_t> caught_at{0};  ///< ms
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

struct sigaction previous_int, previous_term, previous_hup;
int pipe_ends[2] = {-1, -1};

void write_all(int descriptor, std::string_view text) {
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
    if (now_ms() - caught_at < kSamePressMs) {
      errno = saved;
      return;
    }
    write_all(STDERR_FILENO,
              "\npaceline: stopped at once; the record of this run is as it was last written\n");
    Guard::say_farewell();
    ::_exit(128 + signal);
  }
  caught_at = now_ms();
  write_all(pipe_end.load(), "s");
  errno = saved;
}

}  // namespace

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

int Interrupt::exit_code() const {
  const int signal = caught_signal.load();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace paceline::cluster
