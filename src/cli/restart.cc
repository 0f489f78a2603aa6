#include "cli/restart.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "train/checkpoint.h"

namespace paceline::cli {
namespace {

// A signal handler has no argument of ours.
std::atomic<pid_t> child{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);

extern "C" void pass_on(int signal) {
  const int saved = errno;
  if (child > 0) ::kill(child, signal);
  errno = saved;
}

/// While one lives, signals that ask this process to end go to its child, which ends first.
class PassOn {
 public:
  PassOn() {
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    action.sa_handler = pass_on;
    ::sigaction(SIGTERM, &action, &term_);
    ::sigaction(SIGHUP, &action, &hup_);
    action.sa_handler = SIG_IGN;  // the terminal has sent it to the child as well
    ::sigaction(SIGINT, &action, &int_);
  }
  ~PassOn() {
    ::sigaction(SIGTERM, &term_, nullptr);
    ::sigaction(SIGHUP, &hup_, nullptr);
    ::sigaction(SIGINT, &int_, nullptr);
  }
  PassOn(const PassOn&) = delete;
  PassOn& operator=(const PassOn&) = delete;

  /// What signals did before: for the child, which handles its own.
  void restore_in_child() const {
    ::sigaction(SIGTERM, &term_, nullptr);
    ::sigaction(SIGHUP, &hup_, nullptr);
    ::sigaction(SIGINT, &int_, nullptr);
  }

 private:
  struct sigaction term_ {
  }, hup_{}, int_{};
};

[[noreturn]] void fail_to_start(const std::string& program, int error) {
  base::fail(base::ErrorKind::comm,
             "launch: {} cannot be started: {}; install it (Debian: apt-get install openmpi-bin)", program,
             std::strerror(error));
}

}  // namespace

bool is_worth_a_restart(int exit_code) {
  if (exit_code == static_cast<int>(base::ErrorKind::comm)) return true;
  const int signal = exit_code - 128;
  return signal > 0 && signal != SIGINT && signal != SIGTERM && signal != SIGHUP;
}

int exit_code_of_launch(int exit_code) {
  return is_worth_a_restart(exit_code) ? static_cast<int>(base::ErrorKind::comm) : exit_code;
}

std::vector<std::string> restart_words(const std::filesystem::path& out) {
  if (!train::checkpoints_in(out).empty()) return {"--resume", out.string()};
  std::error_code ignored;  // what cannot be removed the run will name
  std::filesystem::remove(out / "record.json", ignored);
  return {};
}

int run_line(const std::vector<std::string>& line) {
  std::vector<char*> words;
  for (const auto& word : line) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int ends[2];  // closed by a successful exec; else it brings the reason
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_to_start(line.front(), errno);
  const PassOn signals;
  const pid_t started = ::fork();
  if (started == 0) {
    signals.restore_in_child();
    ::execvp(words[0], words.data());
    const int reason = errno;
    [[maybe_unused]] const auto written = ::write(ends[1], &reason, sizeof reason);
    ::_exit(127);
  }
  const int fork_error = errno;
  ::close(ends[1]);
  int reason = started < 0 ? fork_error : 0;
  child = started;
  while (started > 0 && ::read(ends[0], &reason, sizeof reason) < 0 && errno == EINTR) {
  }
  ::close(ends[0]);
  int status = 0;
  while (started > 0 && ::waitpid(started, &status, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  if (reason != 0) fail_to_start(line.front(), reason);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_with_restarts(const std::vector<std::string>& line, int restarts,
                      const std::function<std::vector<std::string>(int attempt)>& again) {
  int code = run_line(line);
  for (int attempt = 1; attempt <= restarts && is_worth_a_restart(code); ++attempt) {
    code = run_line(again(attempt));
  }
  return code;
}

}  // namespace paceline::cli
