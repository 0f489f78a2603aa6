#include "report/terminal_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "measure/statistics.h"
#include "report/text.h"

namespace paceline::report {
namespace {

/// "CPU, 2 cores · bf16", wrapped between its parts at the width.
std::string screen_header(const Document& document, const Style& style) {
  std::vector<std::string> parts{document.title};
  parts.insert(parts.end(), document.circumstances.begin(), document.circumstances.end());
  if (!document.trust.empty()) parts.push_back(document.trust);
  std::string out, line = " ";
  for (const std::string& part : parts) {
    const bool begins = line == " ";
    if (!begins && display_width(line) + 3 + display_width(part) > static_cast<std::size_t>(style.width)) {
      out += line + "\n";
      line = " ";
    }
    line += (line == " " ? "" : " · ") + part;
  }
  return style.bold(out + line) + "\n\n";
}

std::string painted(const Style& style, Certainty certainty, const std::string& text) {
  return certainty == Certainty::decided   ? style.good(text)
         : certainty == Certainty::careful ? style.warning(text)
                                           : text;
}

/// "limit      compute 91 %  ✓ decided  Waiting 4.7 %, data 3.2 %.", the last part wrapped in its column.
std::string lines_of_answers(const std::vector<const Answer*>& answers, const Style& style) {
  struct Row {
    std::string label, figure, chip;
  };
  std::vector<Row> rows;
  std::size_t label = 0, figure = 0, chip = 0;
  for (const Answer* answer : answers) {
    Row row{answer->id, figure_with_unit(*answer),
            fmt::format("{} {}", sign_of(answer->certainty), chip_or_word(*answer))};
    label = std::max(label, display_width(row.label));
    figure = std::max(figure, display_width(row.figure));
    chip = std::max(chip, display_width(row.chip));
    rows.push_back(std::move(row));
  }
  const std::size_t begin = 3 + label + 2 + figure + 2 + chip + 2;
  constexpr std::size_t kLeast = 30;
  const bool is_beside = begin + kLeast <= static_cast<std::size_t>(style.width);
  const std::size_t indent = is_beside ? begin : 3 + label + 2;
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    out += "   " + padded(row.label, label + 2, true) + style.bold(padded(row.figure, figure, true)) + "  " +
           painted(style, answers[i]->certainty, padded(row.chip, is_beside ? chip : 0, true));
    const auto sentence = wrapped(answers[i]->sentence, static_cast<std::size_t>(style.width) - indent);
    for (std::size_t line = 0; line < sentence.size(); ++line)
      out += (line == 0 && is_beside ? "  " : "\n" + std::string(indent, ' ')) + sentence[line];
    out += "\n";
  }
  return out;
}

/// The first `most` values of `all`, or later ones if `best` would not be among them.
std::vector<double> columns_around(const std::set<double>& all, double best, std::size_t most) {
  std::vector<double> columns(all.begin(), all.end());
  if (columns.size() <= most) return columns;
  const auto place = static_cast<std::size_t>(std::distance(all.begin(), all.find(best)));
  // If `best` is not in the list, `place` is past the end: take the first ones.
  const std::size_t first = place < most || place == columns.size() ? 0 : place + 1 - most;
  const auto begin = columns.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(most)};
}

/// A grid of ways of using the machine by global batch, from the figure's first view, as far as it fits. It
/// always includes the cell that is the answer.
std::string grid(const Figure& hero, const Style& style) {
  if (hero.views.empty()) return "";
  const Figure::View& view = hero.views.front();
  std::set<double> all;
  double best = 0;
  std::vector<const Series*> shown;
  std::size_t name = display_width(view.name);
  for (const Series& series : view.series) {
    if (series.dashed || series.hidden) continue;
    shown.push_back(&series);
    name = std::max(name, display_width(series.name));
    for (const Point& point : series.points) {
      all.insert(point.x);
      if (point.mark.starts_with("best")) best = point.x;
    }
  }
  if (shown.empty() || all.size() < 2) return "";
  constexpr std::size_t kColumn = 9;
  const std::size_t around = 3 + name + 2 + 2 + display_width(view.x.label);
  const std::size_t room = static_cast<std::size_t>(style.width) - around;
  const auto columns = columns_around(all, best, std::max<std::size_t>(1, room / kColumn));
  bool any_doubtful = false;
  std::string out = "   " + padded(view.name, name + 2, true);
  for (const double x : columns) out += padded(integer(x), kColumn, false);
  out = style.dim(out + "  " + view.x.label) + "\n";
  for (const Series* series : shown) {
    std::string line = "   " + padded(series->name, name + 2, true);
    for (const double x : columns) {
      const auto point = std::ranges::find(series->points, x, &Point::x);
      if (point == series->points.end()) {
        line += std::string(kColumn, ' ');
        continue;
      }
      const bool is_doubtful = point->mark.ends_with("disturbed");  // or maybe
      any_doubtful = any_doubtful || is_doubtful;
      line += padded((is_doubtful ? "~" : "") + number(point->y), kColumn, false);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  if (any_doubtful) out += style.dim("   ~ other programs worked, or may have worked, meanwhile") + "\n";
  return out + "\n";
}

std::string warnings(const Document& document, const Style& style) {
  constexpr std::size_t kMost = 3;
  std::string out;
  for (std::size_t i = 0; i < std::min(kMost, document.warnings.size()); ++i)
    out += broken(document.warnings[i], " ! ", 3, style.width);
  if (document.warnings.size() > kMost)
    out += fmt::format(" ! {} more in the report\n", document.warnings.size() - kMost);
  return style.warning(out);
}

/// The command, with `takes` behind its last line if there is room.
std::string indented_command(const std::string& command, const std::string& takes, std::size_t indent,
                             int width) {
  const auto room = static_cast<std::size_t>(width) - indent;
  auto lines = base::command_lines(command, room);
  if (display_width(lines.back()) + display_width(takes) + 2 <= room) lines.back() += takes;
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i)
    out += (i == 0 ? "" : std::string(indent, ' ')) + lines[i] + "\n";
  return out;
}

/// The commands with their time on this machine; the reasons are in the report.
std::string lines_of_next(const Next& next, const Style& style) {
  constexpr std::size_t kMost = 2, kIndent = 8;
  std::string out;
  std::size_t shown = 0;
  for (const auto& step : next.steps) {
    if (step.command.empty() || shown == kMost) continue;
    const std::string takes = step.seconds ? fmt::format("   ({})", duration(*step.seconds)) : "";
    out += (shown == 0 ? " next   " : std::string(kIndent, ' ')) +
           indented_command(step.command, takes, kIndent + 2, style.width);
    ++shown;
  }
  return out;
}

/// The screen for one subject: what to do, its questions, the grid and the next steps. The first subject has
/// the warnings.
std::string screen_of(const Section& section, const Document& document, const Style& style) {
  const bool is_first = section.id == kAnswerSection;
  std::string out = is_first ? "" : " " + style.bold(section.title) + "\n", rest;
  std::vector<const Answer*> questions;
  for (const Block& block : section.blocks) {
    if (const auto* answer = std::get_if<Answer>(&block)) {
      if (answer->question.empty())
        out += style.bold(broken(answer->figure, "   ", 3, style.width)) +
               broken(answer->sentence, "   ", 3, style.width) + "\n";
      else
        questions.push_back(answer);
    } else if (const auto* figure = std::get_if<Figure>(&block)) {
      rest += grid(*figure, style);
    } else if (const auto* next = std::get_if<Next>(&block)) {
      rest += (is_first ? warnings(document, style) : "") + lines_of_next(*next, style);
    }
  }
  return out + lines_of_answers(questions, style) + "\n" + rest;
}

/// Capitals compute; what is not computing is small.
char letter_of(const std::string& phase) {
  static const std::map<std::string, char> kLetters{
      {"data wait", 'd'},        {"copy", 'c'},         {"forward", 'F'},      {"backward", 'B'},
      {"exposed transfer", 't'}, {"exposed wait", 'w'}, {"update", 'U'},       {"evaluation", 'E'},
      {"checkpoint", 'k'},       {"other", '.'},        {"communication", '#'}};
  const auto found = kLetters.find(phase);
  if (found != kLetters.end()) return found->second;
  return phase.empty() ? '?' : phase.front();
}

/// The letters of one lane, `columns` of them, over [begin, begin + length).
std::string drawn_lane(const Timeline& timeline, int lane, double begin, double length, std::size_t columns) {
  std::vector<std::vector<double>> share(columns, std::vector<double>(timeline.phases.size(), 0.0));
  const double slice = length / static_cast<double>(columns);
  for (const auto& span : timeline.spans) {
    if (span.lane != lane) continue;
    const auto first = static_cast<std::size_t>(std::max(0.0, (span.begin - begin) / slice));
    for (std::size_t column = first; column < columns; ++column) {
      const double from = begin + slice * static_cast<double>(column);
      if (from >= span.end) break;
      share[column][static_cast<std::size_t>(span.phase)] +=
          std::max(0.0, std::min(span.end, from + slice) - std::max(span.begin, from));
    }
  }
  std::string line;
  for (const auto& phases : share) {
    const auto most = std::max_element(phases.begin(), phases.end());
    constexpr double kVisible = 0.1;
    double all = 0;
    for (const double seconds : phases) all += seconds;
    const auto phase = static_cast<std::size_t>(most - phases.begin());
    line += all < kVisible * slice ? ' ' : letter_of(timeline.phases[phase]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

bool is_answer(const Section& section) { return section.id.starts_with(kAnswerSection); }

bool has_answers(const Document& document) { return std::ranges::any_of(document.sections, is_answer); }

std::string drawn_in_bars(const std::vector<double>& ratios) {
  constexpr std::array kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::size_t kMost = 12;
  const std::size_t count = std::min(kMost, ratios.size());
  std::string bars;
  for (std::size_t i = 0; i < count; ++i) {
    const std::span part(ratios.begin() + static_cast<std::ptrdiff_t>(i * ratios.size() / count),
                         ratios.begin() + static_cast<std::ptrdiff_t>((i + 1) * ratios.size() / count));
    bars += kBars[static_cast<std::size_t>(std::lround(4 * std::clamp(measure::mean(part), 0.25, 2.0))) - 1];
  }
  return bars;
}

std::string answer_screen(const Document& document, const Style& style) {
  std::string out = screen_header(document, style);
  for (const Section& section : document.sections)
    if (is_answer(section)) out += screen_of(section, document, style);
  return out;
}

std::string Style::paint(const char* code, const std::string& text) const {
  return colour && !text.empty() ? std::string("\x1b[") + code + "m" + text + "\x1b[0m" : text;
}

std::string broken(const std::string& text, const std::string& first, std::size_t indent, int width) {
  const std::size_t room = static_cast<std::size_t>(width) > indent + 20 ? width - indent : 20;
  std::string out;
  const auto lines = wrapped(text, room);
  for (std::size_t i = 0; i < lines.size(); ++i)
    out += (i == 0 ? first : std::string(indent, ' ')) + lines[i] + "\n";
  return out;
}

std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::size_t used = display_width(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return left ? text + blanks : blanks + text;
}

std::string drawn_in_letters(const Timeline& timeline, int width) {
  if (timeline.spans.empty() || timeline.phases.empty()) return "";
  double begin = timeline.spans.front().begin, end = timeline.spans.front().end;
  for (const auto& span : timeline.spans) {
    begin = std::min(begin, span.begin);
    end = std::max(end, span.end);
  }
  std::size_t names = 0;
  for (const auto& lane : timeline.lanes) names = std::max(names, display_width(lane));
  const auto room = static_cast<std::size_t>(std::max(width, 40));
  const std::size_t columns = room > names + 12 ? room - names - 2 : 10;
  const std::string all = duration(end - begin);
  std::string out = std::string(names + 2, ' ') + "0" +
                    std::string(columns > all.size() + 1 ? columns - all.size() - 1 : 1, ' ') + all + "\n";
  std::string letters;
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    const auto line = drawn_lane(timeline, static_cast<int>(lane), begin, end - begin, columns);
    letters += line;
    std::string text = padded(timeline.lanes[lane], names + 2, true) + line;
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  std::vector<std::string> legend;
  for (const auto& phase : timeline.phases)
    if (letters.find(letter_of(phase)) != std::string::npos)
      legend.push_back(fmt::format("{}={}", letter_of(phase), phase));
  return out + broken(fmt::format("{}", fmt::join(legend, ", ")), "", 0, static_cast<int>(room));
}

}  // namespace paceline::report
