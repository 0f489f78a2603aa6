#include "report/expect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "analysis/steps/breakdown.h"
#include "base/error.h"
#include "base/text.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Cell;
using analysis::Parts;
using analysis::ScalingRow;
using measure::Disturbance;

/// A figure of one subject, and to which sides its true value may lie beyond its interval.
struct Measured {
  std::optional<double> value{}, low{}, high{};
  bool may_be_less = false, may_be_more = false;
  std::string of{};    ///< what it is of: "2 workers, a core each"
  std::string mark{};  ///< what makes it doubtful
  std::string why{};   ///< why it may be more or less; or why it was not measured
};

/// How the true value of a figure lies to one that was measured beside other programs.
enum class Beside { higher, lower, unknown };

std::string text_about_load_beside(Disturbance disturbance) {
  return disturbance == Disturbance::disturbed ? "Other programs worked meanwhile"
                                               : "Other programs may have worked meanwhile";
}

Measured nothing(std::string why) { return {.why = std::move(why)}; }

Measured no_operating_point(const Subject& subject) {
  return nothing(text_about_no_best(subject.point, subject.cells.cells));
}

/// Takes over what makes times of the cell doubtful.
void doubt(Measured& measured, const Subject& subject, const Cell& cell, Beside beside) {
  measured.mark = subject.point.choice.constant_load && cell.disturbance != Disturbance::none
                      ? "machine as it is"
                      : doubt_of(cell);
  if (cell.debug_build || cell.step_s.n == 1) {
    measured.may_be_less = measured.may_be_more = true;
    measured.why = cell.debug_build ? "No figure of a debug build is a speed" : "One step has no interval";
  } else if (cell.disturbance != Disturbance::none && !subject.point.choice.constant_load) {
    measured.may_be_more = beside != Beside::lower;
    measured.may_be_less = beside != Beside::higher;
    measured.why = text_about_load_beside(cell.disturbance);
  }
}

Measured of_estimate(const Subject& subject, const Cell& cell, const analysis::Estimate& estimate,
                     Beside beside) {
  Measured measured{.value = estimate.median,
                    .of = fmt::format("{}, batch {}", way_of(cell), cell.local_batch)};
  take_interval(measured, estimate);
  doubt(measured, subject, cell, beside);
  return measured;
}

Measured of_best(const Subject& subject, analysis::Estimate Cell::*figure, Beside beside) {
  const auto* best = subject.best();
  return best == nullptr ? no_operating_point(subject) : of_estimate(subject, *best, best->*figure, beside);
}

Measured measure_epoch_time(const Subject& subject) {
  auto measured = of_best(subject, &Cell::epoch_s, Beside::lower);
  if (measured.value && !subject.best()->epoch_measured)
    measured.mark += measured.mark.empty() ? "est." : ", est.";
  return measured;
}

/// The row of scaling that the answers are about, else the fastest one with ratios and a core for each
/// thread.
RowOfGroup row_to_judge(const Subject& subject) {
  if (subject.row != nullptr) return {subject.group, subject.row};
  RowOfGroup found;
  for (const auto& [group, row] : subject.conclusions.rows_of_scaling())
    if (group->subject == subject.cells.name && row->has_ratios && !row->is_baseline &&
        !row->cell->oversubscribed &&
        (found.row == nullptr || row->cell->images_per_s.median > found.row->cell->images_per_s.median))
      found = {group, row};
  return found;
}

/// A ratio to fewer workers: other programs beside them make it too high, beside the others too low.
Measured ratio_of_row(const Subject& subject, analysis::Estimate ScalingRow::*ratio) {
  const auto [group, row] = row_to_judge(subject);
  if (row == nullptr) return nothing("No run of several workers has a baseline of fewer");
  auto measured = of_estimate(subject, *row->cell, row->*ratio, Beside::higher);
  measured.of += fmt::format(", against {}", baseline_name(*group->baseline));
  const auto& baseline = *group->baseline;
  if (row->verdict.shares_cores) measured.mark += measured.mark.empty() ? "shared cores" : ", shared cores";
  if (baseline.disturbance == Disturbance::none || subject.point.choice.constant_load) return measured;
  measured.may_be_less = true;
  measured.why = text_about_load_beside(baseline.disturbance);
  if (measured.mark.empty()) measured.mark = mark_of(baseline.disturbance);
  return measured;
}

/// A part of the mean step, as the answer to "What limits?" counts it.
template <typename Seconds>
Measured share(const Subject& subject, Seconds seconds) {
  const auto* best = subject.best();
  if (best == nullptr) return no_operating_point(subject);
  const auto parts = analysis::breakdown(*best).mean;
  Measured measured{.value = std::invoke(seconds, parts) / parts.total(), .of = way_of(*best)};
  doubt(measured, subject, *best, Beside::unknown);
  return measured;
}

/// The figure of an answer, as the page shows it.
Measured of_answer(const Answer& answer) {
  if (answer.certainty == Certainty::not_measured) return nothing(answer.sentence);
  Measured measured{.value = answer.value, .low = answer.low, .high = answer.high};
  if (answer.certainty == Certainty::careful) measured.mark = answer.chip;
  return measured;
}

Measured measure_busbw(const Subject& subject) {
  const auto answer = network_answer(subject);
  auto measured = of_answer(answer);
  for (const Disturbance one : {Disturbance::maybe, Disturbance::disturbed})
    if (measured.mark == mark_of(one)) {
      measured.may_be_more = true;
      measured.why = text_about_load_beside(one);
    }
  return measured;
}

/// Other programs change no bit of a training, so an accuracy is judged whatever ran beside it.
Measured measure_accuracy(const Subject& subject) {
  auto measured = of_answer(accuracy_answer(subject));
  if (!measured.value && measured.why.empty()) measured.why = "No epoch was tested";
  return measured;
}

Measured measure_memory(const Subject& subject) {
  const auto* best = subject.best();
  if (best == nullptr) return no_operating_point(subject);
  const auto peak = memory_of(best->record()).peak;
  if (!peak || *peak <= 0) return nothing("No peak was measured");
  return {.value = static_cast<double>(*peak) / 1e9, .of = way_of(*best)};
}

struct FigureRow {
  const char* name;
  const char* unit;  ///< "" of a ratio, which is shown in percent; "x" of one that is not
  Measured (*measure)(const Subject&);
};
constexpr FigureRow kFigures[] = {
    {"throughput", "images/s",
     [](const Subject& of) { return of_best(of, &Cell::images_per_s, Beside::higher); }},
    {"step_s", "s", [](const Subject& of) { return of_best(of, &Cell::step_s, Beside::lower); }},
    {"epoch_s", "s", measure_epoch_time},
    {"efficiency", "", [](const Subject& of) { return ratio_of_row(of, &ScalingRow::efficiency); }},
    {"speedup", "x", [](const Subject& of) { return ratio_of_row(of, &ScalingRow::speedup); }},
    {"compute", "", [](const Subject& of) { return share(of, &Parts::compute); }},
    {"waiting", "", [](const Subject& of) { return share(of, &Parts::exposed_wait); }},
    {"data", "", [](const Subject& of) { return share(of, &Parts::data_wait); }},
    {"communication", "", [](const Subject& of) { return share(of, &Parts::exposed_transfer); }},
    {"busbw", "GB/s", measure_busbw},
    {"accuracy", "", measure_accuracy},
    {"memory_gb", "GB", measure_memory}};

std::string text_of_value(const FigureRow& row, double value) {
  return *row.unit == '\0' ? percent(value) : number(value);
}

/// "87.1 % [85.8 %, 88.4 %]", "8,557 [8,409, 8,624] images/s, 2 workers, a core each".
std::string text_of_figure(const FigureRow& row, const Measured& measured) {
  std::string text = text_of_value(row, *measured.value);
  const std::string_view unit = row.unit;
  const auto bare = [&](double value) { return number(unit.empty() ? 100 * value : value); };
  if (measured.low && measured.high)
    text += fmt::format(" [{}, {}]", bare(*measured.low), bare(*measured.high));
  if (!unit.empty() && unit != "x") text += fmt::format(" {}", unit);
  return text + (measured.of.empty() ? "" : fmt::format(" ({})", measured.of));
}

struct Sign {
  std::string_view text;
  bool (*holds)(double value, double bound);
};
/// In the order of Bound::Is.
constexpr Sign kSigns[] = {{">=", [](double value, double bound) { return value >= bound; }},
                           {">", [](double value, double bound) { return value > bound; }},
                           {"<=", [](double value, double bound) { return value <= bound; }},
                           {"<", [](double value, double bound) { return value < bound; }}};

bool holds(const Bound& bound, double value) {
  return kSigns[static_cast<std::size_t>(bound.is)].holds(value, bound.value);
}

Expectation judged(const Bound& bound, const Subject& subject) {
  using enum Expectation::Verdict;
  const FigureRow& row = kFigures[bound.figure];
  const Measured measured = row.measure(subject);
  Expectation result{.text = bound.text};
  if (!subject.cells.name.empty()) result.text += fmt::format(" ({})", subject.cells.name);
  const auto sentence = [](std::string why) { return why.empty() || why.ends_with('.') ? why : why + "."; };
  if (!measured.value || !std::isfinite(*measured.value)) {
    result.why = sentence(measured.why.empty() ? "Not measured" : measured.why);
    return result;
  }
  result.figure = text_of_figure(row, measured);
  result.mark = measured.mark;
  result.value = measured.value;
  result.low = measured.low;
  result.high = measured.high;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool at_low =
      holds(bound, measured.may_be_less ? -kInfinity : measured.low.value_or(*measured.value));
  const bool at_high =
      holds(bound, measured.may_be_more ? kInfinity : measured.high.value_or(*measured.value));
  result.verdict = at_low != at_high ? not_decided : at_low ? pass : fail;
  const bool is_open = measured.may_be_less || measured.may_be_more;
  if (measured.may_be_less && measured.may_be_more) {
    result.verdict = not_decided;
    result.why = measured.why + ": measure again";
  } else if (is_open) {
    result.why =
        fmt::format("{}: it is {} this{}", measured.why, measured.may_be_more ? "at least" : "at most",
                    result.verdict == not_decided ? "; measure again on a quiet machine" : "");
  } else if (result.verdict == not_decided) {
    result.why = "The interval holds the bound; more repeats narrow it (--repeats)";
  }
  result.why = sentence(result.why);
  return result;
}

}  // namespace

Bound read_bound(std::string_view typed) {
  std::string text;
  std::ranges::copy_if(typed, std::back_inserter(text), [](char letter) { return letter != ' '; });
  const auto at = text.find_first_of("<>");
  const auto end = at == std::string::npos ? at : text.find_first_not_of("<>=", at);
  if (at == std::string::npos || at == 0 || end == std::string::npos)
    base::fail(base::ErrorKind::usage,
               "must be a figure, one of >=, >, <= and <, and a number, such as 'efficiency>=0.9', got '{}'",
               typed);
  const auto name = text.substr(0, at), sign = text.substr(at, end - at);
  auto value = text.substr(end);
  const auto row = std::ranges::find_if(kFigures, [&](const FigureRow& one) { return one.name == name; });
  if (row == std::end(kFigures))
    base::fail(base::ErrorKind::usage, "names no figure with '{}'; figures are {}", name, names_of_figures());
  const auto place = std::ranges::find(kSigns, sign, &Sign::text);
  if (place == std::end(kSigns))
    base::fail(base::ErrorKind::usage, "must compare by >=, >, <= or <, got '{}'", typed);
  Bound bound{.figure = static_cast<std::size_t>(row - kFigures),
              .is = static_cast<Bound::Is>(place - kSigns),
              .text = fmt::format("{} {} {}", name, sign, value)};
  const bool is_percent = value.ends_with('%');
  if (is_percent) value.pop_back();
  if (is_percent && *row->unit != '\0')
    base::fail(base::ErrorKind::usage, "gives a percentage for '{}', which is no part of a whole, got '{}'",
               name, typed);
  bound.value = base::decimal(value) / (is_percent ? 100 : 1);
  return bound;
}

std::string names_of_figures() {
  std::vector<std::string> names;
  for (const auto& [name, unit, measure] : kFigures) {
    const std::string_view shown = unit;
    names.push_back(shown.empty() || shown == "x" || std::string_view(name).ends_with("_s") || shown == "GB"
                        ? std::string(name)
                        : fmt::format("{} ({})", name, unit));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Expectation> judge_bounds(const Conclusions& conclusions, std::span<const Bound> bounds) {
  std::vector<Expectation> results;
  for (const Bound& bound : bounds) {
    for (const auto& cells : conclusions.subjects)
      results.push_back(judged(bound, subject_of(conclusions, cells)));
    if (conclusions.subjects.empty())
      results.push_back({.text = bound.text, .why = "No record of a training or of timed steps."});
  }
  return results;
}

Table as_table(const std::vector<Expectation>& expectations) {
  Table table{
      .id = "expectations",
      .title = "Expectations",
      .definition =
          "pass, fail: with all values that the figure may have. not decided: the interval holds the bound, "
          "or other programs may have moved the figure across it.",
      .columns = {{.key = "expected", .label = "expected"},
                  {.key = "verdict", .label = "verdict"},
                  {.key = "figure", .label = "measured"},
                  {.key = "mark", .label = "careful"},
                  {.key = "why", .label = "why"}}};
  for (const auto& one : expectations)
    table.rows.push_back({words(one.text), words(text_of(one.verdict)),
                          words(one.figure.empty() ? "-" : one.figure), words(one.mark), words(one.why)});
  return table;
}

std::vector<std::string> lines_of_expectations(const std::vector<Expectation>& expectations) {
  std::vector<std::string> lines;
  for (const auto& one : expectations) {
    std::string line = fmt::format("{}: {}", text_of(one.verdict), one.text);
    if (!one.figure.empty()) line += ", measured " + one.figure;
    if (!one.mark.empty()) line += fmt::format(", ~ {}", one.mark);
    lines.push_back(line + (one.why.empty() ? "" : ". " + one.why));
  }
  return lines;
}

}  // namespace paceline::report
