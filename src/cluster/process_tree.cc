#include "cluster/process_tree.h"

#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace paceline::cluster {
namespace {

std::string program_of(const std::string& process) {
  std::error_code gone;
  return std::filesystem::read_symlink("/proc/" + process + "/exe", gone).string();
}

}  // namespace

std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> found;
  std::error_code gone;
  for (std::filesystem::directory_iterator thread(fmt::format("/proc/{}/task", process), gone), end;
       !gone && thread != end; thread.increment(gone)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; children >> child;) found.push_back(child);
  }
  return found;
}

std::vector<pid_t> workers_of(pid_t launcher) {
  const auto ours = program_of("self");
  std::vector<pid_t> found;
  for (const pid_t child : children_of(launcher))
    if (program_of(std::to_string(child)) == ours) found.push_back(child);
  return found;
}

std::vector<pid_t> descendants_of(pid_t process) {
  auto found = children_of(process);
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const pid_t child : children_of(found[i])) found.push_back(child);
  return found;
}

void send_signal(const std::vector<pid_t>& processes, int signal) {
  for (const pid_t process : processes) ::kill(process, signal);
}

}  // namespace paceline::cluster
