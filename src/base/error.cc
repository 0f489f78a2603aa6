#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace paceline::base {

void expects(bool condition, std::string_view what, std::source_location where) {
  if (condition) [[likely]]
    return;
  std::fprintf(stderr, "paceline: a bug: %.*s does not hold in %s (%s:%u); please report it\n",
               static_cast<int>(what.size()), what.data(), where.function_name(), where.file_name(),
               static_cast<unsigned>(where.line()));
  std::abort();
}

}  // namespace paceline::base
