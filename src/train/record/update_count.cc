#include "train/record/update_count.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <system_error>

namespace paceline::train {

UpdateCount::UpdateCount(const std::filesystem::path& out)
    : path_(out.empty() ? std::filesystem::path() : out / kUpdatesDone) {}

UpdateCount::~UpdateCount() {
  if (file_ >= 0) ::close(file_);
}

void UpdateCount::set(std::int64_t updates) {
  if (path_.empty()) return;
  if (file_ < 0) {
    std::error_code ignored;  // then it cannot be opened either
    std::filesystem::create_directories(path_.parent_path(), ignored);
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0) return path_.clear();
  }
  // Always the same length, so that no part of an older number remains.
  const auto line = fmt::format("{:019}\n", updates);
  [[maybe_unused]] const auto written = ::pwrite(file_, line.data(), line.size(), 0);
}

void UpdateCount::forget() {
  std::error_code ignored;
  if (file_ >= 0) std::filesystem::remove(path_, ignored);
}

std::optional<std::int64_t> counted_updates(const std::filesystem::path& out) {
  std::ifstream file(out / kUpdatesDone);
  std::int64_t updates = 0;
  if (file >> updates && updates >= 0) return updates;
  return std::nullopt;
}

}  // namespace paceline::train
