#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/svg/svg.h"
#include "report/text.h"

// Scales and axes. Batches and workers are few and mostly powers of two: then the ticks are the values that
// were measured, not round numbers between them.

namespace paceline::report::svg {
namespace {

constexpr double kGapX = 46, kGapY = 34;  // pixels between two ticks
constexpr double kSmall = 1e-9;

/// Round numbers over [low, high], about `count` of them.
std::vector<double> round_values(double low, double high, double count) {
  const double raw = (high - low) / std::max(1.0, count);
  if (!(raw > 0)) return {low};
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.5, 2.0, 1.0})
    if (factor * power >= raw * 0.999) step = factor * power;
  std::vector<double> values;
  for (double i = std::ceil(low / step - kSmall); i * step <= high + step * kSmall; ++i)
    values.push_back(i * step);
  return values;
}

/// Powers of `base`, each times the factors, inside [low, high].
std::vector<double> powers(double base, const std::vector<double>& factors, double low, double high) {
  std::vector<double> values;
  const double first = std::floor(std::log(low) / std::log(base) + kSmall);
  for (double power = first; std::pow(base, power) <= high * (1 + kSmall); ++power)
    for (const double factor : factors)
      if (const double value = factor * std::pow(base, power);
          value >= low * (1 - kSmall) && value <= high * (1 + kSmall))
        values.push_back(value);
  return values;
}

bool has_room(const Scale& scale, const std::vector<double>& values, double gap) {
  for (std::size_t i = 1; i < values.size(); ++i)
    if (std::abs(scale(values[i]) - scale(values[i - 1])) < gap) return false;
  return true;
}

/// Every k-th of `values`, for the smallest k that leaves room.
std::vector<double> thinned(const Scale& scale, const std::vector<double>& values, double gap) {
  for (std::size_t k = 1; k <= values.size(); ++k) {
    std::vector<double> kept;
    for (std::size_t i = 0; i < values.size(); i += k) kept.push_back(values[i]);
    if (has_room(scale, kept, gap)) return kept;
  }
  return {};
}

bool is_power_of_two(double value) { return value > 0 && std::exp2(std::round(std::log2(value))) == value; }

std::vector<double> log_ticks(const Scale& scale, const std::vector<double>& values, double gap,
                              Ticks ticks) {
  const bool is_measured = ticks == Ticks::measured;
  if (is_measured && std::ranges::all_of(values, is_power_of_two))
    return thinned(scale, powers(2, {1}, values.front(), values.back()), gap);
  if (is_measured && has_room(scale, values, gap)) return values;
  if (scale.high / scale.low < 4)
    if (auto round = round_values(scale.low, scale.high, std::abs(scale.to - scale.from) / (1.5 * gap));
        !round.empty() && has_room(scale, round, gap))
      return round;
  for (const auto& factors : {std::vector<double>{1, 2, 5}, std::vector<double>{1, 3}})
    if (auto some = powers(10, factors, scale.low, scale.high); some.size() > 1 && has_room(scale, some, gap))
      return some;
  auto some = thinned(scale, powers(10, {1}, scale.low, scale.high), gap);
  if (!some.empty()) return some;
  return has_room(scale, {values.front(), values.back()}, gap) ? std::vector{values.front(), values.back()}
                                                               : std::vector{values.front()};
}

}  // namespace

double Scale::operator()(double value) const {
  const double part = is_log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return from + part * (to - from);
}

Scale scale_for(std::vector<double> values, const Axis& axis, double from, double to, Ticks ticks) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (ticks == Ticks::zero) values.push_back(0);
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.empty()) values = {0, 1};
  const double least = values.front(), most = values.back();
  const double size = std::abs(to - from), gap = from < to ? kGapX : kGapY;
  Scale scale{.is_log = axis.log && least > 0, .from = from, .to = to};
  if (scale.is_log) {
    const double margin = std::max(1.08, std::pow(most / least, 0.05));
    scale.low = least / margin;
    scale.high = most * margin;
    scale.ticks = log_ticks(scale, values, gap, ticks);
    return scale;
  }
  const bool is_measured = ticks == Ticks::measured;
  const bool with_zero = !is_measured && least >= 0 && (ticks == Ticks::zero || least <= 0.8 * most);
  const double span = most > least ? most - least : std::max(std::abs(most), 1.0);
  scale.low = with_zero ? 0 : least - 0.06 * span;
  scale.high = most + (with_zero && most > 0 ? 0.05 * most : 0.06 * span);
  if (is_measured && values.size() <= 10 && has_room(scale, values, gap)) {
    scale.ticks = values;
    return scale;
  }
  scale.ticks = round_values(scale.low, scale.high, std::max(2.0, std::floor(size / gap)));
  return scale;
}

std::string tick_text(double value, const Axis& axis) {
  if (axis.unit == "B") {
    constexpr double kKibi = 1024;
    if (value < kKibi || !is_power_of_two(value)) return bytes(value);
    const auto step = static_cast<int>(std::log2(value) / 10);
    constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    return fmt::format("{:g} {}", value / std::pow(kKibi, std::min(step, 6)), kUnits[std::min(step, 6)]);
  }
  if (std::abs(value) < kSmall) return "0";
  return std::abs(value) >= 1000 && std::abs(value) < 1e9 ? integer(value) : fmt::format("{:.6g}", value);
}

std::string axis_text(const Axis& axis) {
  return axis.unit.empty() || axis.unit == "B" ? axis.label : fmt::format("{} [{}]", axis.label, axis.unit);
}

std::string x_axis(const Scale& scale, const Axis& axis, const Box& box) {
  std::string out = "<g class=\"x axis\">\n";
  for (const double tick : scale.ticks)
    out += fmt::format(
        "<g class=\"tick\" data-value=\"{:.12g}\"><path d=\"M{:.2f},{:.1f}v5\" stroke=\"#545e69\"/>{}</g>\n",
        tick, scale(tick), box.bottom,
        text_at(scale(tick), box.bottom + 14, "middle", tick_text(tick, axis)));
  return out +
         text_at((box.left + box.right) / 2, box.bottom + 32, "middle", axis_text(axis),
                 "font-weight=\"bold\"") +
         "</g>\n";
}

std::string y_axis(const Scale& scale, const Axis& axis, const Box& box) {
  std::string out = "<g class=\"y axis\">\n";
  for (const double tick : scale.ticks)
    out += fmt::format(
        "<g class=\"tick\" data-value=\"{:.12g}\"><path d=\"M{:.1f},{:.2f}H{:.1f}\" stroke=\"#e3e3dc\"/>{}</g>\n",
        tick, box.left, scale(tick), box.right,
        text_at(box.left - 6, scale(tick), "end", tick_text(tick, axis)));
  return out + text_at(4, 12, "start", axis_text(axis), "font-weight=\"bold\"") + "</g>\n";
}

}  // namespace paceline::report::svg
