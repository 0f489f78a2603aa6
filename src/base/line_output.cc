#include "base/line_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace paceline::base {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{50};
constexpr milliseconds kAtTheEnd{1000};
/// For write() where the system refuses a thread.
constexpr milliseconds kWithoutThread{200};
/// A pipe that can be written takes this much at once, and no other writer's bytes come between.
constexpr std::size_t kAtOnce = PIPE_BUF;
/// What can be written at once where the descriptor could not be opened anew: a terminal may have less room.
constexpr std::size_t kLittle = 256;

bool is_kind(int descriptor, mode_t kind) {
  struct stat about {};
  return ::fstat(descriptor, &about) == 0 && (about.st_mode & S_IFMT) == kind;
}

/// The pipe or terminal opened a second time, so that O_NONBLOCK changes nothing for others that share the
/// first; none if that is not possible (no /proc, a socket, a file, which has an offset of its own).
Descriptor opened_anew(int descriptor) {
  if (!has_reader(descriptor) || is_kind(descriptor, S_IFSOCK)) return {};
  return Descriptor(::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(),
                           O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

/// Waits at most `patience` until something can be written, and writes a piece. Returns its bytes; 0: the
/// reader did not read; below 0: it is gone.
ssize_t write_piece(int descriptor, const Descriptor& own, std::string_view text, milliseconds patience) {
  pollfd out{.fd = own.is_open() ? own.get() : descriptor, .events = POLLOUT, .revents = 0};
  if (::poll(&out, 1, static_cast<int>(patience.count())) == 0) return 0;
  const auto piece = text.substr(0, own.is_open() || is_kind(descriptor, S_IFREG) ? kAtOnce : kLittle);
  ssize_t written = 0;
  do
    written = is_kind(descriptor, S_IFSOCK)
                  ? ::send(out.fd, piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                  : ::write(out.fd, piece.data(), piece.size());
  while (written < 0 && errno == EINTR);
  if (written >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return written;
  // poll() called it writable, but it has not enough room for the piece.
  std::this_thread::sleep_for(std::min(patience, kLook));
  return 0;
}

}  // namespace

bool has_reader(int descriptor) {
  return is_kind(descriptor, S_IFIFO) || is_kind(descriptor, S_IFSOCK) || ::isatty(descriptor) == 1;
}

std::size_t write_within(int descriptor, std::string_view text, milliseconds patience) {
  const NoSigpipe no_signal;
  const auto own = opened_anew(descriptor);
  auto left = text;
  for (const auto end = Clock::now() + patience; !left.empty();) {
    const auto written = write_piece(descriptor, own, left, std::min(patience, kLook));
    if (written < 0) left = {};
    if (written > 0) left.remove_prefix(static_cast<std::size_t>(written));
    if (written == 0 && Clock::now() >= end) break;
  }
  return text.size() - left.size();
}

void leave_to_cat(int descriptor, std::string_view text) {
  const Descriptor kept(::memfd_create("lines", MFD_CLOEXEC));
  for (auto left = text; !left.empty();) {
    const auto written = ::write(kept.get(), left.data(), left.size());
    if (written <= 0) return;
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::lseek(kept.get(), 0, SEEK_SET) != 0) return;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // First the output: `descriptor` may be 0, and is not kept beside it.
  ::posix_spawn_file_actions_adddup2(&actions, descriptor, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, kept.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // It lives until the reader reads or is gone, however long that is. So it holds nothing that others wait
  // for: no lock of a caller (flock FILE paceline ...), no pipe, no folder.
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  ::posix_spawn_file_actions_addchdir_np(&actions, "/");
  char name[] = "cat", unbuffered[] = "-u", input[] = "-";  // kCommandLine
  char* const words[] = {name, unbuffered, input, nullptr};
  char* const no_environment[] = {nullptr};
  pid_t process = 0;
  for (const char* path : {"/bin/cat", "/usr/bin/cat"})
    if (::posix_spawn(&process, path, &actions, nullptr, words, no_environment) == 0) break;
  ::posix_spawn_file_actions_destroy(&actions);
}

bool writes_left_output(pid_t process) {
  constexpr std::string_view kCommandLine{"cat\0-u\0-\0", 9};
  std::ifstream file(fmt::format("/proc/{}/cmdline", process));
  std::string words;
  std::getline(file, words, '\n');
  return words == kCommandLine;
}

LineOutput::LineOutput(int descriptor, std::size_t most_bytes)
    : descriptor_(descriptor), most_bytes_(most_bytes), own_(opened_anew(descriptor)) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    // The system refuses threads: write() waits for the reader, but not for long.
  }
}

LineOutput::~LineOutput() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    end_ = Clock::now() + kAtTheEnd;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  if (missing_ > 0 && rest_.empty()) rest_ = fmt::format("({} lines are left out here)\n", missing_);
  for (const auto& piece : waiting_)
    if (!piece.is_drawing) rest_ += piece.text;
  if (!rest_.empty() && !is_gone_) leave_to_cat(descriptor_, rest_);
}

void LineOutput::write(std::string lines) { add({.text = std::move(lines)}); }

void LineOutput::draw(std::string text) { add({.text = std::move(text), .is_drawing = true}); }

void LineOutput::add(Piece piece) {
  if (!thread_.joinable()) {
    (void)write_within(descriptor_, piece.text, kWithoutThread);
    return;
  }
  const std::lock_guard lock(mutex_);
  if (is_gone_) return;
  const auto forget = [this](const Piece& old) { waiting_bytes_ -= old.text.size(); };
  if (piece.is_drawing && !waiting_.empty() && waiting_.back().is_drawing) {
    forget(waiting_.back());
    waiting_.pop_back();
  }
  waiting_bytes_ += piece.text.size();
  waiting_.push_back(std::move(piece));
  while (waiting_bytes_ > most_bytes_ && waiting_.size() > 1) {
    const Piece& oldest = waiting_.front();
    if (!oldest.is_drawing) missing_ += std::ranges::count(oldest.text, '\n');
    forget(oldest);
    waiting_.pop_front();
  }
  wake_.notify_one();
}

void LineOutput::run() {
  const NoSigpipe no_signal;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return is_ending_ || !waiting_.empty(); });
    if (waiting_.empty() || is_gone_ || !rest_.empty()) return;
    std::string text;
    if (const auto missing = std::exchange(missing_, 0); missing > 0)
      text = fmt::format("({} left out here: nobody read them)\n", counted(missing, "line is", "lines are"));
    text += waiting_.front().text;
    const bool is_drawing = waiting_.front().is_drawing;
    waiting_bytes_ -= waiting_.front().text.size();
    waiting_.pop_front();
    lock.unlock();
    const auto left = write_out(text);
    lock.lock();
    if (!left.empty() && !is_drawing) rest_ = left;
    if (!left.empty() && is_drawing) return;
  }
}

std::string_view LineOutput::write_out(std::string_view text) {
  const auto whole = text.size();
  while (!text.empty()) {
    // A line that has begun is written to its end.
    if (text.size() == whole && !has_room(text.size())) continue;
    const auto written = write_piece(descriptor_, own_, text, kLook);
    const std::lock_guard lock(mutex_);
    if (written < 0) is_gone_ = true;
    if (is_gone_) return {};
    text.remove_prefix(static_cast<std::size_t>(written));
    if (is_ending_ && Clock::now() >= end_) return text;
  }
  return text;
}

/// False after a moment, if a pipe is half full and this is not the end.
bool LineOutput::has_room(std::size_t bytes) {
  int unread = 0;
  if (!is_kind(descriptor_, S_IFIFO) || ::ioctl(descriptor_, FIONREAD, &unread) != 0) return true;
  const int capacity = ::fcntl(descriptor_, F_GETPIPE_SZ);
  if (unread == 0 || capacity <= 0 ||
      2 * (static_cast<std::size_t>(unread) + bytes) <= static_cast<std::size_t>(capacity))
    return true;
  std::unique_lock lock(mutex_);
  return wake_.wait_for(lock, kLook, [this] { return is_ending_; });
}

}  // namespace paceline::base
