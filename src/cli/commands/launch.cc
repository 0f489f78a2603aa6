#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/topology.h"
#include "cli/commands/commands.h"
#include "cli/values.h"

namespace paceline::cli {

int launch_command(const Settings& settings) {
  LaunchOptions options = settings.launch;
  const char* tasks = std::getenv("SLURM_NTASKS");  // inside an allocation: as many as it was asked for
  if (options.processes == 0 && options.hosts.empty() && tasks != nullptr)
    options.processes = static_cast<int>(whole_number(tasks, 1, 100000));
  options.as_root = ::geteuid() == 0;
  options.oversubscribe =
      options.hosts.empty() && tasks == nullptr && options.processes > base::usable_cores();
  const auto program = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto line = mpirun_line(options, program, settings.child);
  std::printf("%s\n", shell_line(line).c_str());
  std::fflush(stdout);
  if (options.print) return 0;

  std::vector<char*> words;
  for (const auto& word : line) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp("mpirun", words.data());
  base::fail(base::ErrorKind::comm,
             "launch: mpirun cannot be started: {}; install it (Debian: apt-get install "
             "openmpi-bin)",
             std::strerror(errno));
}

}  // namespace paceline::cli
