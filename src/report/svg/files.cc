#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/document.h"
#include "report/svg/svg.h"
#include "report/text.h"

// A file for each drawing of a report, from the same blocks as the page's.

namespace paceline::report {
namespace {

/// The files so far; colours and names are those of the whole report.
struct Drawn {
  std::vector<NamedText> files;
  svg::Colours colours;
  OwnNames names;
  std::vector<std::string> ids;  ///< of the blocks that gave a file

  void add(const std::string& id, const std::string& name, svg::Picture picture, const std::string& title,
           const std::string& note) {
    if (picture.body.empty()) return;
    picture.title = title;
    picture.description += (picture.description.empty() || note.empty() ? "" : " ") + note;
    files.push_back({names.next(name), svg::file_of(picture)});
    ids.push_back(id);
  }
};

std::string text_about_hidden(const std::vector<Series>& all) {
  std::string names;
  for (const Series& series : all)
    if (series.hidden) names += (names.empty() ? "" : "; ") + series.name;
  return names.empty() ? "" : fmt::format(" Not drawn: {}.", names);
}

void draw(Drawn& drawn, const Figure& figure) {
  for (const Figure::View& view : figure.views) {
    // The finding is about the first view; of another the title says what it shows.
    const bool is_first = &view == figure.views.data();
    drawn.add(
        figure.id, as_plot(figure, view).id, svg::lines(view, drawn.colours),
        is_first ? figure.finding : fmt::format("{} over {} ({})", view.y.label, view.x.label, view.name),
        figure.note + text_about_hidden(view.series));
  }
}

/// Parts of each bar as shares, with what the whole bar is behind it.
svg::Picture shares(const Plot& plot, svg::Colours& colours) {
  const auto names = base::texts_of(plot.series, &Series::name);
  std::vector<svg::StackedBar> bars;
  for (std::size_t i = 0; i < plot.categories.size(); ++i) {
    svg::StackedBar& bar = bars.emplace_back(svg::StackedBar{.name = plot.categories[i]});
    double all = 0;
    for (const Series& series : plot.series) {
      bar.parts.push_back(i < series.points.size() ? series.points[i].y : 0);
      all += bar.parts.back();
    }
    if (!std::isfinite(all)) return {};
    for (double& part : bar.parts) part = all > 0 ? 100 * part / all : part;
    bar.text = plot.y.unit == "s" ? duration(all) : fmt::format("{} {}", number(all), plot.y.unit);
  }
  return bars.empty() ? svg::Picture{}
                      : svg::stacked_bars(bars, names, {.label = "share", .unit = "%"}, colours);
}

void draw(Drawn& drawn, const Plot& plot) {
  if (plot.kind == PlotKind::line)
    drawn.add(plot.id, plot.id, svg::lines({.x = plot.x, .y = plot.y, .series = plot.series}, drawn.colours),
              plot.title, plot.caption + text_about_hidden(plot.series));
  else
    drawn.add(plot.id, plot.id, shares(plot, drawn.colours), plot.title, plot.caption);
}

void draw(Drawn& drawn, const Waterfall& waterfall) {
  drawn.add(waterfall.id, waterfall.id, svg::waterfall(waterfall, drawn.colours), waterfall.finding,
            waterfall.note);
  std::vector<std::string> names{"efficiency"};
  for (const auto& change : waterfall.changes) names.push_back(change.name);
  std::vector<svg::StackedBar> bars;
  for (const auto& bar : waterfall.bars) {
    double efficiency = 1;
    for (const double part : bar.parts) efficiency -= part;
    auto& row = bars.emplace_back(
        svg::StackedBar{.name = bar.name, .text = percent(efficiency), .parts = {100 * efficiency}});
    for (const double part : bar.parts) row.parts.push_back(100 * part);
  }
  if (bars.empty()) return;
  const Table table = bars_as_table(waterfall);
  drawn.add(waterfall.id, table.id,
            svg::stacked_bars(bars, names, {.label = "part of a step", .unit = "%"}, drawn.colours),
            table.title, "At the right the efficiency: what is left of a step without its losses.");
}

void draw(Drawn& drawn, const Timeline& timeline) {
  drawn.add(timeline.id, timeline.id, svg::timeline(timeline, drawn.colours), timeline.finding,
            timeline.note);
}

void draw(Drawn& drawn, const Strip& strip) {
  drawn.add(strip.id, strip.id, svg::strip(strip), strip.finding, strip.note);
}

// Blocks that are not drawn. (A comparison is in reports of `compare`, which writes no figures; a heat map is
// a table in LaTeX.)
void draw(Drawn&, const Paragraph&) {}
void draw(Drawn&, const Table&) {}
void draw(Drawn&, const Answer&) {}
void draw(Drawn&, const Next&) {}
void draw(Drawn&, const Comparison&) {}
void draw(Drawn&, const Heatmap&) {}
void draw(Drawn&, const Gallery&) {}

}  // namespace

Figures svg_figures(const Document& document) {
  Drawn drawn;
  std::vector<const Answer*> answers;
  for (const Section& section : document.sections)
    for (const Block& block : section.blocks) {
      std::visit([&](const auto& one) { draw(drawn, one); }, block);
      if (const auto* answer = std::get_if<Answer>(&block); answer != nullptr && !answer->question.empty())
        answers.push_back(answer);
    }
  Figures figures{.files = std::move(drawn.files)};
  for (const Answer* answer : answers) {
    const bool is_measured = answer->certainty != Certainty::not_measured;
    if (is_measured && std::ranges::find(drawn.ids, answer->evidence) != drawn.ids.end()) continue;
    figures.without.push_back(
        fmt::format("no figure for '{}' {}", answer->question,
                    is_measured ? "These records give nothing to draw." : answer->sentence));
  }
  return figures;
}

}  // namespace paceline::report
