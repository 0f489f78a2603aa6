#include "base/process_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

namespace paceline::base {

namespace {

using Bytes = std::array<char, 512>;

/// Reads the beginning of /proc/PID/NAME. Allocates nothing, since it may run between fork() and exec().
std::string_view read_of_process(pid_t process, const char* name, Bytes& bytes) {
  std::array<char, 64> path{"/proc/"};
  const auto number = std::to_chars(path.data() + std::strlen(path.data()), path.data() + 32, process);
  std::strcpy(number.ptr, name);
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const auto count = ::read(file, bytes.data(), bytes.size());
  ::close(file);
  return {bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

}  // namespace

char state_of_process(pid_t process) {
  Bytes bytes;
  const auto text = read_of_process(process, "/stat", bytes);
  // "PID (name) STATE ...", where a name may contain any characters.
  const auto name_end = text.rfind(')');
  return name_end == std::string_view::npos || name_end + 2 >= text.size() ? '\0' : text[name_end + 2];
}

std::optional<std::int64_t> ran_for_ns(pid_t process) {
  Bytes bytes;
  const auto text = read_of_process(process, "/schedstat", bytes);  // "RAN WAITED TIMES"
  std::int64_t ran = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ran);
  return error == std::errc() && ran > 0 ? std::optional(ran) : std::nullopt;
}

}  // namespace paceline::base
