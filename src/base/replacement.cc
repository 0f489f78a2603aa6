#include "base/replacement.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace paceline::base {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".partial-", kRandom = "XXXXXX";  // as mkstemp fills it in

[[noreturn]] void fail_write(const fs::path& path, int error) {
  fail(ErrorKind::data, "{}: cannot be written: {}; the previous file, if any, is untouched", path.string(),
       reason_of_write(error));
}

/// What writers of `path` that were killed have left beside it.
void remove_abandoned(const fs::path& path) {
  const std::string begin = path.filename().string() + std::string(kMark);
  std::error_code unreadable;  // then nothing is removed, and the reason shows where the file is made
  for (fs::directory_iterator entry(path.has_parent_path() ? path.parent_path() : ".", unreadable), end;
       !unreadable && entry != end; entry.increment(unreadable)) {
    const auto name = entry->path().filename().string();
    if (!name.starts_with(begin) || name.size() != begin.size() + kRandom.size()) continue;
    const int left = ::open(entry->path().c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (left < 0) continue;
    if (::flock(left, LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
    ::close(left);
  }
}

}  // namespace

Replacement::Replacement(fs::path path) : path_(std::move(path)) {
  remove_abandoned(path_);
  for (;;) {
    temporary_ = path_.string().append(kMark).append(kRandom);
    descriptor_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
    if (descriptor_ < 0) fail_write(path_, errno);
    while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
    // Another may have taken it for abandoned just before it was locked.
    struct stat found {};
    if (::fstat(descriptor_, &found) != 0 || found.st_nlink > 0) return;
    close();
  }
}

Replacement::~Replacement() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  close();
}

void Replacement::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void Replacement::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_write(path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void Replacement::commit() {
  ::fchmod(descriptor_, 0644);
  // The sync says all that a close could say, which comes last: the lock lasts until the name has changed.
  if (::fsync(descriptor_) != 0) fail_write(path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_write(path_, errno);
  temporary_.clear();
  close();
}

}  // namespace paceline::base
