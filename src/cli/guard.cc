#include "cli/guard.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <string>

#include "base/host_name.h"
#include "base/process_state.h"

namespace paceline::cli {

void guard_against_being_stopped(int process, std::chrono::seconds longest) {
  const auto sentence = fmt::format(
      "paceline: process {} on host {} (pid {}) has been stopped for {} s and was not continued; it is "
      "killed\n",
      process, base::host_name(), ::getpid(), longest.count());
  const pid_t parent = ::getpid();
  if (::fork() != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it ends with its parent
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
    ::signal(signal, SIG_IGN);  // only SIGKILL ends it
  for (std::chrono::seconds::rep looks = 0; ::getppid() == parent;) {
    // Counts checks instead of time, since no checks happen while this child is stopped too.
    looks = base::state_of_process(parent) == 'T' ? looks + 1 : 0;
    if (looks > longest.count()) {
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
      ::kill(parent, SIGKILL);
      break;
    }
    const timespec second{1, 0};
    ::nanosleep(&second, nullptr);
  }
  ::_exit(0);
}

}  // namespace paceline::cli
