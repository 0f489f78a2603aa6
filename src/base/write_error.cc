#include "base/write_error.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace paceline::base {

std::string reason_of_write(int error) {
  rlimit limit{};
  if (error != EFBIG || ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::strerror(error);
  return fmt::format("{} (ulimit -f allows a file {} bytes; raise it)", std::strerror(error), limit.rlim_cur);
}

}  // namespace paceline::base
