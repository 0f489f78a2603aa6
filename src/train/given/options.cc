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

/// All of `text` as a number.
std::optional<double> number_of(std::string_view text, std::chars_format format) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, format);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<CheckpointInterval> checkpoint_interval(std::string_view text) {
  for (const auto& [name, unit] : kNames) {
    if (!text.ends_with(name)) continue;
    const auto count =
        number_of(text.substr(0, text.size() - name.size()), std::chars_format::fixed).value_or(0);
    if (!(count > 0) || count > kMost) return std::nullopt;
    if (unit != Unit::seconds && count != std::floor(count)) return std::nullopt;
    return CheckpointInterval{.unit = unit, .count = count};
  }
  return std::nullopt;
}

std::string text_of(const CheckpointInterval& interval) {
  return fmt::format("{}{}", interval.count,
                     interval.unit == Unit::steps     ? "steps"
                     : interval.unit == Unit::seconds ? "s"
                                                      : "");
}

std::optional<TrainingTarget> target_named(std::string_view text) {
  for (const bool is_loss : {false, true}) {
    TrainingTarget target{.is_loss = is_loss};
    const auto begin = fmt::format("{}=", target.quantity());
    if (!text.starts_with(begin)) continue;
    target.value = number_of(text.substr(begin.size()), std::chars_format::general).value_or(0);
    if (std::isfinite(target.value) && target.value > 0 && (is_loss || target.value <= 1)) return target;
  }
  return std::nullopt;
}

std::string text_of(const TrainingTarget& target) {
  return fmt::format("{}={}", target.quantity(), target.value);
}

}  // namespace paceline::train
