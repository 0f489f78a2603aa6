#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/svg/svg.h"

// The steps of all measured windows, one window after another, over the cores that other programs kept busy.

namespace paceline::report::svg {
namespace {

constexpr Box kSteps{.left = 56, .right = kWidth - 12, .top = 26, .bottom = 166};
constexpr Box kLoad{.left = 56, .right = kWidth - 12, .top = 204, .bottom = 252};
constexpr std::string_view kQuiet = "#4483c4", kDisturbed = "#b9541a";

/// The groups of steps of a window: from the fastest to the slowest, with a line at the median; hollow if it
/// was disturbed or may have been.
std::string drawn_window(const Strip::Window& window, const Scale& x, const Scale& y) {
  const bool is_quiet = window.mark.empty();
  const double from = x(window.begin_s), to = x(window.begin_s + window.seconds);
  const double each = (to - from) / static_cast<double>(std::max<std::size_t>(1, window.low.size()));
  const auto height = [&](double ratio) { return y(std::max(ratio, y.low)); };
  std::string bars, medians;
  for (std::size_t i = 0; i < window.low.size(); ++i) {
    const double at = from + each * static_cast<double>(i), wide = std::max(0.6, 0.8 * each);
    const double top = height(window.high[i]), bottom = std::max(height(window.low[i]), top + 1);
    bars += fmt::format("M{:.2f},{:.2f}h{:.2f}V{:.2f}h-{:.2f}Z", at, top, wide, bottom, wide);
    medians += fmt::format("M{:.2f},{:.2f}h{:.2f}", at, height(window.middle[i]), wide);
  }
  return fmt::format(
      "<path class=\"steps\" d=\"{}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"/>\n"
      "<path class=\"medians\" d=\"{}\" stroke=\"#191d22\" stroke-width=\"1.2\"/>\n",
      bars, is_quiet ? kQuiet : "#ffffff", is_quiet ? kQuiet : kDisturbed, is_quiet ? "0" : "0.8", medians);
}

}  // namespace

Picture strip(const Strip& given) {
  std::vector<double> ratios, ends{0}, cores{1};
  for (const auto& window : given.windows) {
    for (const auto* some : {&window.low, &window.middle, &window.high})
      ratios.insert(ratios.end(), some->begin(), some->end());
    ends.push_back(window.begin_s + window.seconds);
    cores.push_back(window.others_cores.value_or(0));
  }
  const auto is_odd = [](double value) { return !std::isfinite(value) || value < 0; };
  if (ratios.empty() || std::ranges::any_of(ratios, is_odd) || std::ranges::any_of(ends, is_odd)) return {};
  std::erase_if(ratios, [](double ratio) { return ratio <= 0; });
  ratios.insert(ratios.end(), {0.8, 1.25});  // a window as even as that shows no storm
  const Axis step{.label = "step over its median", .log = true}, load{.label = "others [cores]"},
      time{.label = "measured time", .unit = "s"};
  const Scale y = scale_for(ratios, step, kSteps.bottom, kSteps.top, Ticks::round);
  const Scale below = scale_for(cores, load, kLoad.bottom, kLoad.top, Ticks::zero);
  const Scale x = scale_for(ends, time, kSteps.left, kSteps.right, Ticks::zero);
  Picture picture{.height = kLoad.bottom + 44};
  picture.body =
      y_axis(y, step, kSteps) + fmt::format("<g transform=\"translate(0,{:.0f})\">{}</g>\n", kLoad.top - 22.0,
                                            text_at(4, 12, "start", load.label, "font-weight=\"bold\""));
  auto unnamed = load;
  unnamed.label.clear();
  picture.body += y_axis(below, unnamed, kLoad) + x_axis(x, time, kLoad);
  bool has_unknown = false, has_disturbed = false;
  for (const auto& window : given.windows) {
    has_unknown = has_unknown || !window.others_cores;
    has_disturbed = has_disturbed || !window.mark.empty();
    picture.body += drawn_window(window, x, y);
    const double top = window.others_cores ? below(*window.others_cores) : kLoad.top;
    picture.body += fmt::format(
        "<rect class=\"load\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n",
        x(window.begin_s), top, x(window.begin_s + window.seconds) - x(window.begin_s), kLoad.bottom - top,
        window.others_cores ? kDisturbed : "url(#hatch)");
  }
  picture.keys.push_back(box_key(kQuiet, "fastest to slowest of some steps, and their median"));
  if (has_disturbed)
    picture.keys.push_back(
        {fmt::format("<rect x=\"-7\" y=\"-6\" width=\"14\" height=\"12\" fill=\"#ffffff\" stroke=\"{}\"/>",
                     kDisturbed),
         "disturbed, or maybe disturbed"});
  if (has_unknown) picture.keys.push_back(box_key("url(#hatch)", "others' load not known"));
  picture.description = "Steps over the median step of their configuration, logarithmic, by measured time.";
  return picture;
}

}  // namespace paceline::report::svg
