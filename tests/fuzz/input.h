#pragma once

/// What the fuzz targets share: the input as a file, since the readers open files.

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace paceline::fuzz {

/// A directory of this process in memory, removed at its end, whose files are written anew for each input.
class Directory {
 public:
  Directory() {
    std::string name = "/dev/shm/paceline-fuzz-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  /// Makes `data` the contents of the file `name`; returns its path.
  std::filesystem::path write(const std::string& name, const std::uint8_t* data, std::size_t bytes) const {
    const auto file = path_ / name;
    const int descriptor = ::open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (descriptor < 0 || ::write(descriptor, data, bytes) != static_cast<ssize_t>(bytes)) std::abort();
    ::close(descriptor);
    return file;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace paceline::fuzz
