#include "base/host_name.h"

#include <unistd.h>

#include <array>

namespace paceline::base {

std::string host_name() {
  std::array<char, kHostNameBytes> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace paceline::base
