#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "analysis/compare/interval.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/build.h"
#include "report/sections/parts.h"
#include "report/terminal_text.h"
#include "report/text.h"

// Two sets of records: what changed at the best cell, both in one figure, and what to measure next.

namespace paceline::report {
namespace {

using analysis::Cell;
using analysis::Change;
using analysis::Pair;
using analysis::RunComparison;
using measure::Record;

bool is_any_compared(const RunComparison& comparison) {
  return std::ranges::any_of(comparison.pairs, [](const Pair& pair) {
    return pair.is_compared() || (pair.accuracy && pair.accuracy->difference);
  });
}

/// The pair of the best cell of A that has one; null if no pair is compared.
const Pair* pair_at_best(const RunComparison& comparison) {
  const Pair* found = nullptr;
  for (const Pair& pair : comparison.pairs)
    if (pair.is_compared() &&
        (found == nullptr || pair.a->images_per_s.median > found->a->images_per_s.median))
      found = &pair;
  return found;
}

Answer change_at_best(const RunComparison& comparison, const CompareOptions& options) {
  Answer answer{.id = "best", .figure = headline(comparison, options.noise) + ".", .evidence = "hero"};
  const Pair* pair = pair_at_best(comparison);
  if (pair == nullptr) {
    answer.certainty = Certainty::not_measured;
    if (!comparison.pairs.empty() && !comparison.pairs.front().is_compared())
      answer.sentence = fmt::format("{}: not compared.", counted(comparison.pairs.size(), "cell"));
    return answer;
  }
  answer.sentence = fmt::format("{} against {} images/s.", number(pair->b->images_per_s.median),
                                number(pair->a->images_per_s.median));
  answer.value = pair->ratio.median;
  take_interval(answer, pair->ratio);
  for (const Cell* cell : {pair->a, pair->b})
    for (const Record* record : cell->records) answer.records.push_back(record->id);
  const bool is_noise = pair->change == Change::within_noise;
  answer.certainty = is_noise || is_open(*pair) ? Certainty::not_decided : Certainty::decided;
  answer.chip = is_noise ? "within noise" : is_open(*pair) ? "too wide to say" : "";
  if (!mark_of_pair(*pair).empty()) {
    answer.certainty = Certainty::careful;
    answer.chip = "maybe disturbed";
  }
  return answer;
}

Answer cells_changed(const RunComparison& comparison) {
  const auto of = [&](Change change) { return static_cast<long>(comparison.number_of(change)); };
  const long better = of(Change::improved), worse = of(Change::regressed);
  const long wide = std::ranges::count_if(comparison.pairs, is_open);
  const long same = of(Change::no_change) - wide, open = of(Change::within_noise) + wide;
  Answer answer{.id = "cells",
                .question = "How many cells changed?",
                .certainty = open > 0 ? Certainty::not_decided : Certainty::decided,
                .chip = open > 0 ? fmt::format("{} not decided", open) : "counted",
                .figure = std::to_string(better + worse),
                .unit = "of " + counted(comparison.pairs.size(), "pair"),
                .evidence = "compare-times"};
  answer.sentence = fmt::format("{} improved, {} regressed, {} without change.", better, worse, same);
  if (const auto refused = std::ranges::count(comparison.pairs, false, &Pair::is_compared))
    answer.sentence += fmt::format(" {} not compared.", refused);
  return answer;
}

Answer settings_differ(const RunComparison& comparison) {
  Answer answer{.id = "settings",
                .question = "What differs?",
                .certainty = Certainty::decided,
                .chip = "by the records",
                .figure = std::to_string(comparison.differences.size()),
                .unit = comparison.differences.size() == 1 ? "entry" : "entries",
                .sentence = "Nothing: these are repeats of one another."};
  if (comparison.differences.empty()) return answer;
  answer.evidence = "compare-settings";
  constexpr std::size_t kMost = 4;
  std::vector<std::string> names;
  for (const auto& one : comparison.differences)
    if (names.size() < kMost) names.push_back(one.name);
  answer.sentence = listed(names) + (comparison.differences.size() > kMost ? " and more." : ".");
  return answer;
}

std::optional<Answer> accuracy_changed(const RunComparison& comparison) {
  for (const Pair& pair : comparison.pairs) {
    if (!pair.accuracy || !pair.accuracy->difference) continue;
    const auto& difference = *pair.accuracy->difference;
    return Answer{
        .id = "accuracy",
        .question = "And the accuracy?",
        .certainty = pair.accuracy->change == Change::within_noise ? Certainty::careful : Certainty::decided,
        .chip = pair.accuracy->change == Change::within_noise ? "one seed"
                : difference.is_clear()                       ? "clear"
                                                              : "no difference",
        .figure = fmt::format("{:+.1f}", 100 * difference.value),
        .unit = "points",
        .sentence = fmt::format("{} against {}.", percent(pair.accuracy->b.accuracy),
                                percent(pair.accuracy->a.accuracy)),
        .value = difference.value,
        .evidence = "compare-accuracy"};
  }
  return std::nullopt;
}

/// images/s by global batch, a line for each way of using the machine and side.
Figure::View rates_of_both(const RunComparison& comparison, const CompareOptions& options) {
  Figure::View view{.name = "images/s",
                    .x = {.label = "global batch", .log = true},
                    .y = {.label = "throughput", .unit = "images/s"}};
  std::map<std::string, double> ways;  // with the most images/s
  for (const auto* cells : {&comparison.a, &comparison.b})
    for (const Cell& cell : *cells)
      if (cell.is_measured()) ways[way_of(cell)] = std::max(ways[way_of(cell)], cell.images_per_s.median);
  const auto fastest = largest_first(ways);
  constexpr std::size_t kWays = 3;
  for (std::size_t i = 0; i < fastest.size(); ++i)
    for (const auto& [name, cells] : {std::pair{options.a, &comparison.a}, {options.b, &comparison.b}}) {
      std::map<std::int64_t, const Cell*> by_batch;
      for (const Cell& cell : *cells) {
        if (!cell.is_measured() || way_of(cell) != fastest[i].first) continue;
        auto& place = by_batch[cell.global_batch];
        if (place == nullptr || cell.images_per_s.median > place->images_per_s.median) place = &cell;
      }
      Series series{.name = fastest.size() == 1 ? name : fmt::format("{}: {}", name, fastest[i].first),
                    .hidden = i >= kWays};
      for (const auto& [batch, cell] : by_batch)
        series.points.push_back(point_of(static_cast<double>(batch), cell->images_per_s, *cell));
      if (!series.points.empty()) view.series.push_back(std::move(series));
    }
  view.finding = fmt::format("{} and {}, images/s by batch", options.a, options.b);
  view.note = "Error bars: 95 % intervals of the median. Hollow: other programs worked, or may have worked.";
  return view;
}

/// Test accuracy of the trainings of both by epoch.
Figure::View accuracies_of_both(const RunComparison& comparison, const CompareOptions& options) {
  Figure::View view{.name = "accuracy",
                    .x = {.label = "epoch"},
                    .y = {.label = "test accuracy", .unit = "%"},
                    .finding = fmt::format("{} and {}, accuracy by epoch", options.a, options.b),
                    .note = "After each epoch, on test images."};
  constexpr std::size_t kShown = 6;
  for (const auto& [name, cells] : {std::pair{options.a, &comparison.a}, {options.b, &comparison.b}})
    for (const Cell& cell : *cells) {
      if (cell.records.empty()) continue;
      const Record& record = cell.record();
      add_held_out(view.series, record,
                   {{.name = cell.variant.empty() ? name : fmt::format("{}: {}", name, cell.variant),
                     .hidden = view.series.size() >= kShown},
                    measure::kTestImages,
                    &measure::EpochRecord::test_accuracy,
                    100,
                    [](const auto& epoch) { return static_cast<double>(epoch.epoch); }});
      for (Series& series : view.series)
        for (Point& point : series.points)
          if (point.record.empty()) point.record = record.id;
    }
  return view;
}

std::optional<Figure> both_in_one(const RunComparison& comparison, const CompareOptions& options) {
  Figure figure{.id = "hero"};
  auto accuracies = accuracies_of_both(comparison, options);
  auto rates = rates_of_both(comparison, options);
  const bool is_of_trainings = !accuracies.series.empty();
  if (!rates.series.empty()) figure.views.push_back(std::move(rates));
  if (is_of_trainings) figure.views.push_back(std::move(accuracies));
  if (figure.views.empty()) return std::nullopt;
  // One training is one point of images/s: its curve says more.
  if (figure.views.size() == 2 && comparison.a.size() == 1) std::ranges::reverse(figure.views);
  figure.finding = figure.views.front().finding;
  figure.note = figure.views.front().note;
  return figure;
}

/// The command that measured a side, "" if no record says it.
std::string command_of_side(const std::vector<Cell>& cells) {
  for (const Cell& cell : cells)
    if (const auto& command = cell.record().command; !command.empty()) return into_a_new_directory(command);
  return "";
}

Next steps_after_comparison(const RunComparison& comparison, const CompareOptions& options) {
  Next next;
  const auto command = command_of_side(comparison.b);
  const auto add = [&](const char* title, std::string why, const std::string& what) {
    if (!what.empty()) next.steps.push_back({.title = title, .why = std::move(why), .command = what});
  };
  const auto is_unsure = [](const Pair& pair) {
    return pair.is_compared() &&
           (pair.change == Change::within_noise || pair.is_of_one_run || !mark_of_pair(pair).empty());
  };
  if (comparison.pairs.empty())
    add("Measure the same cells as A", "No batch and number of workers is in both.",
        command_of_side(comparison.a));
  else if (!is_any_compared(comparison))
    add("Measure B again", fmt::format("{}.", comparison.pairs.front().refusals.front()), command);
  else if (std::ranges::any_of(comparison.pairs, is_unsure))
    add("Measure both again with three repeats", "One run, or one beside other programs, decides little.",
        command.find(" --repeats") == std::string::npos && !command.empty() &&
                comparison.b.front().kind != "train"
            ? command + " --repeats 3"
            : command);
  next.steps.push_back({.title = "See B by itself",
                        .why = "Its answers, not its difference.",
                        .command = "paceline report " + options.b_path + " --html page.html"});
  return next;
}

}  // namespace

bool is_open(const Pair& pair) {
  return pair.is_compared() && pair.change == Change::no_change &&
         (pair.ratio.low < 1 - analysis::kNoiseOfOneRun || pair.ratio.high > 1 + analysis::kNoiseOfOneRun);
}

std::string mark_of_pair(const Pair& pair) {
  return mark_of(std::max(pair.a->disturbance, pair.b->disturbance));
}

Section answer_of_comparison(const RunComparison& comparison, const CompareOptions& options) {
  Section section{.id = kAnswerSection, .title = "Answer"};
  section.blocks.emplace_back(change_at_best(comparison, options));
  if (is_any_compared(comparison)) section.blocks.emplace_back(cells_changed(comparison));
  if (!comparison.pairs.empty()) section.blocks.emplace_back(settings_differ(comparison));
  add_block(section.blocks, accuracy_changed(comparison));
  add_block(section.blocks, both_in_one(comparison, options));
  section.blocks.emplace_back(steps_after_comparison(comparison, options));
  return section;
}

}  // namespace paceline::report
