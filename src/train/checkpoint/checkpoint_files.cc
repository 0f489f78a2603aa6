#include "train/checkpoint/checkpoint_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace paceline::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kBestPrefix = "best-";
constexpr std::string_view kSuffix = ".safetensors";

}  // namespace

std::optional<std::int64_t> update_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  std::int64_t update = 0;
  const char* end = name.data() + name.size() - kSuffix.size();
  const auto result = std::from_chars(name.data() + kPrefix.size(), end, update);
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return update;
}

fs::path checkpoint_path(const fs::path& directory, std::int64_t update) {
  return directory / fmt::format("{}{:08}{}", kPrefix, update, kSuffix);
}

fs::path best_checkpoint_path(const fs::path& directory, std::int64_t update) {
  return directory / fmt::format("{}{:08}{}", kBestPrefix, update, kSuffix);
}

std::vector<fs::path> checkpoints_in(const fs::path& directory) {
  std::vector<fs::path> paths;
  std::error_code missing;  // no directory: no checkpoints
  for (fs::directory_iterator entry(directory, missing), end; !missing && entry != end;
       entry.increment(missing))
    if (update_of(entry->path())) paths.push_back(entry->path());
  std::sort(paths.begin(), paths.end(),
            [](const auto& a, const auto& b) { return *update_of(a) > *update_of(b); });
  return paths;
}

void link_to(const fs::path& target, const char* name) {
  const auto link = target.parent_path() / name;
  const auto made = target.parent_path() / (std::string(".") + name + ".paceline-new");
  std::error_code failed;
  const auto there = fs::symlink_status(link, failed);
  if (fs::exists(there) && !fs::is_symlink(there)) return;  // a file that is not ours
  fs::remove(made, failed);                                 // left by a process that was killed in between
  fs::create_symlink(target.filename(), made, failed);
  if (!failed) fs::rename(made, link, failed);
}

fs::path set_aside_damaged(const fs::path& file) {
  const auto aside = file.parent_path() / ("damaged-" + file.filename().string());
  std::error_code failed;
  fs::rename(file, aside, failed);
  return failed ? file : aside;
}

}  // namespace paceline::train
