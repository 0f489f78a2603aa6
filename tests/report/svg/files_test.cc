// Figures as SVG: well-formed, and their points where the document says, recovered from pixels by the ticks.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <regex>
#include <set>

#include "report/build.h"
#include "report/document.h"
#include "report/sample.h"
#include "report/study_records.h"
#include "report/svg/svg.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using golden::make_record;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Whether tags are closed in order, attributes quoted, and texts escaped: what an XML parser asks of such
/// files.
void expect_well_formed(const std::string& text) {
  std::vector<std::string> open;
  std::size_t at = 0;
  ASSERT_TRUE(text.starts_with("<?xml"));
  at = text.find("?>") + 2;
  static const std::regex tag(R"re(</?([A-Za-z]+)(?: [A-Za-z:-]+="[^"<]*")*\s*(/?)>)re");
  static const std::regex words("(?:[^<>&]|&(?:lt|gt|amp|quot);)*");
  while (at < text.size()) {
    const auto next = std::min(text.find('<', at), text.size());
    EXPECT_TRUE(std::regex_match(text.substr(at, next - at), words)) << text.substr(at, next - at);
    if (next == text.size()) break;
    const auto end = text.find('>', next) + 1;
    const auto one = text.substr(next, end - next);
    std::smatch found;
    ASSERT_TRUE(std::regex_match(one, found, tag)) << one;
    if (one[1] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), found[1]);
      open.pop_back();
    } else if (found[2].length() == 0) {
      open.push_back(found[1]);
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
  EXPECT_THAT(text, HasSubstr("<title>"));
  for (const char* bad : {"nan", "inf,", "inf\""}) EXPECT_THAT(text, Not(HasSubstr(bad)));
}

/// Values of places, by two ticks of an axis.
struct AxisOfFile {
  double first = 0, first_at = 0, last = 1, last_at = 1;
  bool is_log = false;
  [[nodiscard]] double value(double at) const {
    if (first_at == last_at) return at == first_at ? first : kNaN;
    const double part = (at - first_at) / (last_at - first_at);
    return is_log ? first * std::pow(last / first, part) : first + part * (last - first);
  }
};

AxisOfFile axis_of(const std::string& file, char name, bool is_log) {
  const std::string part = file.substr(file.find(fmt::format("<g class=\"{} axis\">", name)));
  const std::regex tick(name == 'x' ? R"re(data-value="([^"]+)"><path d="M([\d.]+),)re"
                                    : R"re(data-value="([^"]+)"><path d="M[\d.]+,([\d.]+)H)re");
  std::vector<std::pair<double, double>> ticks;
  for (std::sregex_iterator at(part.begin(), part.end(), tick), none; at != none; ++at)
    ticks.emplace_back(std::stod((*at)[1]), std::stod((*at)[2]));
  if (ticks.size() == 1) ticks.push_back(ticks.front());  // all points share it
  return {ticks.front().first, ticks.front().second, ticks.back().first, ticks.back().second, is_log};
}

std::vector<std::pair<double, double>> signs_of(const std::string& series) {
  static const std::regex sign(R"re(<g class="point" transform="translate\(([\d.-]+),([\d.-]+)\)">)re");
  std::vector<std::pair<double, double>> places;
  for (std::sregex_iterator at(series.begin(), series.end(), sign), none; at != none; ++at)
    places.emplace_back(std::stod((*at)[1]), std::stod((*at)[2]));
  return places;
}

std::string series_in(const std::string& file, const std::string& name) {
  const auto begin = file.find(fmt::format("data-name=\"{}\" transform", svg::xml(name)));
  if (begin == std::string::npos) return "";
  return file.substr(begin, file.find("<g class=\"series\"", begin) - begin);
}

/// The text of a file; "" if there is none.
std::string file_named(const Figures& figures, const std::string& name) {
  for (const auto& file : figures.files)
    if (file.name == name) return file.text;
  return "";
}

TEST(Files, HaveThePointsOfTheDocument) {
  const auto document = build(study());
  const auto figures = svg_figures(document);
  int points = 0;
  for (const auto* figure : all<Figure>(document))
    for (const auto& view : figure->views) {
      const auto file = file_named(figures, as_plot(*figure, view).id);
      ASSERT_NE(file, "") << figure->id;
      const AxisOfFile x = axis_of(file, 'x', view.x.log), y = axis_of(file, 'y', view.y.log);
      for (const auto& series : view.series) {
        if (series.dashed || series.hidden || series.points.size() > 14) continue;
        auto wanted = series.points;
        std::ranges::stable_sort(wanted, {}, &Point::x);
        const auto signs = signs_of(series_in(file, series.name));
        ASSERT_EQ(signs.size(), wanted.size()) << figure->id << ": " << series.name;
        for (std::size_t i = 0; i < wanted.size(); ++i, ++points) {
          // A hundredth of a pixel of some 250.
          EXPECT_NEAR(x.value(signs[i].first), wanted[i].x, 1e-3 * std::abs(wanted[i].x) + 1e-3)
              << figure->id;
          EXPECT_NEAR(y.value(signs[i].second) / wanted[i].y, 1, 2e-3) << figure->id;
        }
      }
    }
  EXPECT_GT(points, 60);
}

TEST(Files, AreWellFormedWhateverTheNames) {
  auto document = sample_document();
  const std::string odd = "<b> & \"quoted\" 'x' \x1b[31m \xff\xef\xbf\xbf ]]> 中";
  for (auto& section : document.sections)
    for (auto& block : section.blocks)
      if (auto* figure = std::get_if<Figure>(&block)) {
        figure->finding = figure->note = odd;
        for (auto& view : figure->views) {
          view.x.label = view.y.unit = odd;
          for (auto& series : view.series) series.name += odd;
          for (auto& mark : view.marks) mark.label = odd;
        }
      } else if (auto* waterfall = std::get_if<Waterfall>(&block)) {
        waterfall->from_name = odd;
        for (auto& change : waterfall->changes) change.name += odd;
      }
  const auto figures = svg_figures(document);
  EXPECT_GE(figures.files.size(), 5u);
  for (const auto& file : figures.files) expect_well_formed(file.text);
  for (const auto& file : svg_figures(build(study())).files) expect_well_formed(file.text);
}

// The page skips such points too.
TEST(Files, LeaveOutWhatIsNotFinite) {
  Figure figure{.id = "f", .finding = "F"};
  figure.views.push_back({.x = {.label = "x", .log = true}, .y = {.label = "y", .log = true}});
  figure.views[0].series = {{.name = "a",
                             .points = {{.x = 1, .y = kNaN},
                                        {.x = 2, .y = 3, .low = -kInfinity, .high = kNaN},
                                        {.x = kInfinity, .y = 2},
                                        {.x = 4, .y = 5, .low = 1, .high = 9}}},
                            {.name = "ideal", .points = {{.x = 1, .y = 1}}, .dashed = true}};
  figure.views[0].marks = {{.axis = 'y', .low = kNaN, .label = "m"}};
  Document document{.sections = {{.id = "s", .blocks = {figure}}}};
  auto files = svg_figures(document).files;
  ASSERT_EQ(files.size(), 1u);
  expect_well_formed(files[0].text);
  EXPECT_EQ(signs_of(files[0].text).size(), 2u);
  // Zero and less have no place on a logarithmic axis: it becomes linear.
  figure.views[0].series[0].points = {{.x = 0, .y = -1}, {.x = 1, .y = 1}};
  document.sections[0].blocks = {figure};
  files = svg_figures(document).files;
  EXPECT_THAT(files[0].text, Not(HasSubstr("logarithmic")));
  expect_well_formed(files[0].text);
}

TEST(Files, HaveNoFileWithoutAPoint) {
  Document document{.sections = {{.id = "s"}}};
  auto& blocks = document.sections[0].blocks;
  blocks.emplace_back(
      Figure{.id = "a", .views = {{.series = {{.name = "x", .points = {{.x = 1, .y = kNaN}}}}}}});
  blocks.emplace_back(Figure{
      .id = "b", .views = {{.series = {{.name = "x", .points = {{.x = 1, .y = 1}}, .hidden = true}}}}});
  blocks.emplace_back(Figure{
      .id = "c", .views = {{.series = {{.name = "x", .points = {{.x = 1, .y = 1}}, .dashed = true}}}}});
  blocks.emplace_back(Waterfall{.id = "d", .from = kNaN, .to = 1});
  blocks.emplace_back(Timeline{.id = "e"});
  blocks.emplace_back(Plot{.id = "f", .kind = PlotKind::stacked_bar});
  blocks.emplace_back(Plot{.id = "g",
                           .kind = PlotKind::stacked_bar,
                           .series = {{.name = "p", .points = {{.y = 0}}}},
                           .categories = {"c"}});
  EXPECT_TRUE(svg_figures(document).files.empty());
}

TEST(Files, SayWhichQuestionsHaveNone) {
  std::vector<measure::Record> records;
  for (int repeat = 0; repeat < 3; ++repeat)
    records.push_back(make_record({.kind = "sweep", .scaling = "", .repeat = repeat}));
  const auto figures = svg_figures(build(records));
  EXPECT_THAT(figures.without,
              Contains(HasSubstr("no figure for 'How fast is the network?' One worker sends nothing")));
  EXPECT_THAT(figures.without, Contains(HasSubstr("no figure for 'Which batch?' Only 128 was measured")));
  for (const char* name : {"batch", "network", "accuracy"}) EXPECT_EQ(file_named(figures, name), "");
  // The sample's accuracy was not measured.
  EXPECT_THAT(svg_figures(sample_document()).without,
              Contains(HasSubstr("'What happens to the accuracy?' No training ran to its end.")));
}

TEST(Files, HaveStableNamesForTheAnswers) {
  std::set<std::string> names;
  for (const auto& file : svg_figures(build(study())).files) names.insert(file.name);
  for (const char* name :
       {"hero-images-s", "hero-weak-speedup", "batch-epoch", "batch-memory", "workers-weak", "workers-strong",
        "step", "step-over-workers", "timeline", "network", "accuracy-epoch"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Files, DrawSpecialPointsHollowAndSayWhy) {
  const auto file = file_named(svg_figures(sample_document()), "hero");
  ASSERT_NE(file, "");
  const auto series = series_in(file, "1 worker, 1 core");
  const auto first = series.substr(series.find("class=\"point\""), 300);
  EXPECT_THAT(first.substr(0, first.find("</g>")), HasSubstr("fill=\"#ffffff\" stroke=\"#2a6db0\""));
  EXPECT_THAT(file, HasSubstr(">disturbed</text>"));
  EXPECT_THAT(file, HasSubstr(">interval</text>"));
  EXPECT_THAT(file, HasSubstr("Not drawn: 4 workers on 2 cores."));
  EXPECT_THAT(file, HasSubstr(">throughput [images/s]</text>"));
}

/// The changes of a waterfall end where the document says.
TEST(Files, HaveTheBarsOfAWaterfall) {
  const auto document = sample_document();
  const auto* waterfall = find<Waterfall>(document, "step");
  const auto file = file_named(svg_figures(document), "step");
  ASSERT_NE(file, "");
  const auto x = axis_of(file, 'x', false);
  static const std::regex bar(R"re(<rect class="change" x="([\d.]+)" y="[\d.]+" width="([\d.]+)")re");
  double run = waterfall->from;
  std::size_t i = 0;
  for (std::sregex_iterator at(file.begin(), file.end(), bar), none; at != none; ++at, ++i) {
    EXPECT_NEAR(x.value(std::stod((*at)[1])), run, 1e-4);
    run += waterfall->changes[i].seconds;
    EXPECT_NEAR(x.value(std::stod((*at)[1]) + std::stod((*at)[2])), run, 2e-4);
  }
  EXPECT_EQ(i, waterfall->changes.size());
}

}  // namespace
}  // namespace paceline::report
