#include "cli/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/error.h"

namespace paceline::cli {
namespace {

using std::chrono::milliseconds;

constexpr int kNoConnection = 255;  ///< ssh's

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

std::string program_of(const std::string& process) {
  std::error_code gone;
  return std::filesystem::read_symlink("/proc/" + process + "/exe", gone).string();
}

std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> found;
  std::error_code gone;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), gone)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child = 0; children >> child;) found.push_back(child);
  }
  return found;
}

/// Whether `launcher` has a child that runs this very program.
bool has_workers(pid_t launcher) {
  const auto ours = program_of("self");
  const auto all = children_of(launcher);
  return std::any_of(all.begin(), all.end(),
                     [&](pid_t one) { return program_of(std::to_string(one)) == ours; });
}

/// What mpirun itself ends with when a daemon of its own is lost: none of our exit codes, and no signal.
bool is_of_launcher(int code) {
  return code != 0 && code < 128 && (code < 2 || code > 5) && code != kBugExitCode;
}

/// How it ended; the code as a shell gives it. Where it outlives its workers here by kWithoutWorkers it is
/// ended, and a process is lost.
Ended wait_for_end(pid_t launcher, const std::string& name) {
  constexpr auto kNextLook = milliseconds(500);
  // The last look that saw a worker, and the first after it that saw none; {}: there was no such look.
  base::TimePoint seen{}, gone{};
  const auto was = [](base::TimePoint look) { return look != base::TimePoint{}; };
  bool asked = false;
  auto looked = base::Clock::now(), ask = looked;
  for (int status = 0;;) {
    const auto now = base::Clock::now();
    if (const pid_t ended = ::waitpid(launcher, &status, WNOHANG); ended == launcher) {
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      const bool lost = asked || (was(seen) && (is_of_launcher(code) || code == kNoConnection));
      const auto known = was(gone) ? gone : now;
      return {.code = lost ? static_cast<int>(base::ErrorKind::comm) : code,
              .detection_s = was(seen) ? std::optional(base::seconds(known - seen)) : std::nullopt,
              .known_ago_s = base::seconds(now - known)};
    }
    std::this_thread::sleep_for(milliseconds(20));
    if (now - looked < kNextLook) continue;
    looked = now;
    if (has_workers(launcher)) {
      seen = now;
      gone = {};
    } else if (was(seen) && !was(gone)) {
      gone = now;
      ask = now + kWithoutWorkers;
    }
    if (!was(gone) || now < ask) continue;
    if (!asked)
      std::fprintf(
          stderr,
          "paceline: %s still waits %d s after the last process on this host has ended, most likely for a "
          "host that does not answer; it is ended\n",
          name.c_str(), static_cast<int>(kWithoutWorkers.count()));
    for (const pid_t one : children_of(launcher))
      ::kill(one, SIGTERM);  // ssh, to the host that does not answer
    ::kill(launcher, asked ? SIGKILL : SIGTERM);
    asked = true;
    ask = now + kToEnd;
  }
}

}  // namespace

Ended run_line(const std::vector<std::string>& line) {
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
  const auto ended = started > 0 ? wait_for_end(started, line.front()) : Ended{};
  child = 0;
  if (reason != 0) fail_to_start(line.front(), reason);
  return ended;
}

}  // namespace paceline::cli
