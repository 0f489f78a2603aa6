#include "base/cache_directory.h"

#include <cstdlib>
#include <string>

namespace paceline::base {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::filesystem::path cache_directory() {
  namespace fs = std::filesystem;
  if (const auto own = variable("PACELINE_CACHE"); !own.empty()) return own;
  if (const auto xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return fs::path(xdg) / "paceline";
  if (const auto home = variable("HOME"); !home.empty()) return fs::path(home) / ".cache" / "paceline";
  return "paceline-cache";
}

}  // namespace paceline::base
