#include "base/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/replacement.h"

namespace paceline::base {
namespace {

/// Closes a descriptor at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

/// How long to wait for the first data of a FIFO; a shell's <(...) writes at once.
constexpr std::chrono::seconds kPatience{10};

/// For a FIFO: waits for its first bytes, then makes reads blocking. Does nothing for other files.
void wait_for_writer(int descriptor, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISFIFO(status.st_mode)) return;
  const auto end = Clock::now() + kPatience;
  constexpr int kLookMs = 100;
  pollfd look{.fd = descriptor, .events = POLLIN, .revents = 0};
  // POLLHUP: the writer has closed it. It is not reported before the first writer opens it.
  while (::poll(&look, 1, kLookMs) <= 0 || (look.revents & (POLLIN | POLLHUP)) == 0) {
    if (Clock::now() >= end)
      fail(ErrorKind::data,
           "{}: cannot be read: it is a FIFO, and no program has written to it for {} s; give a file, or "
           "start the writer first",
           path.string(), kPatience.count());
  }
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
}

}  // namespace

void write_file(const std::filesystem::path& path, const std::function<void(const Sink&)>& writer) {
  if (path.has_parent_path()) {
    std::error_code ignored;  // the open below then fails with the reason
    std::filesystem::create_directories(path.parent_path(), ignored);
  }
  Replacement file(path);
  writer([&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  write_file(path, [&](const Sink& sink) { sink(std::as_bytes(std::span(bytes))); });
}

void require_directory_of(const std::filesystem::path& file, std::string_view option) {
  std::error_code unknown;
  const auto directory = file.parent_path();
  if (directory.empty() || std::filesystem::is_directory(directory, unknown)) return;
  const bool is_there = std::filesystem::exists(directory, unknown);
  fail(ErrorKind::data, "{} {}: {} {}; make it first, or give another file", option, file.string(),
       is_there ? "this is not a directory:" : "there is no directory", directory.string());
}

std::string read_file(const std::filesystem::path& path) {
  // O_NONBLOCK: otherwise open() of a FIFO blocks until somebody writes.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(ErrorKind::data, "{}: cannot be read: {}", path.string(), std::strerror(errno));
  wait_for_writer(file.get(), path);
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
