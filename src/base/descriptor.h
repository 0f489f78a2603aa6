#pragma once

/// A file descriptor that closes itself, and writes whose reader may be gone.

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

namespace paceline::base {

/// Owns a descriptor, which it closes; -1: none. Closing keeps errno.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(number_, -1); }
  void close() {
    const int error = errno;
    if (is_open()) ::close(release());
    errno = error;
  }

 private:
  int number_ = -1;
};

/// While it exists, a write to a reader that is gone fails with EPIPE and sends no signal. Keeps errno.
///
/// Threads  that of its construction alone
class NoSigpipe {
 public:
  NoSigpipe() {
    sigset_t pending;
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    const int error = errno;
    const timespec at_once{};
    // The signal also comes with a short write when the reader closes, before a write that fails.
    while (!was_pending_ && ::sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

}  // namespace paceline::base
