#include "measure/event_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/write_error.h"

namespace paceline::measure {
namespace {

/// A file descriptor that is closed at the end of the block.
class Opened {
 public:
  explicit Opened(int descriptor) : descriptor_(descriptor) {}
  ~Opened() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Whether byte `at` - 1 of the file ends a line.
bool ends_a_line(int file, std::int64_t at) {
  char last = 0;
  return ::pread(file, &last, 1, at - 1) == 1 && last == '\n';
}

}  // namespace

EventLog::EventLog(std::filesystem::path directory, std::function<void(const std::string&)> say)
    : path_(std::move(directory) / kEventsFile), say_(std::move(say)) {}

EventLog::~EventLog() {
  if (file_ >= 0) ::close(file_);
}

bool EventLog::open() {
  if (file_ >= 0) return true;
  // Links are not followed, because the file is this run's own. Also readable, to check its last byte.
  file_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file_ < 0) {
    give_up(errno);
    return false;
  }
  // A killed run or a full disk may have left an incomplete line: end it, so that it stays separate.
  struct stat now {};
  if (::fstat(file_, &now) == 0 && now.st_size > 0 && !ends_a_line(file_, now.st_size) &&
      ::write(file_, "\n", 1) != 1)
    give_up(errno);
  return !given_up_;
}

void EventLog::give_up(int error) {
  given_up_ = true;
  if (say_)
    say_(fmt::format("{}: {}; the run goes on without it", path_.string(), base::reason_of_write(error)));
}

void EventLog::write(const Event& event) {
  const auto line = to_json(event) + "\n";
  const std::lock_guard lock(mutex_);
  if (given_up_ || !open()) return;
  ssize_t written = 0;
  do written = ::write(file_, line.data(), line.size());
  while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) return;
  give_up(written < 0 ? errno : ENOSPC);  // written in part: the disk is full
}

EventTail::EventTail(std::filesystem::path file, std::int64_t from)
    : file_(std::move(file)), offset_(std::max<std::int64_t>(from, 0)) {
  const Opened opened(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat now {};
  if (offset_ > 0 && (opened.get() < 0 || ::fstat(opened.get(), &now) != 0 || offset_ > now.st_size ||
                      !ends_a_line(opened.get(), offset_)))
    offset_ = 0;
}

std::vector<EventTail::Line> EventTail::read(std::int64_t most_bytes) {
  struct stat now {};
  if (::lstat(file_.c_str(), &now) != 0 || !S_ISREG(now.st_mode)) return {};
  const auto inode = static_cast<std::uint64_t>(now.st_ino);
  if ((inode_ != 0 && inode != inode_) || now.st_size < offset_) {
    offset_ = 0;
    ++begun_anew_;
  }
  inode_ = inode;
  if (now.st_size == offset_) return {};
  const Opened opened(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (opened.get() < 0) return {};
  std::string text;
  std::vector<Line> lines;
  // A line longer than most_bytes is read completely.
  for (auto bytes = std::min(now.st_size - offset_, most_bytes);;
       bytes = std::min(now.st_size - offset_, 2 * bytes)) {
    text.resize(static_cast<std::size_t>(bytes));
    const auto got = ::pread(opened.get(), text.data(), text.size(), offset_);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (text.find('\n') != std::string::npos || got < bytes || bytes == now.st_size - offset_) break;
  }
  std::size_t begin = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back({text.substr(begin, end - begin), offset_ + static_cast<std::int64_t>(end) + 1});
    begin = end + 1;
  }
  if (!lines.empty()) offset_ = lines.back().end;
  return lines;
}

}  // namespace paceline::measure
