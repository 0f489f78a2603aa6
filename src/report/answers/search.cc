#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/terminal_text.h"
#include "report/text.h"

// One search: which configuration is best, by how much beyond noise, how far each was trained, and what the
// test set says of it.

namespace paceline::report {
namespace {

using analysis::SearchResult;
using analysis::SearchTrial;

std::string points(double difference) { return fmt::format("{:.1f} points", 100 * difference); }

/// The first behind the best that was trained as long; else the first behind it.
const SearchTrial* runner_up(const SearchResult& result) {
  for (const auto& trial : result.trials)
    if (trial.to_best && !trial.dropped) return &trial;
  for (const auto& trial : result.trials)
    if (trial.to_best) return &trial;
  return nullptr;
}

Answer configuration_found(const SearchResult& result) {
  const auto& best = result.trials.front();
  Answer answer{.id = "best",
                .certainty = Certainty::decided,
                .figure = fmt::format("{} is best: {} of {} validation images.", best.candidate.name,
                                      percent(best.candidate.accuracy), integer(result.validation_samples)),
                .value = best.candidate.accuracy,
                .low = best.candidate.accuracy - best.standard_error,
                .high = best.candidate.accuracy + best.standard_error,
                .n = static_cast<int>(best.candidate.records.size()),
                .evidence = "search-epochs"};
  for (const auto* record : best.candidate.records) answer.records.push_back(record->id);
  const auto ties = std::ranges::count_if(result.trials, &SearchTrial::ties);
  const SearchTrial* next = runner_up(result);
  if (next == nullptr) {
    answer.sentence = "No other configuration has a figure to compare with.";
  } else {
    const auto& difference = *next->to_best;
    const char* const how = difference.is_noise()   ? "which is within noise"
                            : difference.one_seed   ? "beyond the error of the validation part"
                            : difference.is_clear() ? "a clear difference"
                                                    : "which is not clear";
    answer.sentence =
        fmt::format("{} behind: {}, {}.", points(std::abs(difference.value)), next->candidate.name, how);
  }
  if (ties > 0) {
    answer.certainty = Certainty::tie;
    answer.chip = fmt::format("{} tie", ties + 1);
  } else if (result.seeds < 2) {
    answer.certainty = Certainty::careful;
    answer.chip = "one seed";
  }
  return answer;
}

Answer margin_of(const SearchResult& result) {
  Answer answer{
      .id = "margin", .question = "By how much?", .certainty = Certainty::decided, .evidence = "search"};
  const SearchTrial* next = runner_up(result);
  if (next == nullptr) return not_measured("margin", answer.question, "There is one configuration.", "");
  const auto& difference = *next->to_best;
  answer.figure = fmt::format("{:.1f}", 100 * std::abs(difference.value));
  answer.unit = "points";
  answer.value = std::abs(difference.value);
  answer.low = *answer.value - difference.standard_error;
  answer.high = *answer.value + difference.standard_error;
  std::vector<std::string> ties;
  for (const auto& trial : result.trials)
    if (trial.ties()) ties.push_back(trial.candidate.name);
  answer.sentence = fmt::format("Standard error {}.", points(difference.standard_error));
  constexpr std::size_t kMost = 2;
  if (!ties.empty())
    answer.sentence += ties.size() > kMost
                           ? fmt::format(" {} others cannot be told apart from it.", ties.size())
                           : fmt::format(" It cannot be told apart from {}.", listed(ties));
  if (difference.is_noise()) {
    answer.certainty = Certainty::tie;
    answer.chip = "within noise";
  } else if (!difference.is_clear() || difference.one_seed) {
    answer.certainty = Certainty::careful;
    answer.chip = difference.one_seed ? "one seed" : "not clear";
  }
  return answer;
}

/// How many configurations were trained for how many epochs.
Answer rungs_of(const SearchResult& result) {
  std::map<std::int64_t, long> ended;  // by epochs
  long failed = 0;
  for (const auto& trial : result.trials) ++(trial.has_failed() ? failed : ended[trial.epochs]);
  Answer answer{.id = "rungs",
                .question = "How far was each trained?",
                .certainty = Certainty::decided,
                .chip = failed > 0 ? fmt::format("{} failed", failed) : "counted",
                .figure = integer(result.epochs_trained),
                .unit = "epochs in all",
                .evidence = "search"};
  std::vector<std::string> said;
  constexpr std::size_t kMost = 3;
  for (const auto& [epochs, trials] : ended)
    said.push_back(fmt::format("{} for {}", trials, counted(epochs, "epoch")));
  answer.sentence = said.size() <= kMost ? fmt::format("{}.", fmt::join(said, ". "))
                                         : fmt::format("{} rungs, the last of {}.", said.size(),
                                                       counted(ended.rbegin()->first, "epoch"));
  if (failed > 0) answer.certainty = Certainty::careful;
  return answer;
}

Answer tested(const SearchResult& result) {
  constexpr const char* kQuestion = "On the test set?";
  if (result.tested == nullptr || result.tested->variant != result.best->variant)
    return not_measured("test", kQuestion, "The test set was not read yet.", "");
  const auto& evaluation = *result.tested->evaluation;
  const auto figures = analysis::evaluation(evaluation);
  if (!figures.contradiction.empty())
    return not_measured("test", kQuestion, "Its evaluation contradicts itself.", "");
  const auto times = static_cast<double>(evaluation.reads) / static_cast<double>(evaluation.samples);
  return {.id = "test",
          .question = kQuestion,
          .certainty = times > 1 ? Certainty::careful : Certainty::decided,
          .chip = times > 1 ? "read " + amount(times) + " times" : "read once",
          .figure = percent(figures.top_1.value),
          .unit = fmt::format("of {}", counted(evaluation.samples, "image")),
          .sentence = fmt::format("95 % interval: {:.1f} to {}.", 100 * figures.top_1.low,
                                  percent(figures.top_1.high)),
          .value = figures.top_1.value,
          .low = figures.top_1.low,
          .high = figures.top_1.high,
          .n = static_cast<int>(evaluation.samples),
          .evidence = kConfusion};
}

/// Validation accuracy of every configuration over the epochs.
Figure trials_by_epoch(const SearchResult& result, const Plot& curves) {
  const auto& best = result.trials.front();
  Figure figure{
      .id = "search-epochs",
      .finding = fmt::format("{} ends highest, at {}", best.candidate.name, percent(best.candidate.accuracy)),
      .note = "Means over seeds. A line ends where its configuration was dropped."};
  Figure::View view{.name = "by epoch", .x = curves.x, .y = curves.y, .series = curves.series};
  constexpr std::size_t kLines = 8;  // the best; the others are drawn after a click
  for (std::size_t i = kLines; i < view.series.size(); ++i) view.series[i].hidden = true;
  figure.views.push_back(std::move(view));
  return figure;
}

/// The figure of each configuration that it is ranked by, a row each.
Figure trials_at_their_best(const SearchResult& result, const Plot& curves) {
  const auto& best = result.trials.front();
  const auto ties = std::ranges::count_if(result.trials, &SearchTrial::ties);
  Figure figure{
      .id = "search-trials",
      .finding = ties == 0
                     ? fmt::format("Nothing ties with {}", best.candidate.name)
                     : fmt::format("{} within noise of {}",
                                   ties == 1 ? "One is" : fmt::format("{} are", ties), best.candidate.name),
      .note =
          "The best epoch of each, with one standard error; one that was dropped ties by as many epochs."};
  Figure::View view{.name = "by rank", .x = {.label = "seeds"}, .y = curves.y};
  for (const auto& trial : result.trials) {
    if (trial.has_failed()) continue;
    view.series.push_back(
        {.name = trial.candidate.name,
         .points = {{.x = static_cast<double>(result.seeds),
                     .y = 100 * trial.candidate.accuracy,
                     .low = 100 * (trial.candidate.accuracy - trial.standard_error),
                     .high = 100 * (trial.candidate.accuracy + trial.standard_error),
                     .mark = &trial == &best ? "best" : "",
                     .record = trial.candidate.records.empty() ? "" : trial.candidate.records.front()->id,
                     .n = static_cast<int>(trial.candidate.records.size())}}});
  }
  figure.views.push_back(std::move(view));
  return figure;
}

Next steps_after_search(const SearchResult& result) {
  Next next;
  const auto& record = *result.best;
  if (result.stopped > 0 && !record.command.empty())
    next.steps.push_back({.title = "Finish the search",
                          .why = counted(result.stopped, "training") + " not begun or not ended.",
                          .command = record.command});
  if (result.seeds < 2 && !record.command.empty())
    next.steps.push_back({.title = "Search with three seeds",
                          .why = "What one seed shows may be luck.",
                          .command = into_a_new_directory(record.command) + " --seeds 3"});
  // The lists that were searched make room for what was found: "lr 0.1, bn sync".
  measure::Record chosen = record;
  std::string options;
  for (const auto& [name, value] : record.settings) {
    if ((", " + record.variant).find(", " + name + " ") == std::string::npos) continue;
    if (name != "lr")  // which command_like() adds
      options += fmt::format("{}--{} {}", options.empty() ? "" : " ", name, base::shell_word(value));
    chosen.command = without_option(chosen.command, "--" + name);
  }
  next.steps.push_back({.title = "Train longer with what was found",
                        .why = "A search compares short trainings.",
                        .command = command_like(chosen, "train", options)});
  next.not_answered.emplace_back("What lies outside the values that were tried.");
  return next;
}

}  // namespace

Section answer_of_search(const SearchResult& result, Section& details) {
  Section section{.id = kAnswerSection, .title = "Answer"};
  for (auto* const answer : {configuration_found, margin_of, rungs_of, tested})
    section.blocks.emplace_back(answer(result));
  for (Block& block : details.blocks)
    if (const auto* plot = std::get_if<Plot>(&block)) {
      section.blocks.emplace_back(trials_by_epoch(result, *plot));
      Figure ranked = trials_at_their_best(result, *plot);
      block = std::move(ranked);
    }
  for (Block& block : details.blocks)
    if (std::holds_alternative<Heatmap>(block)) section.blocks.push_back(block);
  section.blocks.emplace_back(steps_after_search(result));
  std::erase_if(details.blocks, [](const Block& block) { return std::holds_alternative<Heatmap>(block); });
  return section;
}

}  // namespace paceline::report
