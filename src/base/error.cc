#include "base/error.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace paceline::base {

std::string reason_of_write(int error) {
  rlimit limit{};
  if (error != EFBIG || ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::strerror(error);
  return fmt::format("{} (ulimit -f allows a file {} bytes; raise it)", std::strerror(error), limit.rlim_cur);
}

bool may_pass(int code) {
  constexpr std::array kPassing{EIO,   ENOSPC,    EDQUOT, ENOMEM, EAGAIN,
                                EBUSY, ETIMEDOUT, ESTALE, EMFILE, ENFILE};
  return std::find(kPassing.begin(), kPassing.end(), code) != kPassing.end();
}

void expects(bool condition, std::string_view what, std::source_location where) {
  if (condition) [[likely]]
    return;
  std::fprintf(stderr, "paceline: a bug: %.*s does not hold in %s (%s:%u); please report it\n",
               static_cast<int>(what.size()), what.data(), where.function_name(), where.file_name(),
               static_cast<unsigned>(where.line()));
  std::abort();
}

}  // namespace paceline::base
