#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "report/svg/svg.h"

// Lines with error bars (few points) or a band (many), a sign for each line, dashed grey ideals, hollow signs
// for points that were disturbed, or may have been.

namespace paceline::report::svg {
namespace {

constexpr std::size_t kFew = 14;  // points; of more, error bars and signs would hide the line
constexpr double kHeight = 250, kTop = 26, kFoot = 44;

bool has_error_bar(const Point& point) {
  return point.low && point.high && std::isfinite(*point.low) && std::isfinite(*point.high) &&
         *point.high > *point.low;
}

/// A series that is drawn: its points that have a place, by x.
struct Line {
  const Series* series = nullptr;
  std::vector<Point> points;
  std::size_t place = 0;  ///< of its colour and sign
  std::string colour, dash;
  double dodge = 0;  ///< pixels to the side
  [[nodiscard]] bool is_few() const { return points.size() <= kFew; }
};

std::vector<Line> lines_to_draw(const Figure::View& view, Colours& colours) {
  std::vector<Line> lines;
  std::array<int, 8> uses{};
  for (const Series& series : view.series) {
    Line line{.series = &series};
    for (const Point& point : series.points)
      if (std::isfinite(point.x) && std::isfinite(point.y)) line.points.push_back(point);
    const std::size_t place = series.dashed ? 0 : colours.place(series.name);
    if (series.hidden || line.points.empty()) continue;
    std::ranges::stable_sort(line.points, {}, &Point::x);
    line.place = place;
    line.colour = series.dashed ? kGrey : colour_at(place);
    constexpr std::array<std::string_view, 3> kDashes{"", "2 3", "10 4"};
    line.dash = series.dashed ? "5 4" : kDashes[static_cast<std::size_t>(std::min(uses[place % 8]++, 2))];
    lines.push_back(std::move(line));
  }
  return lines;
}

/// Moves lines to the side where error bars of two of them would lie on one another.
void dodge(std::vector<Line>& lines) {
  constexpr double kApart = 7, kMost = 22;
  std::multiset<double> xs;
  std::vector<Line*> moved;
  for (Line& line : lines) {
    if (line.series->dashed || !line.is_few() || std::ranges::none_of(line.points, has_error_bar)) continue;
    moved.push_back(&line);
    for (const Point& point : line.points) xs.insert(point.x);
  }
  if (std::ranges::none_of(xs, [&](double x) { return xs.count(x) > 1; })) return;
  const auto last = static_cast<double>(moved.size() - 1);
  const double step = std::min(kApart, kMost / last);
  for (std::size_t i = 0; i < moved.size(); ++i) moved[i]->dodge = (static_cast<double>(i) - last / 2) * step;
}

/// The special marks in order of appearance, each with its own kind of hollow sign.
std::vector<std::pair<std::string, Shape>> shapes_of(const std::vector<Line>& lines) {
  constexpr std::array<Shape, 3> kShapes{Shape::hollow, Shape::dotted, Shape::struck};
  std::vector<std::pair<std::string, Shape>> shapes;
  for (const Line& line : lines)
    for (const Point& point : line.points)
      if (!point.mark.empty() && point.mark != "best" &&
          std::ranges::find(shapes, point.mark, &std::pair<std::string, Shape>::first) == shapes.end())
        shapes.emplace_back(point.mark, kShapes[shapes.size() % kShapes.size()]);
  return shapes;
}

/// The line, its error bars and its signs. Within the group, places are those of the scales.
std::string drawn_line(const Line& line, const Scale& x, const Scale& y,
                       const std::vector<std::pair<std::string, Shape>>& shapes, const Box& box) {
  const auto is_dashed = line.series->dashed;
  const auto height = [&](double value) { return y.is_log && value <= 0 ? box.bottom : y(value); };
  std::string path, intervals, signs, upper, lower;
  for (const Point& point : line.points) {
    const double at = x(point.x);
    path += fmt::format("{}{:.2f},{:.2f}", path.empty() ? "M" : "L", at, y(point.y));
    if (is_dashed) continue;
    if (has_error_bar(point)) {
      const double low = height(*point.low), high = height(*point.high);
      intervals += fmt::format("M{0:.2f},{1:.2f}V{2:.2f}m-3,0h6M{3:.2f},{1:.2f}h6", at, low, high, at - 3);
      upper += fmt::format("{}{:.2f},{:.2f}", upper.empty() ? "M" : "L", at, high);
      lower.insert(0, fmt::format("L{:.2f},{:.2f}", at, low));
    }
    const auto special = std::ranges::find(shapes, point.mark, &std::pair<std::string, Shape>::first);
    if (!line.is_few() && special == shapes.end() && point.mark.empty()) continue;
    signs += fmt::format(
        "<g class=\"point\" transform=\"translate({:.2f},{:.2f})\">{}{}</g>\n", at, y(point.y),
        point.mark.starts_with("best")
            ? fmt::format("<circle class=\"best\" r=\"8\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>",
                          line.colour)
            : "",
        sign_at(line.place, line.colour, special == shapes.end() ? Shape::full : special->second));
  }
  // An ideal of one value is a level.
  if (is_dashed && line.points.size() == 1)
    path = fmt::format("M{:.1f},{:.2f}H{:.1f}", box.left, y(line.points.front().y), box.right);
  std::string out = fmt::format("<g class=\"series\" data-name=\"{}\" transform=\"translate({:.2f},0)\">\n",
                                xml(line.series->name), line.dodge);
  if (line.is_few() && !intervals.empty())
    out +=
        fmt::format("<path class=\"intervals\" d=\"{}\" stroke=\"{}\" stroke-width=\"1.3\" fill=\"none\"/>\n",
                    intervals, line.colour);
  else if (!intervals.empty())
    out += fmt::format("<path class=\"band\" d=\"{}{}Z\" fill=\"{}\" fill-opacity=\"0.18\"/>\n", upper, lower,
                       line.colour);
  out += fmt::format("<path class=\"line\" d=\"{}\" stroke=\"{}\" stroke-width=\"{}\" fill=\"none\"{}/>\n",
                     path, line.colour, is_dashed ? "1.3" : "1.8",
                     line.dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", line.dash));
  return out + signs + "</g>\n";
}

/// Bands, levels and the region beyond the cores; their names are keys.
std::string drawn_marks(const std::vector<Figure::Mark>& marks, const Scale& x, const Scale& y,
                        const Box& box, std::vector<Key>& keys) {
  std::string out;
  for (const auto& mark : marks) {
    if (!std::isfinite(mark.low) || (mark.axis == 'y' && y.is_log && mark.low <= 0)) continue;
    if (mark.axis == 'x') {
      const double from = std::max(box.left, x(mark.low));
      if (from > box.right - 4) continue;
      out += fmt::format(
          "<rect class=\"hatch\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"url(#hatch)\"/>\n",
          from, box.top, box.right - from, box.bottom - box.top);
      keys.push_back(
          {"<rect x=\"-11\" y=\"-6\" width=\"22\" height=\"12\" fill=\"url(#hatch)\"/>", mark.label});
    } else if (mark.high && std::isfinite(*mark.high)) {
      out += fmt::format(
          "<rect class=\"band\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#0b7a5c\" fill-opacity=\"0.15\"/>\n",
          box.left, y(*mark.high), box.right - box.left, std::max(2.0, y(mark.low) - y(*mark.high)));
      keys.push_back(
          {"<rect x=\"-11\" y=\"-5\" width=\"22\" height=\"10\" fill=\"#0b7a5c\" fill-opacity=\"0.15\"/>",
           mark.label});
    } else {
      out += fmt::format(
          "<path class=\"level\" d=\"M{:.1f},{:.1f}H{:.1f}\" stroke=\"#545e69\" stroke-dasharray=\"2 3\"/>\n",
          box.left, y(mark.low), box.right);
      keys.push_back({"<path d=\"M-12,0H12\" stroke=\"#545e69\" stroke-dasharray=\"2 3\"/>", mark.label});
    }
  }
  return out;
}

std::vector<Key> keys_of(const std::vector<Line>& lines,
                         const std::vector<std::pair<std::string, Shape>>& shapes) {
  std::vector<Key> keys;
  bool has_bars = false, has_bands = false, has_best = false;
  for (const Line& line : lines) {
    keys.push_back({fmt::format("<path d=\"M-12,0H12\" stroke=\"{}\" stroke-width=\"1.8\"{}/>{}", line.colour,
                                line.dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", line.dash),
                                line.series->dashed ? "" : sign_at(line.place, line.colour, Shape::full)),
                    line.series->name});
    const bool has = !line.series->dashed && std::ranges::any_of(line.points, has_error_bar);
    has_bars = has_bars || (has && line.is_few());
    has_bands = has_bands || (has && !line.is_few());
    has_best = has_best || std::ranges::any_of(line.points, [](const Point& point) {
                 return point.mark.starts_with("best");
               });
  }
  if (has_best)
    keys.push_back({"<circle r=\"6\" fill=\"none\" stroke=\"#191d22\" stroke-width=\"1.6\"/>", "best"});
  for (const auto& [mark, shape] : shapes) keys.push_back({sign_at(0, "#191d22", shape), mark});
  if (has_bars)
    keys.push_back(
        {"<path d=\"M0,-6V6M-3,-6h6M-3,6h6\" stroke=\"#191d22\" stroke-width=\"1.3\"/>", "interval"});
  if (has_bands)
    keys.push_back(
        {"<rect x=\"-11\" y=\"-5\" width=\"22\" height=\"10\" fill=\"#757d86\" fill-opacity=\"0.25\"/>",
         "interval"});
  return keys;
}

}  // namespace

Picture lines(const Figure::View& view, Colours& colours) {
  auto drawn = lines_to_draw(view, colours);
  if (std::ranges::all_of(drawn, [](const Line& line) { return line.series->dashed; })) return {};
  dodge(drawn);
  std::vector<double> xs, ys;
  for (const Line& line : drawn)
    for (const Point& point : line.points) {
      xs.push_back(point.x);
      ys.push_back(point.y);
      if (!has_error_bar(point) || line.series->dashed) continue;
      if (!view.y.log || *point.low > 0) ys.push_back(*point.low);
      ys.push_back(*point.high);
    }
  for (const auto& mark : view.marks)
    if (mark.axis == 'y') ys.insert(ys.end(), {mark.low, mark.high.value_or(mark.low)});
  const double bottom = kTop + kHeight;
  const Scale y = scale_for(ys, view.y, bottom, kTop, Ticks::round);
  double widest = 20;
  for (const double tick : y.ticks) widest = std::max(widest, text_width(tick_text(tick, view.y)));
  const Box box{.left = widest + 14, .right = kWidth - 16, .top = kTop, .bottom = bottom};
  const Scale x = scale_for(xs, view.x, box.left + 12, box.right - 12, Ticks::measured);
  const auto shapes = shapes_of(drawn);

  Picture picture{.height = bottom + kFoot, .keys = keys_of(drawn, shapes)};
  picture.body = drawn_marks(view.marks, x, y, box, picture.keys) + y_axis(y, view.y, box) +
                 x_axis(x, view.x, box) +
                 fmt::format("<path d=\"M{:.1f},{:.1f}H{:.1f}\" stroke=\"#545e69\"/>\n", box.left, box.bottom,
                             box.right);
  for (const Line& line : drawn) picture.body += drawn_line(line, x, y, shapes, box);
  if (!y.is_log && y.low > 0)
    picture.keys.push_back(
        {"", fmt::format("{} from {} on", view.y.label, tick_text(y.ticks.front(), view.y))});
  picture.description =
      fmt::format("{} over {}{}.", axis_text(view.y), axis_text(view.x), x.is_log ? ", logarithmic" : "");
  return picture;
}

}  // namespace paceline::report::svg
