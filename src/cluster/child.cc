#include "cluster/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/line_output.h"
#include "base/process.h"
#include "base/text.h"
#include "cluster/guard.h"
#include "cluster/log.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/kept_record.h"

namespace paceline::cluster {

bool is_worth_a_restart(int exit_code) {
  if (exit_code == static_cast<int>(base::ErrorKind::comm)) return true;
  const int signal = exit_code - 128;
  return signal > 0 && signal != SIGINT && signal != SIGTERM && signal != SIGHUP;
}

int exit_code_of_launch(int exit_code) {
  return is_worth_a_restart(exit_code) ? static_cast<int>(base::ErrorKind::comm) : exit_code;
}

std::vector<std::string> restart_words(const std::filesystem::path& out) {
  if (!train::checkpoints_in(out).empty()) return {"--resume", "auto"};
  std::error_code ignored;  // the run will report what cannot be moved
  std::filesystem::rename(out / "record.json", out / train::kLostRecord, ignored);
  return {};
}

bool is_complete(const std::filesystem::path& out, const std::string& started) {
  const auto path = out / "record.json";
  if (out.empty() || !std::filesystem::exists(path)) return false;
  const auto record = train::read_kept_record(path).record;
  return record && record->status == "complete" && record->created >= started;
}

std::string lost_text(double ended_at_s, const Ended& ended, const std::string& launcher) {
  return fmt::format("at={:.3f},code={},after={:.3f},by={}", ended_at_s - ended.known_ago_s, ended.code,
                     ended.detection_s.value_or(-1), launcher);
}

std::optional<train::LostBefore> read_lost(const char* text) {
  double at_s = 0, after_s = 0;
  int code = 0;
  if (text == nullptr || std::sscanf(text, "at=%lf,code=%d,after=%lf", &at_s, &code, &after_s) != 3)
    return std::nullopt;
  const std::string_view all = text;
  const auto by = all.find(",by=");
  const std::string launcher(by == all.npos ? "mpirun" : all.substr(by + 4));
  return train::LostBefore{
      .how = sentence_of_end(code, launcher) + ", and no process was left to report why",
      .loss = {.known_at_s = at_s, .detection_s = after_s < 0 ? std::nullopt : std::optional(after_s)}};
}

std::string sentence_of_end(int code, const std::string& launcher) {
  // Open MPI's own errors are negative: 243 (-13) is not a signal.
  if (code <= 128 || code - 128 > SIGRTMAX) return fmt::format("{} ended with {}", launcher, code);
  return fmt::format("{} ended with {} (signal {}, {})", launcher, code, code - 128, ::strsignal(code - 128));
}

std::int64_t progress_of(const std::filesystem::path& out) {
  if (const auto newest = train::checkpoints_in(out); !newest.empty())
    return *train::update_of(newest.front());
  return std::ssize(base::entries_of(out / "records"));
}

namespace {

using std::chrono::milliseconds;

constexpr int kNoConnection = 255;  ///< exit code of ssh
constexpr auto kLook = milliseconds(20);
constexpr auto kNextLook = milliseconds(500);  ///< between two checks of the workers
/// How long a launcher may outlive the last of its workers on this host. mpirun waits for its daemons: for a
/// quarter of an hour if a host has lost its power or its link.
constexpr std::chrono::seconds kWithoutWorkers{15};
/// How long it may take to end after it was asked to.
constexpr std::chrono::seconds kToEnd{5};

/// The children of `process` that have not been collected; empty if it is gone.
std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> found;
  for (const auto& thread : base::entries_of(fmt::format("/proc/{}/task", process))) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child = 0; children >> child;) found.push_back(child);
  }
  return found;
}

std::string program_of(const std::string& process) {
  std::error_code gone;
  return std::filesystem::read_symlink("/proc/" + process + "/exe", gone).string();
}

/// Those of its children that run this program.
std::vector<pid_t> workers_of(pid_t launcher) {
  auto found = children_of(launcher);
  std::erase_if(
      found, [ours = program_of("self")](pid_t child) { return program_of(std::to_string(child)) != ours; });
  return found;
}

/// All descendants of `process`, without itself.
std::vector<pid_t> descendants_of(pid_t process) {
  auto found = children_of(process);
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const pid_t child : children_of(found[i])) found.push_back(child);
  return found;
}

void send_signal(const std::vector<pid_t>& processes, int signal) {
  for (const pid_t process : processes) ::kill(process, signal);
}

[[noreturn]] void fail_to_start(const std::string& program, int error) {
  const bool is_mpirun = program.ends_with("mpirun");
  base::fail(base::ErrorKind::comm, "launch: {} cannot be started: {}{}", program, std::strerror(error),
             is_mpirun
                 ? "; install it (Debian: apt-get install openmpi-bin), or on this host alone: --by here"
                 : "");
}

/// Whether `code` is mpirun's own, for a lost daemon: neither one of Paceline's exit codes nor a signal.
bool is_of_launcher(int code) {
  return code != 0 && code < 128 && (code < 2 || code > 5) && code != kBugExitCode;
}

/// A started launcher, until it has ended.
class Launcher {
 public:
  Launcher(pid_t process, std::string name, const StopRequest& stop, std::chrono::seconds grace)
      : process_(process), name_(std::move(name)), stop_(stop), grace_(grace) {}

  Ended wait() {
    for (int status = 0;;) {
      const auto now = base::Clock::now();
      if (const pid_t ended = ::waitpid(process_, &status, WNOHANG); ended == process_)
        return ended_with(status, now);
      std::this_thread::sleep_for(kLook);
      if (stop_.take_suspension()) rest();
      if (stop_.signal() != 0) ask_to_stop(now);
      if (now - looked_ < kNextLook) continue;
      looked_ = now;
      check_workers(now);
    }
  }

 private:
  [[nodiscard]] Ended ended_with(int status, base::TimePoint now) const {
    const int code = code_of(status);
    const bool is_lost = is_given_up_ || (seen_ && (is_of_launcher(code) || code == kNoConnection));
    const auto known = gone_.value_or(now);
    return {.code = is_lost ? static_cast<int>(base::ErrorKind::comm) : code,
            .detection_s = seen_ ? std::optional(base::seconds(known - *seen_)) : std::nullopt,
            .known_ago_s = base::seconds(now - known)};
  }

  /// Handles Ctrl-Z: all processes stop and continue together.
  void rest() const {
    auto all = descendants_of(process_);
    all.push_back(process_);
    send_signal(all, SIGSTOP);
    ::raise(SIGSTOP);
    send_signal(all, SIGCONT);
  }

  /// When it should stop: first asks its workers, later kills it.
  void ask_to_stop(base::TimePoint now) {
    if (!asked_) {
      asked_ = now;
      const auto workers = workers_of(process_);
      if (workers.empty())
        ::kill(process_, SIGTERM);
      else
        send_signal(workers, stop_.signal());
      return;
    }
    if (is_forced_ || (!stop_.is_urgent() && now - *asked_ < grace_)) return;
    is_forced_ = true;
    if (!stop_.is_urgent())
      (void)print_line(fmt::format("the run has not ended within the {} s of --grace; it is ended by force",
                                   grace_.count()));
    auto all = descendants_of(process_);
    all.push_back(process_);
    send_signal(all, SIGKILL);
  }

  /// Ends the launcher if it outlives its workers on this host by kWithoutWorkers; that counts as a lost
  /// process.
  void check_workers(base::TimePoint now) {
    if (!workers_of(process_).empty()) {
      seen_ = now;
      gone_.reset();
    } else if (seen_ && !gone_) {
      gone_ = now;
      give_up_ = now + kWithoutWorkers;
    }
    if (!gone_ || now < give_up_) return;
    if (!is_given_up_)
      (void)print_line(
          fmt::format("{} still waits {} s after the last process on this host has ended, most likely for a "
                      "host that does not answer; it is ended",
                      name_, kWithoutWorkers.count()));
    send_signal(children_of(process_), SIGTERM);  // ssh to the host that does not respond
    ::kill(process_, is_given_up_ ? SIGKILL : SIGTERM);
    is_given_up_ = true;
    give_up_ = now + kToEnd;
  }

  const pid_t process_;
  const std::string name_;
  const StopRequest& stop_;
  const std::chrono::seconds grace_;
  base::TimePoint looked_ = base::Clock::now(), give_up_{};
  /// The last check that saw a worker, and the first check after it that saw none.
  std::optional<base::TimePoint> seen_, gone_;
  std::optional<base::TimePoint> asked_;  ///< when it was asked to stop
  bool is_forced_ = false, is_given_up_ = false;
};

/// Collects children that have ended, and returns the others, but for those that only write what nobody has
/// read yet.
std::vector<pid_t> children_left() {
  int status = 0;
  while (::waitpid(-1, &status, WNOHANG) > 0 || errno == EINTR) errno = 0;
  auto left = children_of(::getpid());
  std::erase_if(left, base::writes_left_output);
  return left;
}

/// Ends the processes that an ended launcher has left behind.
void end_orphans(const StopRequest& stop, std::chrono::seconds grace) {
  const auto left = children_left();
  if (left.empty()) return;
  (void)print_line(fmt::format("{} of the run {} left behind; {} asked to end",
                               base::counted(left.size(), "process", "processes"),
                               left.size() == 1 ? "was" : "were", left.size() == 1 ? "it is" : "they are"));
  send_signal(left, SIGTERM);
  for (const auto begin = base::Clock::now(); !children_left().empty();) {
    std::this_thread::sleep_for(kLook);
    // Processes that these start or leave meanwhile also become children of this process.
    if (base::Clock::now() - begin >= grace || stop.is_urgent()) {
      auto all = descendants_of(::getpid());
      std::erase_if(all, base::writes_left_output);
      send_signal(all, SIGKILL);
    }
  }
}

/// Before the `tries`th restart without progress (from 1): 1 s, 2 s, 4 s ... at most a minute.
std::chrono::seconds wait_before_restart(int tries) {
  constexpr int kDoublings = 6;
  constexpr std::chrono::seconds kMost{60};
  return std::min(kMost, std::chrono::seconds(1 << std::min(kDoublings, tries - 1)));
}

}  // namespace

std::string in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const auto file = std::filesystem::path(folder) / name; ::access(file.c_str(), X_OK) == 0)
      return file.string();
  return "";
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

Started start_program(const std::vector<std::string>& line, const std::function<void()>& prepare) {
  std::vector<char*> words;
  for (const auto& word : line) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int ends[2];  // closed by a successful exec; otherwise the child writes the error to it
  if (::pipe2(ends, O_CLOEXEC) != 0) return {.error = errno};
  Started started{.process = ::fork()};
  if (started.process == 0) {
    prepare();
    ::execvp(words[0], words.data());
    const int reason = errno;
    [[maybe_unused]] const auto written = ::write(ends[1], &reason, sizeof reason);
    ::_exit(127);
  }
  if (started.process < 0) started.error = errno;
  ::close(ends[1]);
  while (started.process > 0 && ::read(ends[0], &started.error, sizeof started.error) < 0 && errno == EINTR) {
  }
  ::close(ends[0]);
  return started;
}

ShellOutput run_in_shell(const std::string& line) {
  std::FILE* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) base::fail(base::ErrorKind::device, "no process could be started for '{}'", line);
  ShellOutput output;
  std::array<char, 256> piece{};
  while (std::fgets(piece.data(), piece.size(), pipe) != nullptr) output.text += piece.data();
  output.code = code_of(::pclose(pipe));
  while (output.text.ends_with('\n')) output.text.pop_back();
  return output;
}

Ended run_line(const std::vector<std::string>& line, const StopRequest& stop, std::chrono::seconds grace,
               const PassedOutput* output) {
  const auto kills_before = base::out_of_memory_kills();
  // Orphaned descendants become children of this process.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // The launcher has the original signal actions, its own process group, and not the terminal as input, since
  // a background process that reads it is stopped.
  const auto [process, error] = start_program(line, [&] {
    stop.restore_in_child();
    ::setpgid(0, 0);
    if (::isatty(STDIN_FILENO) != 0) {
      const int nothing = ::open("/dev/null", O_RDONLY);
      if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
    }
    if (output != nullptr) output->take_in_child();
  });
  auto ended = process > 0 ? Launcher(process, line.front(), stop, grace).wait() : Ended{};
  if (error != 0) fail_to_start(line.front(), error);
  end_orphans(stop, grace);
  ended.out_of_memory = ended.code != 0 && base::out_of_memory_kills() > kills_before;
  return ended;
}

int run_with_restarts(const std::vector<std::string>& line, const StopRequest& stop,
                      const RestartRule& rule) {
  auto furthest = rule.progress ? rule.progress() : 0;
  auto ended = run_line(line, stop, rule.grace, rule.output);
  for (int tries = 1; stop.signal() == 0 && is_worth_a_restart(ended.code); ++tries) {
    if (ended.out_of_memory) (void)print_line(kOutOfMemory);
    if (ended.code > 128) (void)print_line(sentence_of_end(ended.code, rule.launcher));
    if (const auto reached = rule.progress ? rule.progress() : 0; reached > furthest) {
      furthest = reached;
      tries = 1;
    }
    if (tries > rule.restarts) break;
    const auto wait = wait_before_restart(tries);
    if (rule.wait) {
      rule.wait(wait);
    } else {
      (void)print_line(fmt::format("the next try begins in {} s", wait.count()));
      stop.wait(wait);
    }
    if (stop.signal() != 0) break;
    const auto next = rule.again(tries, ended);
    if (next.empty()) return 0;
    ended = run_line(next, stop, rule.grace, rule.output);
  }
  return stop.signal() == 0 || ended.code == 0 ? ended.code : 128 + stop.signal();
}

}  // namespace paceline::cluster
