#include "base/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/replacement.h"

namespace paceline::base {
namespace {

/// Closes on every way out.
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

}  // namespace

void write_file(const std::filesystem::path& path, const std::function<void(const Sink&)>& writer) {
  if (path.has_parent_path()) {
    std::error_code ignored;  // a failure shows as the open below, with its own reason
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
