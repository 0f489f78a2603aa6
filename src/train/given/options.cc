#include "train/given/options.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace paceline::train {
namespace {

using Unit = CheckpointInterval::Unit;

struct UnitName {
  std::string_view text;
  Unit unit;
};
/// "steps" comes before "s", because it ends with an "s" too.
constexpr std::array<UnitName, 6> kNames{{{"steps", Unit::steps},
                                          {"step", Unit::steps},
                                          {"epochs", Unit::epochs},
                                          {"epoch", Unit::epochs},
                                          {"s", Unit::seconds},
                                          {"", Unit::epochs}}};

constexpr double kMost = 1e9;  ///< steps, epochs or seconds: a run of 30 years

}  // namespace

std::optional<CheckpointInterval> checkpoint_interval(std::string_view text) {
  for (const auto& [name, unit] : kNames) {
    if (!text.ends_with(name)) continue;
    const auto number = text.substr(0, text.size() - name.size());
    double count = 0;
    const auto read =
        std::from_chars(number.data(), number.data() + number.size(), count, std::chars_format::fixed);
    const bool is_number = read.ec == std::errc{} && read.ptr == number.data() + number.size();
    if (!is_number || !(count > 0) || count > kMost) return std::nullopt;
    if (unit != Unit::seconds && count != std::floor(count)) return std::nullopt;
    return CheckpointInterval{.unit = unit, .count = count};
  }
  return std::nullopt;
}

std::string text_of(const CheckpointInterval& interval) {
  switch (interval.unit) {
    case Unit::steps:
      return fmt::format("{}steps", interval.count);
    case Unit::seconds:
      return fmt::format("{}s", interval.count);
    case Unit::epochs:
      break;
  }
  return fmt::format("{}", interval.count);
}

std::optional<TrainingTarget> target_named(std::string_view text) {
  for (const bool is_loss : {false, true}) {
    TrainingTarget target{.is_loss = is_loss};
    const auto begin = fmt::format("{}=", target.quantity());
    if (!text.starts_with(begin)) continue;
    const auto number = text.substr(begin.size());
    const char* const end = number.data() + number.size();
    const auto read = std::from_chars(number.data(), end, target.value);
    const bool is_number = read.ec == std::errc{} && read.ptr == end && std::isfinite(target.value);
    if (is_number && target.value > 0 && (is_loss || target.value <= 1)) return target;
  }
  return std::nullopt;
}

std::string text_of(const TrainingTarget& target) {
  return fmt::format("{}={}", target.quantity(), target.value);
}

bool is_due_by_steps(const CheckpointInterval& interval, std::int64_t updates) {
  return interval.unit == Unit::steps && updates % static_cast<std::int64_t>(interval.count) == 0;
}

bool is_due_by_epochs(const CheckpointInterval& interval, std::int64_t number) {
  return interval.unit == Unit::epochs && number % static_cast<std::int64_t>(interval.count) == 0;
}

}  // namespace paceline::train
