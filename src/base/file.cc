#include "base/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace paceline::base {
namespace {

/// Closes on every way out; `release` hands the descriptor to a checked close.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

[[noreturn]] void fail_write(const std::filesystem::path& path, int error) {
  fail(ErrorKind::data, "{}: cannot be written: {}; the previous file, if any, is untouched", path.string(),
       reason_of_write(error));
}

}  // namespace

std::string reason_of_write(int error) {
  rlimit limit{};
  if (error != EFBIG || ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::strerror(error);
  return fmt::format("{} (ulimit -f allows a file {} bytes; raise it)", std::strerror(error), limit.rlim_cur);
}

void write_file(const std::filesystem::path& path, const std::function<void(const Sink&)>& writer) {
  if (path.has_parent_path()) {
    std::error_code ignored;  // a failure shows as the open below, with its own reason
    std::filesystem::create_directories(path.parent_path(), ignored);
  }
  std::string temporary = path.string() + ".partial-XXXXXX";
  Descriptor file(::mkstemp(temporary.data()));
  if (file.get() < 0) fail_write(path, errno);
  try {
    writer([&](std::span<const std::byte> bytes) {
      while (!bytes.empty()) {
        const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail_write(path, errno);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
      }
    });
    ::fchmod(file.get(), 0644);
    if (::fsync(file.get()) != 0) fail_write(path, errno);
    if (::close(file.release()) != 0) fail_write(path, errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail_write(path, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  write_file(path, [&](const Sink& sink) { sink(std::as_bytes(std::span(bytes))); });
}

std::string read_file(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(ErrorKind::data, "{}: cannot be read: {}", path.string(), std::strerror(errno));
  std::string bytes;
  char block[1 << 16];
  while (true) {
    const ssize_t count = ::read(file.get(), block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorKind::data, "{}: cannot be read: {}", path.string(), std::strerror(errno));
    if (count == 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(count));
  }
}

}  // namespace paceline::base
