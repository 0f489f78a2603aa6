#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands/commands.h"

namespace paceline::cli {
namespace {

/// Standard output of `line`, which must end well.
std::string output_of(const std::string& line) {
  std::FILE* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr)
    base::fail(base::ErrorKind::device, "sbatch: no process could be started for '{}'", line);
  std::string text;
  std::array<char, 256> piece{};
  while (std::fgets(piece.data(), piece.size(), pipe) != nullptr) text += piece.data();
  const int status = ::pclose(pipe);
  if (status != 0)
    base::fail(base::ErrorKind::comm,
               "sbatch: '{}' ended with {} (see above); is this a host from which jobs are submitted?", line,
               WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

int sbatch_command(const Settings& settings) {
  const BatchOptions& options = settings.batch;
  const auto out =
      settings.child_out.empty() ? std::filesystem::path("paceline-out") / options.name : settings.child_out;
  const auto program = std::filesystem::read_symlink("/proc/self/exe").string();
  base::require_directory_of(options.script, "--script");
  base::write_file(options.script, batch_script(options, program, settings.child, out));
  if (std::filesystem::is_regular_file(
          options.script))  // nobody starts a FIFO, and a device is not ours to change
    std::filesystem::permissions(options.script, std::filesystem::perms::owner_exec,
                                 std::filesystem::perm_options::add);
  std::printf("job script: %s\n", options.script.c_str());
  const auto submit = shell_line({"sbatch", "--parsable", options.script.string()});
  if (!options.submit) {
    std::printf("submit it: %s   (or again with --submit)\n", submit.c_str());
    return 0;
  }
  const auto answer = output_of(submit);  // JOB or JOB;CLUSTER
  const auto job = answer.substr(0, answer.find(';'));
  std::printf("job %s   follow it: squeue --jobs %s; tail -f %s-%s.log   end it: scancel %s\nrecord: %s\n",
              job.c_str(), job.c_str(), options.name.c_str(), job.c_str(), job.c_str(),
              (out / "record.json").c_str());
  return 0;
}

}  // namespace paceline::cli
