#include "program.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>

namespace paceline::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// `port`, or for 0 any, of this host if it is free; else 0.
int bound_port(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool is_free = ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return is_free ? ntohs(address.sin_port) : 0;
}

/// A port that stays free until somebody listens there: below those that the system gives to connections, and
/// by this process's number, so that two tests do not take the same one.
int port_of_process() {
  int port = 0;
  for (int attempt = 0; port == 0 && attempt < 1000; ++attempt)
    port = bound_port(12000 + (::getpid() * 7 + attempt) % 20000);
  return port;
}

/// In the child, between fork and exec.
void enter(const RunConditions& circumstances) {
  // Nobody is there to be asked, also where the tests were started in a terminal.
  const int nobody = ::open("/dev/null", O_RDONLY);
  if (nobody < 0 || ::dup2(nobody, STDIN_FILENO) < 0) ::_exit(99);
  if (!circumstances.directory.empty() && ::chdir(circumstances.directory.c_str()) != 0) ::_exit(99);
  if (circumstances.largest_file) {
    ::signal(SIGXFSZ, SIG_DFL);  // as a shell starts it; not as a parent may have that ignores it
    const rlimit limit{*circumstances.largest_file, *circumstances.largest_file};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(99);
  }
  if (!circumstances.cache.empty()) ::setenv("PACELINE_CACHE", circumstances.cache.c_str(), 1);
  for (const auto& [name, value] : circumstances.variables) ::setenv(name.c_str(), value.c_str(), 1);
#ifdef PACELINE_REFUSE_THREAD
  if (circumstances.refused_thread > 0) {
    ::setenv("LD_PRELOAD", PACELINE_REFUSE_THREAD, 1);
    ::setenv("REFUSE_THREAD", std::to_string(circumstances.refused_thread).c_str(), 1);
  }
#endif
  if (!circumstances.out_path.empty()) {
    const int file = ::open(circumstances.out_path.c_str(), O_WRONLY);
    if (file < 0 || ::dup2(file, STDOUT_FILENO) < 0) ::_exit(99);
  }
}

/// A test holds no speeds against each other: nothing waits for a quiet moment, and windows are as long as
/// their steps, unless the test says otherwise.
std::vector<std::string> without_settling(std::vector<std::string> words) {
  const auto says = [&](const char* option) { return std::ranges::find(words, option) != words.end(); };
  const bool is_timed = !words.empty() && (words[0] == "sweep" || words[0] == "scale" || words[0] == "study");
  if (!is_timed || says("--help")) return words;
  if (says("--window-steps") && !says("--window-seconds"))
    words.insert(words.end(), {"--window-seconds", "1"});
  if (!says("--measure-again") && !says("--quick"))
    words.insert(words.end(), {"--measure-again", words[0] == "study" ? "2" : "0"});
  return words;
}

}  // namespace

Program::Program(const std::vector<std::string>& words, const RunConditions& circumstances)
    : longest_minutes_(circumstances.longest_minutes) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  std::vector<char*> arguments{const_cast<char*>(PACELINE_PROGRAM)};
  const auto typed = without_settling(words);
  for (const auto& word : typed) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  process_ = ::fork();
  if (process_ == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    enter(circumstances);
    ::execv(PACELINE_PROGRAM, arguments.data());
    ::_exit(99);
  }
  ::close(out[1]);
  ::close(err[1]);
  pipes_[0] = out[0];
  pipes_[1] = err[0];
}

Program::~Program() {
  if (!status_ && process_ > 0) {
    ::kill(process_, SIGKILL);
    reap();
  }
  for (const int pipe : pipes_)
    if (pipe >= 0) ::close(pipe);
}

void Program::signal(int number) const { ::kill(process_, number); }

void Program::read_some(int milliseconds) {
  pollfd waiting[2] = {{pipes_[0], POLLIN, 0}, {pipes_[1], POLLIN, 0}};
  if (::poll(waiting, 2, milliseconds) <= 0) return;
  for (int i = 0; i < 2; ++i) {
    if (waiting[i].revents == 0) continue;
    char bytes[4096];
    const auto count = ::read(pipes_[i], bytes, sizeof bytes);
    if (count > 0) {
      (i == 0 ? outcome_.out : outcome_.err).append(bytes, static_cast<std::size_t>(count));
    } else {
      ::close(pipes_[i]);
      pipes_[i] = -1;  // poll() ignores it from now on
    }
  }
}

bool Program::wait_for(const std::string& text, int minutes) {
  const auto until = Clock::now() + std::chrono::minutes(minutes);
  const auto seen = [&] {
    return outcome_.out.find(text) != std::string::npos || outcome_.err.find(text) != std::string::npos;
  };
  while (!seen() && Clock::now() < until && (pipes_[0] >= 0 || pipes_[1] >= 0)) read_some(100);
  return seen();
}

void Program::reap() {
  int status = 0;
  ::waitpid(process_, &status, 0);
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Outcome Program::finish() {
  const auto until = Clock::now() + std::chrono::minutes(longest_minutes_);
  while (pipes_[0] >= 0 || pipes_[1] >= 0) {
    read_some(100);
    if (Clock::now() > until) {
      ADD_FAILURE() << "the program did not end within " << longest_minutes_ << " minutes";
      ::kill(process_, SIGKILL);
      break;
    }
  }
  reap();
  outcome_.code = *status_;
  return outcome_;
}

Outcome run_two_processes(const std::vector<std::string>& words,
                          const std::function<RunConditions(int rank)>& of_rank) {
  const auto port = std::to_string(port_of_process());
  const auto conditions = [&](int rank) {
    auto all = of_rank(rank);
    for (const auto& [name, value] :
         {std::pair("RANK", std::to_string(rank)), std::pair("WORLD_SIZE", std::string("2")),
          std::pair("MASTER_ADDR", std::string("127.0.0.1")), std::pair("MASTER_PORT", port)})
      all.variables.emplace_back(name, value);
    return all;
  };
  Program second(words, conditions(1));
  auto first = run_program(words, conditions(0));
  EXPECT_EQ(second.finish().code, first.code);
  return first;
}

Outcome run_program(const std::vector<std::string>& words, const RunConditions& circumstances) {
  return Program(words, circumstances).finish();
}

int free_port() { return bound_port(0); }

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "paceline-cli-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Folder::write(const std::string& name, const std::string& bytes) const {
  const auto path = path_ / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

}  // namespace paceline::cli
