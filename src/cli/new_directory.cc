#include "cli/new_directory.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>

namespace paceline::cli {

std::filesystem::path new_directory(std::string_view command) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &parts);
  std::filesystem::path path = fmt::format("paceline-out/{}-{}", command, stamp);
  for (int next = 2; std::filesystem::exists(path); ++next)
    path = fmt::format("paceline-out/{}-{}-{}", command, stamp, next);
  return path;
}

}  // namespace paceline::cli
