#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/svg/svg.h"
#include "report/text.h"

// Drawings in rows: how one time becomes another, bars of parts, and what ranks did at the same time.

namespace paceline::report::svg {
namespace {

constexpr double kRow = 28, kBar = 18, kHead = 8, kBelow = 44;
constexpr double kNames = 170;  // pixels for the names of rows

/// Names at the left of rows, each in up to two lines; sets the left end of the bars.
std::string names_of_rows(const std::vector<std::string>& names, double& left) {
  std::vector<std::vector<std::string>> texts;
  left = 0;
  for (const auto& name : names)
    for (const auto& line : texts.emplace_back(lines_of(name, kNames)))
      left = std::max(left, text_width(line));
  left += 14;
  std::string out;
  for (std::size_t i = 0; i < texts.size(); ++i)
    for (std::size_t k = 0; k < texts[i].size(); ++k)
      out +=
          text_at(left - 8,
                  kHead + kRow * (static_cast<double>(i) + 0.5) +
                      (static_cast<double>(k) - (static_cast<double>(texts[i].size()) - 1) / 2) * (kLine - 2),
                  "end", texts[i][k]);
  return out;
}

/// Grid lines and the axis below `rows` rows.
std::string axis_below(const Scale& scale, const Axis& axis, double left, double right, std::size_t rows) {
  const double bottom = kHead + kRow * static_cast<double>(rows);
  std::string grid;
  for (const double tick : scale.ticks)
    grid +=
        fmt::format("<path d=\"M{:.2f},{:.1f}V{:.1f}\" stroke=\"#e3e3dc\"/>\n", scale(tick), kHead, bottom);
  return grid + x_axis(scale, axis, {.left = left, .right = right, .top = kHead, .bottom = bottom});
}

std::string rect(std::string_view kind, double from, double to, double y, double height,
                 std::string_view fill, std::string_view more = "") {
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"{}{}/>\n",
      kind, std::min(from, to), y, std::abs(to - from), height, fill, more.empty() ? "" : " ", more);
}

struct TimeUnit {
  double factor = 1;
  const char* name = "s";
};
TimeUnit unit_of(double seconds) {
  return seconds >= 1 ? TimeUnit{1, "s"} : seconds >= 1e-3 ? TimeUnit{1e3, "ms"} : TimeUnit{1e6, "us"};
}

std::string with_sign(double value) { return (value < 0 ? "-" : "+") + number(std::abs(value)); }

constexpr std::string_view kWhole = "#bfc2ba", kNoise = "#d9dbd6";

/// A row of a waterfall, in the unit of its axis.
struct Row {
  std::string name, text;
  bool is_total = false;
  double from = 0, to = 0;
  double low = 0, high = 0;  ///< where it may end; equal if nothing is known
  std::string_view colour;
};

std::vector<Row> rows_of(const Waterfall& waterfall, double factor, Colours& colours) {
  const auto total = [&](const std::string& name, double seconds) {
    const double end = factor * seconds;
    return Row{name, number(end), true, 0, end, end, end, kWhole};
  };
  std::vector<Row> rows{total(waterfall.from_name, waterfall.from)};
  double run = waterfall.from;
  for (const auto& change : waterfall.changes) {
    const double end = run + change.seconds;
    rows.push_back({change.name, with_sign(factor * change.seconds), false, factor * run, factor * end,
                    factor * (change.low && change.high ? run + *change.low : end),
                    factor * (change.low && change.high ? run + *change.high : end),
                    change.is_noise ? kNoise : colours.of_phase(change.name)});
    run = end;
  }
  rows.push_back(total(waterfall.to_name, waterfall.to));
  return rows;
}

}  // namespace

Picture waterfall(const Waterfall& given, Colours& colours) {
  double all = given.from + given.to;
  for (const auto& change : given.changes)
    all += change.seconds + change.low.value_or(0) + change.high.value_or(0);
  if (!std::isfinite(all)) return {};
  const TimeUnit unit = unit_of(std::max(given.from, given.to));
  const auto rows = rows_of(given, unit.factor, colours);
  std::vector<std::string> names;
  std::vector<double> values;
  double texts = 0, left = 0;
  for (const Row& row : rows) {
    names.push_back(row.name);
    texts = std::max(texts, text_width(row.text));
    values.insert(values.end(), {row.to, row.low, row.high});
  }
  Picture picture;
  picture.body = names_of_rows(names, left);
  const double right = kWidth - texts - 12;
  const Axis axis{.label = "time", .unit = unit.name};
  const Scale x = scale_for(values, axis, left, right, Ticks::round);
  const bool is_cut = x.low > 0;
  picture.body += axis_below(x, axis, left, right, rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const double top = kHead + kRow * static_cast<double>(i) + (kRow - kBar) / 2, middle = top + kBar / 2;
    const double from = row.is_total && is_cut ? left : x(row.from), to = x(row.to);
    picture.body += rect(row.is_total ? "total" : "change", from, to, top, kBar, row.colour);
    if (row.is_total && is_cut)
      picture.body += fmt::format(
          "<path d=\"M{:.1f},{:.1f}l4,{:.1f}m4,0l-4,-{:.1f}\" stroke=\"#ffffff\" stroke-width=\"2\"/>\n",
          from + 6, top - 1, kBar + 2, kBar + 2);
    if (row.low < row.high)
      picture.body += fmt::format(
          "<path class=\"intervals\" d=\"M{:.2f},{:.1f}H{:.2f}m0,-3v6M{:.2f},{:.1f}v6\" stroke=\"#191d22\" "
          "fill=\"none\"/>\n",
          x(row.low), middle, x(row.high), x(row.low), middle - 3);
    picture.body += text_at(std::max({from, to, x(row.high)}) + 6, middle, "start", row.text);
  }
  picture.height = kHead + kRow * static_cast<double>(rows.size()) + kBelow;
  if (std::ranges::any_of(given.changes, &Waterfall::Change::is_noise))
    picture.keys.push_back(box_key(kNoise, "within noise: the interval holds 0"));
  if (std::ranges::any_of(rows, [](const Row& row) { return row.low < row.high; }))
    picture.keys.push_back({"<path d=\"M-8,0H8M-8,-3v6M8,-3v6\" stroke=\"#191d22\"/>", "interval"});
  if (is_cut) picture.keys.push_back({"", "the axis begins above 0: the two whole times are cut"});
  picture.description = fmt::format("From {} to {}, in {}.", given.from_name, given.to_name, unit.name);
  return picture;
}

Picture stacked_bars(const std::vector<StackedBar>& bars, const std::vector<std::string>& names,
                     const Axis& axis, Colours& colours) {
  std::vector<std::string> rows;
  std::vector<double> ends{0};
  std::vector<bool> is_shown(names.size(), false);
  double texts = 0, left = 0;
  bool has_gain = false;
  for (const auto& bar : bars) {
    double end = 0;
    for (std::size_t k = 0; k < bar.parts.size(); ++k) {
      if (!std::isfinite(bar.parts[k])) return {};
      end += std::max(0.0, bar.parts[k]);
      is_shown[k] = is_shown[k] || bar.parts[k] > 0;
      has_gain = has_gain || bar.parts[k] < 0;
    }
    ends.push_back(end);
    rows.push_back(bar.name);
    texts = std::max(texts, text_width(bar.text));
  }
  if (std::ranges::max(ends) <= 0) return {};
  Picture picture;
  picture.body = names_of_rows(rows, left);
  const double right = kWidth - texts - 16;
  const Scale x = scale_for(ends, axis, left, right, Ticks::zero);
  picture.body += axis_below(x, axis, left, right, bars.size());
  // Every second part that is shown is striped.
  std::vector<bool> is_striped(names.size(), false);
  for (std::size_t k = 0, shown = 0; k < names.size(); ++k) {
    if (!is_shown[k]) continue;
    is_striped[k] = shown++ % 2 == 1;
    picture.keys.push_back(box_key(colours.of_phase(names[k]), names[k], is_striped[k]));
  }
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double top = kHead + kRow * static_cast<double>(i) + (kRow - kBar) / 2;
    double end = 0, gain = 0;
    for (std::size_t k = 0; k < bars[i].parts.size(); ++k) {
      const double part = bars[i].parts[k];
      gain += std::max(0.0, -part);
      if (part <= 0) continue;
      picture.body += rect("part", x(end), x(end + part), top, kBar, colours.of_phase(names[k]),
                           fmt::format("data-name=\"{}\"", xml(names[k])));
      if (is_striped[k]) picture.body += rect("stripes", x(end), x(end + part), top, kBar, "url(#stripes)");
      end += part;
    }
    if (gain > 0)
      picture.body += rect("gain", x(end - gain), x(end), top - 2, kBar + 4, "none",
                           "stroke=\"#0b7a5c\" stroke-width=\"1.4\" stroke-dasharray=\"3 2\"");
    picture.body += text_at(x(end) + 6, top + kBar / 2, "start", bars[i].text);
  }
  if (has_gain)
    picture.keys.push_back(
        {"<rect x=\"-7\" y=\"-6\" width=\"14\" height=\"12\" fill=\"none\" stroke=\"#0b7a5c\" "
         "stroke-dasharray=\"3 2\"/>",
         "gain"});
  picture.height = kHead + kRow * static_cast<double>(bars.size()) + kBelow;
  return picture;
}

Picture timeline(const Timeline& given, Colours& colours) {
  if (given.spans.empty()) return {};
  std::vector<double> ends;
  for (const auto& span : given.spans) ends.insert(ends.end(), {span.begin, span.end});
  if (std::ranges::any_of(ends, [](double end) { return !std::isfinite(end); })) return {};
  const TimeUnit unit = unit_of(std::ranges::max(ends) - std::ranges::min(ends));
  for (double& end : ends) end *= unit.factor;
  Picture picture;
  double left = 0;
  picture.body = names_of_rows(given.lanes, left);
  const Axis axis{.label = "time", .unit = unit.name};
  const double right = kWidth - 16;
  const Scale x = scale_for(ends, axis, left, right, Ticks::zero);
  picture.body += axis_below(x, axis, left, right, given.lanes.size());
  std::vector<bool> is_used(given.phases.size(), false);
  for (const auto& span : given.spans) {
    const auto phase = static_cast<std::size_t>(span.phase);
    is_used[phase] = true;
    picture.body += rect("span", x(span.begin * unit.factor), x(span.end * unit.factor),
                         kHead + kRow * span.lane + (kRow - kBar) / 2, kBar,
                         colours.of_phase(given.phases[phase]), "stroke=\"#ffffff\" stroke-width=\"0.4\"");
  }
  for (std::size_t k = 0; k < given.phases.size(); ++k)
    if (is_used[k]) picture.keys.push_back(box_key(colours.of_phase(given.phases[k]), given.phases[k]));
  picture.height = kHead + kRow * static_cast<double>(given.lanes.size()) + kBelow;
  picture.description = fmt::format("Time in {} since the first step shown.", unit.name);
  return picture;
}

}  // namespace paceline::report::svg
