#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "base/process.h"
#include "cluster/guard.h"

namespace paceline::cluster {
namespace {

using namespace std::chrono_literals;

/// A process with a guard, and the end of a pipe that lasts for as long as one of the two lives.
class Guarded {
 public:
  Guarded(const Guard::Options& options, const std::function<void()>& life) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::close(pipe[0]);
      {
        const Guard guard(options);
        life();
      }
      ::_exit(0);
    }
    ::close(pipe[1]);
    lasts_ = pipe[0];
    if (process_ > 0) ::waitpid(process_, &status_, 0);
  }
  ~Guarded() { ::close(lasts_); }

  [[nodiscard]] int status() const { return status_; }  ///< with which the process ended
  /// Whether the guard of the process, which has ended, ends within `time`.
  [[nodiscard]] bool ends_within(std::chrono::milliseconds time) const {
    pollfd end{.fd = lasts_, .events = POLLIN, .revents = 0};
    return ::poll(&end, 1, static_cast<int>(time.count())) == 1;
  }

 private:
  pid_t process_ = -1;
  int status_ = 0;
  int lasts_ = -1;
};

pid_t only_child() {
  pid_t child = 0;
  const auto children = "/proc/self/task/" + std::to_string(::getpid()) + "/children";
  if (!(std::ifstream(children) >> child)) ::_exit(2);
  return child;
}

void die() { ::kill(::getpid(), SIGKILL); }

TEST(Guard, EndsWithAProcessThatSaysFarewell) {
  EXPECT_TRUE(Guarded({.longest_stop = 60s, .outlives = 600s}, [] {}).ends_within(60s));
}

TEST(Guard, OutlivesAProcessThatIsKilled) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(Guarded({.longest_stop = 60s, .outlives = 1500ms}, die).ends_within(60s));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 1500ms);
}

TEST(Guard, EndsWithAProcessThatSaysFarewellBeforeItExits) {
  const auto end = [] {
    Guard::dismiss();
    ::_exit(1);
  };
  EXPECT_TRUE(Guarded({.longest_stop = 60s, .outlives = 600s}, end).ends_within(60s));
}

/// The byte that dismisses it must not end a process that succeeded.
TEST(Guard, ThatIsGoneDoesNoHarm) {
  const auto kill_guard = [] {
    const pid_t guard = only_child();
    ::kill(guard, SIGKILL);
    ::waitpid(guard, nullptr, 0);
  };
  const Guarded guarded({.longest_stop = 60s}, kill_guard);
  EXPECT_TRUE(WIFEXITED(guarded.status()) && WEXITSTATUS(guarded.status()) == 0) << guarded.status();
}

TEST(Guard, ThatIsStoppedNoticesTheEnd) {
  const auto stop_guard = [] {
    const pid_t guard = only_child();
    while (base::state_of_process(guard) != 'S') ::usleep(1000);  // it has begun, and waits
    ::kill(guard, SIGSTOP);
    while (base::state_of_process(guard) != 'T') ::usleep(1000);
    die();
  };
  EXPECT_TRUE(Guarded({.longest_stop = 60s}, stop_guard).ends_within(60s));
}

TEST(Guard, EndsWithAKilledProcessWhereNobodyNeedsIt) {
  EXPECT_TRUE(Guarded({.longest_stop = 60s}, die).ends_within(60s));
}

TEST(Guard, KillsAProcessThatStaysStopped) {
  const Guarded guarded({.longest_stop = 1s, .outlives = 600s}, [] { ::kill(::getpid(), SIGSTOP); });
  EXPECT_TRUE(guarded.ends_within(60s));
}

}  // namespace

namespace {

TEST(TimeToEnd, IsTwentySecondsOrThoseOfTheVariable) {
  using std::chrono::seconds;
  ::unsetenv("PACELINE_END_WITHIN");
  EXPECT_EQ(time_to_end(), seconds(20));
  for (const auto& [text, wanted] :
       {std::pair{"4", 4}, {"1", 1}, {"0", 20}, {"-3", 20}, {"soon", 20}, {"", 20}}) {
    ::setenv("PACELINE_END_WITHIN", text, 1);
    EXPECT_EQ(time_to_end(), seconds(wanted)) << text;
  }
  ::unsetenv("PACELINE_END_WITHIN");
}

}  // namespace
}  // namespace paceline::cluster
