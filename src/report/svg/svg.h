#pragma once

/// Parts of an SVG drawing for print: text, scales, signs, the legend, and the file around them. Sizes are
/// pixels of 1/96 inch; a file is as wide as a line of an article, so its letters have 9 points there.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "report/document.h"

namespace paceline::report::svg {

inline constexpr double kWidth = 480;
inline constexpr double kLine = 15;  ///< a line of text

struct Box {
  double left = 0, right = 0, top = 0, bottom = 0;
};

/// `text` for XML: escaped, without characters that XML forbids.
[[nodiscard]] std::string xml(std::string_view text);
/// The width of `text`, by the widths of Helvetica's letters.
[[nodiscard]] double text_width(std::string_view text);
/// `text` in lines of at most `width`.
[[nodiscard]] std::vector<std::string> lines_of(std::string_view text, double width);
/// A text element; `anchor` is start, middle or end, `y` its middle.
[[nodiscard]] std::string text_at(double x, double y, std::string_view anchor, std::string_view text,
                                  std::string_view attributes = "");

/// An axis: where values lie, and which of them are named.
struct Scale {
  bool is_log = false;
  double low = 0, high = 1;  ///< values at the ends ...
  double from = 0, to = 1;   ///< ... and where they lie
  std::vector<double> ticks{};
  [[nodiscard]] double operator()(double value) const;
};

enum class Ticks {
  round,     ///< round values, from 0 on unless all values are far from it
  measured,  ///< the values themselves if there is room, as for batches and workers
  zero,      ///< round values, always from 0 on
};

/// A scale over the finite ones of `values`; horizontal if `from` < `to`. A logarithmic axis is linear if a
/// value is not above 0.
[[nodiscard]] Scale scale_for(std::vector<double> values, const Axis& axis, double from, double to,
                              Ticks ticks);
/// "1,000", "0.25", "64 KiB".
[[nodiscard]] std::string tick_text(double value, const Axis& axis);
/// "throughput [images/s]"
[[nodiscard]] std::string axis_text(const Axis& axis);
/// Ticks, their texts, grid lines and the label of an axis below or at the left of `box`. Each tick is a
/// group with its value as data-value.
[[nodiscard]] std::string x_axis(const Scale& scale, const Axis& axis, const Box& box);
[[nodiscard]] std::string y_axis(const Scale& scale, const Axis& axis, const Box& box);

/// The colours of names, the same in all drawings of a report; phases of a step have fixed ones.
class Colours {
 public:
  /// The place of a name in the palette.
  [[nodiscard]] std::size_t place(const std::string& name);
  [[nodiscard]] std::string_view of_phase(const std::string& name);

 private:
  std::map<std::string, std::size_t> places_;
};
[[nodiscard]] std::string_view colour_at(std::size_t place);
inline constexpr std::string_view kGrey = "#757d86";

/// How a special point differs from the others of its line.
enum class Shape { full, hollow, dotted, struck };
/// The sign of a point at (0, 0): each place of the palette has its own.
[[nodiscard]] std::string sign_at(std::size_t place, std::string_view colour, Shape shape);

/// An entry of the legend: what is drawn around (0, 0), 24 wide and 12 high, and its text.
struct Key {
  std::string sign{}, text{};
};
/// A coloured box; `is_striped`: as every second part of a bar, which can be told apart without colours.
[[nodiscard]] Key box_key(std::string_view colour, std::string text, bool is_striped = false);

/// A drawing: its title and what it shows, which readers of the file get, its body, and its legend, which is
/// written below the body.
struct Picture {
  std::string title{}, description{};
  double height = 0;
  std::string body{};
  std::vector<Key> keys{};
};
[[nodiscard]] std::string file_of(const Picture& picture);

// The drawings. A picture without a body has nothing to show.

/// One view of a figure: lines with error bars; special points are hollow.
[[nodiscard]] Picture lines(const Figure::View& view, Colours& colours);
/// Bars of parts, one a row; `parts` [names]. A part below 0 is a gain, drawn hollow at the end.
struct StackedBar {
  std::string name{}, text{};  ///< at its left and its right
  std::vector<double> parts{};
};
[[nodiscard]] Picture stacked_bars(const std::vector<StackedBar>& bars, const std::vector<std::string>& names,
                                   const Axis& axis, Colours& colours);
[[nodiscard]] Picture waterfall(const Waterfall& waterfall, Colours& colours);
[[nodiscard]] Picture timeline(const Timeline& timeline, Colours& colours);
[[nodiscard]] Picture strip(const Strip& strip);

}  // namespace paceline::report::svg
