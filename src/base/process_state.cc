#include "base/process_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

namespace paceline::base {

char state_of_process(pid_t process) {
  std::array<char, 64> path{"/proc/"};
  const auto number = std::to_chars(path.data() + std::strlen(path.data()), path.data() + 32, process);
  std::strcpy(number.ptr, "/stat");
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return '\0';
  std::array<char, 512> bytes;
  const auto count = ::read(file, bytes.data(), bytes.size());
  ::close(file);
  // "PID (name) STATE ...", and a name may hold anything.
  const std::string_view text(bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  const auto name_end = text.rfind(')');
  return name_end == std::string_view::npos || name_end + 2 >= text.size() ? '\0' : text[name_end + 2];
}

}  // namespace paceline::base
