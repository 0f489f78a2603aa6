#include "cluster/local_launcher.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/log.h"
#include "comm/launch.h"
#include "comm/line_socket.h"

namespace paceline::cluster {
namespace {

constexpr std::chrono::seconds kToSayIt{10}, kToStop{5};
constexpr std::chrono::milliseconds kLookForEnds{20};

/// A port of this host that is free now. Another program may take it before process 0 does; the processes
/// then meet at the next one (comm::Launch::meeting_ports).
std::uint16_t free_port() {
  const comm::Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof any;
  if (socket.get() < 0 || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&any), &size) != 0)
    base::fail(base::ErrorKind::comm, "launch: no port of this host is free: {}", std::strerror(errno));
  return ntohs(any.sin_port);
}

/// Runs in the child: starts the program of `words` as process `process`.
[[noreturn]] void become_process(int process, const std::vector<char*>& words, pid_t starter, int report) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // ends this process if the starter is killed
  if (::getppid() != starter) ::_exit(128 + SIGTERM);
  const auto number = std::to_string(process);
  ::setenv("RANK", number.c_str(), 1);
  ::setenv("LOCAL_RANK", number.c_str(), 1);
  if (process > 0) {
    const int nothing = ::open("/dev/null", O_RDONLY);
    if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  }
  ::execvp(words[0], words.data());
  const int reason = errno;
  [[maybe_unused]] const auto written = ::write(report, &reason, sizeof reason);
  ::_exit(127);
}

class ProcessesHere {
 public:
  ProcessesHere(const std::vector<std::string>& line, int processes) {
    std::vector<char*> words;
    for (const auto& word : line) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    for (int process = 0; process < processes; ++process)
      if (const int reason = start(process, words); reason != 0) {
        signal_all(SIGKILL);
        base::fail(base::ErrorKind::comm, "launch: process {} of {} could not be started: {}", process,
                   processes, std::strerror(reason));
      }
  }

  int wait() {
    while (!running_.empty()) {
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, WNOHANG);
      if (ended > 0)
        note(ended, status);
      else
        std::this_thread::sleep_for(kLookForEnds);
      if (error_) end_the_others();
    }
    return error_ ? *error_ : stopped_;
  }

 private:
  /// 0, or why it could not be started.
  int start(int process, const std::vector<char*>& words) {
    int ends[2];  // closed by a successful exec; otherwise the child writes the error to it
    if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
    const pid_t starter = ::getpid(), child = ::fork();
    if (child == 0) become_process(process, words, starter, ends[1]);
    int reason = child < 0 ? errno : 0;
    ::close(ends[1]);
    while (child > 0 && ::read(ends[0], &reason, sizeof reason) < 0 && errno == EINTR) {
    }
    ::close(ends[0]);
    if (child > 0) running_[child] = process;
    return reason;
  }

  void note(pid_t ended, int status) {
    const auto found = running_.find(ended);
    if (found == running_.end()) return;
    const int process = found->second;
    running_.erase(found);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const bool was_stopped = code == 128 + SIGHUP || code == 128 + SIGINT || code == 128 + SIGTERM;
    if (was_stopped && stopped_ == 0) stopped_ = code;
    if (code == 0 || was_stopped || error_) return;
    error_ = code;
    error_at_ = base::Clock::now();
    if (WIFSIGNALED(status))
      log_line(fmt::format("process {} of the run, with the id {}, was ended by signal {} ({})", process,
                           ended, WTERMSIG(status), ::strsignal(WTERMSIG(status))));
  }

  void end_the_others() {
    const auto passed = base::Clock::now() - error_at_;
    if (passed >= kToSayIt && !is_asked_) {
      is_asked_ = true;
      signal_all(SIGTERM);
    }
    if (passed >= kToSayIt + kToStop && !is_forced_) {
      is_forced_ = true;
      signal_all(SIGKILL);
    }
  }

  void signal_all(int signal) const {
    for (const auto& [id, process] : running_) ::kill(id, signal);
  }

  std::map<pid_t, int> running_;  ///< [process id]: its number
  std::optional<int> error_;      ///< the first code of one
  int stopped_ = 0;
  base::TimePoint error_at_{};
  bool is_asked_ = false, is_forced_ = false;
};

}  // namespace

bool is_starter_here() {
  // A variable left in the user's environment does not name this process's parent.
  const char* const job = std::getenv(comm::kJobOfLaunch);
  return job != nullptr && std::strtol(job, nullptr, 10) == ::getppid();
}

int run_here(const std::vector<std::string>& line, int processes) {
  // A new name for each try, so that processes left over from an earlier try are not accepted.
  const char* const launch = std::getenv(comm::kJobOfLaunch);
  const auto job = fmt::format("{}.{}", launch == nullptr ? "" : launch, ::getpid());
  for (const auto& [name, value] : {std::pair<const char*, std::string>{comm::kJobOfLaunch, job},
                                    {"WORLD_SIZE", std::to_string(processes)},
                                    {"MASTER_ADDR", "127.0.0.1"},
                                    {"MASTER_PORT", std::to_string(free_port())}})
    ::setenv(name, value.c_str(), 1);
  return ProcessesHere(line, processes).wait();
}

}  // namespace paceline::cluster
