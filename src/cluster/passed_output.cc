#include "cluster/passed_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace paceline::cluster {
namespace {

/// How long the end waits for more from a launcher that has ended.
constexpr int kForTheRest_ms = 100;
/// A line of this length is passed on before its end has come.
constexpr std::size_t kLongestLine = 65536;

}  // namespace

bool go_to_one_place(int one, int other) {
  struct stat first {
  }, second{};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

PassedOutput::PassedOutput() {
  if (base::has_reader(STDOUT_FILENO)) open(0, STDOUT_FILENO);
  if (stream_of_[0] == 0 && go_to_one_place(STDOUT_FILENO, STDERR_FILENO))
    stream_of_[1] = 0;
  else if (base::has_reader(STDERR_FILENO))
    open(1, STDERR_FILENO);
}

PassedOutput::~PassedOutput() {
  for (auto& stream : streams_) {
    if (!stream.thread.joinable()) continue;
    stream.to_output.close();
    stream.thread.request_stop();
    stream.thread.join();
  }
}

void PassedOutput::open(std::size_t index, int descriptor) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return;
  Stream& stream = streams_[index];
  stream.from_launcher = base::Descriptor(pipe[0]);
  stream.to_output = base::Descriptor(pipe[1]);
  try {
    stream.output = std::make_unique<base::LineOutput>(descriptor);
    stream.thread = std::jthread([&stream](const std::stop_token& stop) { pass(stream, stop); });
  } catch (const std::system_error&) {  // the system refuses a thread: the launcher writes itself
    stream = {};
    return;
  }
  stream_of_[index] = static_cast<int>(index);
}

void PassedOutput::pass(Stream& stream, const std::stop_token& stop) {
  std::string waiting;
  std::array<char, 4096> piece{};
  while (true) {
    pollfd in{.fd = stream.from_launcher.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&in, 1, kForTheRest_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && stop.stop_requested()) break;
    if (ready == 0) continue;
    const auto bytes = ::read(stream.from_launcher.get(), piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    waiting.append(piece.data(), static_cast<std::size_t>(bytes));
    auto end = waiting.rfind('\n') + 1;  // 0 if there is none
    if (end == 0 && waiting.size() > kLongestLine) end = waiting.size();
    if (end > 0) stream.output->write(waiting.substr(0, end));
    waiting.erase(0, end);
  }
  if (!waiting.empty()) stream.output->write(waiting);
}

void PassedOutput::take_in_child() const {
  for (int descriptor = 0; descriptor < 2; ++descriptor)
    if (const int stream = stream_of_[static_cast<std::size_t>(descriptor)]; stream >= 0)
      ::dup2(streams_[static_cast<std::size_t>(stream)].to_output.get(),
             descriptor == 0 ? STDOUT_FILENO : STDERR_FILENO);
}

}  // namespace paceline::cluster
