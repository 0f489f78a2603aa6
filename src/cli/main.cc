/// The table of commands, and the one place where errors become exit codes.

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/shared_library.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "cli/commands/commands.h"
#include "cli/options/arguments.h"
#include "cli/screen/screen.h"
#include "cluster/child.h"
#include "cluster/gpu_table.h"
#include "cluster/launch_line.h"
#include "cluster/launch_report.h"
#include "cluster/log.h"
#include "cluster/make_backend.h"
#include "cluster/session.h"
#include "comm/launch.h"
#include "comm/line_socket.h"
#include "comm/nccl/api.h"
#include "data/image/listing.h"
#include "measure/environment.h"

namespace {

using namespace paceline;

std::string overview() {
  std::string text =
      "paceline trains image classifiers with data parallelism and explains how the training scales\n\n";
  for (const auto& row : cli::command_rows())
    text += fmt::format("  paceline {:<10} {}\n", row.name, row.summary);
  return text + "\n'paceline COMMAND --help' lists its options. A first run: paceline study --quick\n";
}

/// The command line, quoted for a shell.
std::string as_typed(int count, char** words) {
  std::vector<std::string> line(words, words + count);
  line.front() = "paceline";
  return cluster::shell_line(line);
}

/// The command `name`, behind which `words` stand.
const cli::CommandRow& find_command(const std::string& name, std::span<char* const> words = {}) {
  for (const auto& row : cli::command_rows())
    if (row.name == name) return row;
  std::vector<std::string> all(words.begin(), words.end());
  all.insert(all.begin(), name);
  if (const auto image = std::ranges::find_if(all, data::is_image_name); image != all.end())
    base::fail(base::ErrorKind::usage,
               "there is no command '{}'; did you mean 'paceline classify CHECKPOINT {}'? CHECKPOINT is the "
               "directory of a training, or one of its .safetensors files",
               name, base::shell_word(*image));
  const auto known = base::texts_of(cli::command_rows(), &cli::CommandRow::name);
  base::fail(base::ErrorKind::usage, "there is no command '{}'{}", name, base::suggestion(name, known));
}

/// Whether only the first process should report an error that all processes find before they have joined.
bool is_for_the_first(base::ErrorKind kind) {
  try {
    return kind == base::ErrorKind::usage && comm::read_launch(base::process_environment()).process > 0;
  } catch (const base::Error&) {
    return false;
  }
}

/// Whether the command assigns the GPUs of its hosts to processes.
bool asks_for_gpus(const cli::CommandRow& row, const cli::Settings& settings) {
  return row.command == cli::kDoctor || cluster::is_gpu(settings.train.device);
}

/// Joins the other processes if a launcher started several and the command can use them.
std::unique_ptr<cluster::Session> join_processes(const cli::CommandRow& row, const cli::Settings& settings) {
  const auto environment = base::process_environment();
  auto launch = comm::read_launch(environment);
  if (settings.meet_within_s > 0) launch.meet_within = std::chrono::seconds(settings.meet_within_s);
  if (launch.alone() && (row.command & cli::kInProcesses)) {
    // doctor describes one process all the same, and has in its table what else is odd.
    if (row.command != cli::kDoctor) comm::require_whole_launcher(environment);
    const auto odd =
        launch.by.empty() && row.command != cli::kDoctor ? cluster::odd_about_one_alone(environment) : "";
    if (!odd.empty()) cluster::log_line(odd);
  }
  if (launch.alone()) return nullptr;
  if (!settings.meeting_secret.empty())
    launch.secret = base::read_secret(settings.meeting_secret, "--meeting-secret", comm::kShortestSecret);
  if (!(row.command & cli::kInProcesses))
    base::fail(base::ErrorKind::usage,
               "{} works in one process, but {} started {}; start it without a launcher", row.name, launch.by,
               launch.processes);
  if (!settings.interface.empty()) {
    launch.interface = settings.interface;
    launch.own_address = comm::address_of_interface(settings.interface);
  }
  return std::make_unique<cluster::Session>(launch, std::chrono::seconds(settings.train.deadline_s));
}

int run(int count, char** words, base::TimePoint started, std::unique_ptr<cluster::Session>& session) {
  const std::string first = count > 1 ? words[1] : "";
  if (first.empty()) {
    std::fputs(overview().c_str(), stderr);
    return static_cast<int>(base::ErrorKind::usage);
  }
  if (first == "help" && count > 2) {
    cli::print(cli::parse(find_command(words[2]).command, {"--help"}).help);
    return 0;
  }
  if (first == "--help" || first == "-h" || first == "help") {
    cli::print(overview());
    return 0;
  }
  if (first == "--version" || first == "version") {
    std::printf("paceline %s\n", measure::version().c_str());
    return 0;
  }
  const cli::CommandRow& row = find_command(first, {words + 2, words + count});
  auto parsed = cli::parse(row.command, {words + 2, words + count});
  if (!parsed.help.empty()) {
    cli::print(parsed.help);
    return 0;
  }
  parsed.settings.typed = parsed.settings.train.command = as_typed(count, words);
  parsed.settings.train.started = started;
  if (parsed.settings.train.deterministic) cluster::log_line(comm::nccl::make_deterministic());
  session = join_processes(row, parsed.settings);
  if (session)
    session->meet(
        measure::version(), parsed.settings.typed, parsed.settings.train.shared_memory,
        asks_for_gpus(row, parsed.settings) ? cluster::seen_gpus() : std::vector<cluster::SeenGpu>());
  parsed.settings.session = session.get();
  const int code = row.run(parsed.settings);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    base::fail(base::ErrorKind::data,
               "standard output could not be written to the end; is the disk full, or the limit of ulimit "
               "-f reached?");
  return session ? session->leave(code) : code;
}

/// Ends the process after an error, which one process prints and all know. Returns the exit code.
int end_with(cluster::Session* session, base::ErrorKind kind, int code, const std::string& text) {
  const bool mine = session == nullptr ? !is_for_the_first(kind) : session->fail(kind, text);
  if (mine) cluster::log_line(text);
  // A launcher ends all processes when one ends with an error, so this waits until the first has printed it.
  if (session == nullptr && !mine) std::this_thread::sleep_for(std::chrono::seconds(2));
  const bool known = session != nullptr && code != cluster::kBugExitCode;
  return known ? static_cast<int>(session->kind_of_failure(kind)) : code;
}

/// An error of the file system is a fault of the world, not a bug.
std::string sentence_of(const std::filesystem::filesystem_error& error) {
  return fmt::format("{}: {}; check the path, its permissions and the disk", error.path1().string(),
                     error.code().message());
}

int end_with_bug(cluster::Session* session, const std::exception& error) {
  return end_with(
      session, base::ErrorKind::comm, cluster::kBugExitCode,
      fmt::format("a bug in paceline, not in what was asked: {}; please report it with the command",
                  error.what()));
}

}  // namespace

int main(int count, char** words) {
  const auto started = base::Clock::now();
  ::prctl(PR_SET_NAME, "paceline");  // for ps, since in a bundle the loader was started
  ::signal(SIGXFSZ, SIG_IGN);        // exceeding ulimit -f becomes an error instead of ending the process
  std::unique_ptr<cluster::Session> session;
  const auto end = [&](base::ErrorKind kind, const std::string& text) {
    return end_with(session.get(), kind, static_cast<int>(kind), text);
  };
  try {
    return run(count, words, started, session);
  } catch (const base::AgreedError& error) {
    if (session) session->let_the_first_speak();
    return end(error.kind(), error.what());
  } catch (const base::Error& error) {
    return end(error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return end(base::ErrorKind::device,
               "the system refused more memory than was planned; use a smaller batch or fewer workers");
  } catch (const std::filesystem::filesystem_error& error) {
    return end(base::ErrorKind::data, sentence_of(error));
  } catch (const std::system_error& error) {
    if (!base::is_refused_thread(error)) return end_with_bug(session.get(), error);
    const auto refusal = base::refused_thread("a thread", error);
    return end(refusal.kind(), refusal.what());
  } catch (const std::exception& error) {
    return end_with_bug(session.get(), error);
  }
}
