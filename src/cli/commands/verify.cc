#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/visible.h"
#include "cli/commands/commands.h"
#include "cli/verify_file.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

void print_checks(const std::vector<FileCheck>& checks) {
  for (const auto& check : checks)
    fmt::print("{:<8} {}: {}\n", name(check.state), base::visible(check.path.string()),
               base::visible(check.why));
}

void print_as_json(const std::vector<FileCheck>& checks) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& check : checks)
    list.push_back({{"path", check.path.string()}, {"state", name(check.state)}, {"why", check.why}});
  fmt::print("{}\n", list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

int verify_command(const Settings& settings) {
  std::vector<FileCheck> all;
  std::size_t others = 0;
  for (const auto& path : settings.verify) {
    std::error_code unknown;
    auto checks = fs::is_directory(path, unknown) ? verify_directory(path, others)
                                                  : std::vector<FileCheck>{verify_file(path)};
    if (!settings.json) print_checks(checks);
    all.insert(all.end(), std::make_move_iterator(checks.begin()), std::make_move_iterator(checks.end()));
  }
  if (settings.json) print_as_json(all);
  if (others > 0 && !settings.json) fmt::print("{} other files are of kinds that are not checked\n", others);
  std::fflush(stdout);
  const auto damaged =
      std::ranges::count_if(all, [](const FileCheck& check) { return check.state == FileState::damaged; });
  if (damaged > 0)
    base::fail(base::ErrorKind::data,
               "{} of {} files are damaged; take earlier checkpoints, and measure or copy the rest again",
               damaged, all.size());
  return 0;
}

}  // namespace paceline::cli
