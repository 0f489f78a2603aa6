#include "train/checkpoint/kept_record.h"

#include <fmt/format.h>

#include <cstdint>
#include <system_error>

#include "base/error.h"
#include "base/file.h"

namespace paceline::train {

void write_lost_rank_0(const std::filesystem::path& out, const measure::Record& record) {
  if (!out.empty() && std::filesystem::is_directory(out)) measure::write_record(out / kLostRank0, record);
}

void remove_lost_rank_0(const std::filesystem::path& out) {
  std::error_code not_there;
  if (!out.empty()) std::filesystem::remove(out / kLostRank0, not_there);
}

namespace {

/// No real run has a larger count, and sums of millions of such counts still fit 64 bits.
constexpr std::int64_t kMostCount = std::int64_t{1} << 40;

bool is_count(std::int64_t value) { return value >= 0 && value <= kMostCount; }

/// Names a value in `record` that no run can have produced; "" if there is none.
std::string impossible(const measure::Record& record) {
  std::int64_t before = 0;
  for (const auto& epoch : record.epochs) {
    if (!is_count(epoch.epoch) || !is_count(epoch.updates) || epoch.updates <= before)
      return fmt::format("epoch {} cannot have ended after {} updates when the one before ended after {}",
                         epoch.epoch, epoch.updates, before);
    if (const auto steps = epoch.steps.value_or(1); steps < 1 || steps > epoch.updates)
      return fmt::format("epoch {} cannot have had {} steps", epoch.epoch, steps);
    before = epoch.updates;
  }
  for (const auto& step : record.steps)
    if (!is_count(step.update)) return fmt::format("a step of update {}", step.update);
  if (record.test_set && !is_count(record.test_set->reads))
    return fmt::format("{} images read of the test set", record.test_set->reads);
  if (record.updates_done && !is_count(*record.updates_done))
    return fmt::format("{} updates done", *record.updates_done);
  if (!is_count(record.data.test_samples)) return fmt::format("{} test images", record.data.test_samples);
  if (record.changes)
    for (const auto& change : *record.changes)
      if (!is_count(change.update)) return fmt::format("a change at update {}", change.update);
  return "";
}

}  // namespace

KeptRecord read_kept_record(const std::filesystem::path& path) {
  if (!base::is_there(path)) return {};
  try {
    auto record = measure::read_record(path);
    if (auto what = impossible(record); !what.empty())
      return {.record = std::nullopt, .damage = fmt::format("{}: {}", path.string(), what)};
    return {.record = std::move(record), .damage = ""};
  } catch (const base::Error& error) {
    return {.record = std::nullopt, .damage = error.what()};
  }
}

}  // namespace paceline::train
