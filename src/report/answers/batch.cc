#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare/interval.h"
#include "analysis/steps/breakdown.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/text.h"

// What to do, in one sentence, with the command that does it.

namespace paceline::report {
namespace {

using measure::Disturbance;

/// "Train with 2 workers, 32 images each: 8,557 images/s."; "at least 8,557 images/s" for a disturbed one.
std::string sentence_of(const analysis::Cell& cell) {
  std::string with = counted(cell.workers, "worker");
  if (analysis::processes(cell.record()) > 1) with += " (" + analysis::joined_as(cell.record()) + ")";
  if (cell.workers == 1 && cell.threads_per_worker > 1 && !analysis::is_of_cuda_engine(cell.record()))
    with += fmt::format(" on {}", counted(cell.threads_per_worker, "core"));
  return fmt::format("Train with {}, {} images{}: {}{} images/s.", with, integer(cell.local_batch),
                     cell.workers > 1 ? " each" : "",
                     cell.disturbance == Disturbance::disturbed ? "at least " : "",
                     number(cell.images_per_s.median));
}

const analysis::Cell* fastest_of_one_worker(const Subject& subject) {
  for (const analysis::Cell* cell : subject.point.eligible)
    if (cell->workers == 1) return cell;
  return nullptr;
}

/// What limits the cell, if one phase does.
std::string text_about_limit(const analysis::Cell& cell) {
  const auto parts = analysis::breakdown(cell).mean;
  constexpr double kMost = 0.5;
  if (parts.compute() > kMost * parts.total())
    return cell.workers > 1 ? "Compute is the limit, not communication." : "Compute is the limit.";
  if (parts.data_wait > kMost * parts.total()) return "Loading data is the limit.";
  if (parts.exposed() > kMost * parts.total()) return "Communication is the limit.";
  return "";
}

std::string batch_of_cell(const analysis::Cell& cell) { return integer(cell.local_batch); }

/// "128 and 512 are not settled: other programs worked while they ran."
std::string text_about_unsettled(const std::vector<const analysis::Cell*>& unsettled) {
  if (unsettled.empty()) return "";
  constexpr std::size_t kMost = 3;
  std::vector<std::string> batches;
  bool any_disturbed = false;
  for (const analysis::Cell* cell : unsettled) {
    batches.push_back(batch_of_cell(*cell));
    any_disturbed = any_disturbed || cell->disturbance == Disturbance::disturbed;
  }
  const bool is_one = batches.size() == 1;
  return fmt::format(
      "{} {} not settled: {}.",
      batches.size() > kMost ? fmt::format("{} other batches", batches.size()) : listed(batches),
      is_one ? "is" : "are",
      any_disturbed ? fmt::format("other programs worked while {} ran", is_one ? "it" : "they")
                    : "their runs were too short to see other programs");
}

/// How much slower `cell` is than the best: "12 % ", "at least 12 % " where other programs slowed down the
/// best, "up to 12 % " where they did so with `cell`, "" where they did so with both.
std::string amount_slower(const analysis::Cell& cell, const analysis::Choice& choice) {
  const bool of_best = choice.best->disturbance != Disturbance::none && !choice.constant_load;
  const bool of_cell = cell.disturbance != Disturbance::none && !choice.constant_load;
  if (of_best && of_cell) return "";
  return fmt::format("{}{} ",
                     of_best   ? "at least "
                     : of_cell ? "up to "
                               : "",
                     about(1 - cell.images_per_s.median / choice.best->images_per_s.median));
}

/// "16 and 64 are as good within the noise. 128 is 12 % slower."
std::string text_about_others(const std::vector<const analysis::Cell*>& cells,
                              const analysis::Choice& choice) {
  std::vector<std::string> alike;
  const analysis::Cell* next = nullptr;  // the fastest of those that clearly differ from the best
  for (const analysis::Cell* cell : cells) {
    if (cell == choice.best) continue;
    const bool overlaps = std::ranges::find(choice.overlap, cell) != choice.overlap.end();
    const bool is_settled = std::ranges::find(choice.unsettled, cell) == choice.unsettled.end();
    if (overlaps && is_settled)
      alike.push_back(batch_of_cell(*cell));
    else if (choice.shows_slower(*cell) &&
             (next == nullptr || cell->images_per_s.median > next->images_per_s.median))
      next = cell;
  }
  constexpr std::size_t kMost = 3;
  std::string said;
  if (alike.size() > kMost)
    said = fmt::format("{} other batches cannot be told apart from it.", alike.size());
  else if (!alike.empty())
    said =
        choice.standing == analysis::Standing::tie
            ? fmt::format("{} {} as good within the noise.", listed(alike), alike.size() > 1 ? "are" : "is")
            : fmt::format("{} may be as good: their intervals overlap.", listed(alike));
  if (auto unsettled = text_about_unsettled(choice.unsettled); !unsettled.empty())
    return said + (said.empty() ? "" : " ") + unsettled;
  if (next == nullptr) return said;
  // Without an interval it is what was seen, and no finding.
  const bool is_known =
      analysis::has_interval(next->images_per_s) && analysis::has_interval(choice.best->images_per_s);
  said += fmt::format("{}{} {} {}slower{}.", said.empty() ? "" : " ", batch_of_cell(*next),
                      is_known ? "is" : "was", amount_slower(*next, choice),
                      is_known ? "" : ", in a window too short for an interval");
  return said;
}

/// Where the study's own trainings lost accuracy at the advised batch, or at a smaller one: "Global batch 512
/// cost 34 points of accuracy."; else empty.
std::string text_about_accuracy_lost(const Subject& subject) {
  const auto& convergence = subject.conclusions.convergence;
  if (!convergence || !convergence->large) return "";
  const auto& large = convergence->variants[*convergence->large];
  if (!large.to_baseline || large.to_baseline->is_noise() || large.to_baseline->value >= 0 ||
      large.cell->global_batch > subject.best()->global_batch)
    return "";
  return fmt::format("Global batch {} cost {:.0f} points of accuracy.", integer(large.cell->global_batch),
                     -100 * large.to_baseline->value);
}

/// Whether an interval shows that a ratio is not 1.
bool is_told_apart(const analysis::Estimate& ratio) {
  return analysis::has_interval(ratio) && (ratio.low > 1 || ratio.high < 1);
}

}  // namespace

Answer best_answer(const Subject& subject) {
  const analysis::Cell* best = subject.best();
  if (best == nullptr) {
    const auto& cells = subject.cells.cells;
    Answer answer = not_measured("best", "", text_about_no_best(subject.point, cells),
                                 cells.empty() ? "" : cells.front()->record().command);
    answer.figure = "No advice yet.";
    return answer;
  }
  Answer answer{.id = "best", .figure = sentence_of(*best), .evidence = "hero"};
  std::vector<std::string> said;
  const analysis::Cell* one = fastest_of_one_worker(subject);
  const bool is_fair = subject.point.choice.constant_load;  // of two rates that were disturbed alike
  const auto is_quiet = [](const analysis::Cell& cell) { return cell.disturbance == Disturbance::none; };
  // Beside a constant load only what is beyond its noise: the programs of that load have their turns.
  if (subject.row != nullptr &&
      (is_fair ? is_told_apart(subject.row->speedup) : is_quiet(*subject.group->baseline)))
    said.push_back(fmt::format("{} times {}", number(subject.row->speedup.median),
                               baseline_name(*subject.group->baseline)));
  if (one != nullptr && best->workers > 1 &&
      (is_fair ? is_told_apart(analysis::ratio(best->images_per_s, one->images_per_s)) : is_quiet(*one)) &&
      (subject.row == nullptr || one != subject.group->baseline))
    said.push_back(fmt::format("{} times the best single worker",
                               number(best->images_per_s.median / one->images_per_s.median)));
  if (!said.empty()) answer.sentence = listed(said) + ".";
  std::string more = text_about_limit(*best);
  if (const auto load = is_fair ? text_about_load(subject.point.eligible) : text_about_load({best});
      !load.empty())
    more = is_fair ? fmt::format("For the machine as it is: {} all the time.", load)
                   : fmt::format("Meanwhile {}.", load);
  for (const auto& next : {more, text_about_accuracy_lost(subject)})
    if (!next.empty()) answer.sentence += (answer.sentence.empty() ? "" : " ") + next;
  judge(answer, subject.point.choice);
  // Beside the headline the chip has no question in front: it says what is open.
  const auto& choice = subject.point.choice;
  if (answer.chip == "not decided")
    answer.chip =
        fmt::format("one of {} that may be fastest", choice.overlap.size() + choice.unsettled.size() + 1);
  take_figures(answer, best->images_per_s, *best);
  const std::string threads = best->workers == 1 || best->threads_per_worker == 1
                                  ? ""
                                  : fmt::format(" --threads {}", best->threads_per_worker);
  answer.command =
      command_like(best->record(), "train",
                   fmt::format("--workers {} --local-batch {}{}", best->workers, best->local_batch, threads));
  return answer;
}

// Which batch: among the cells that differ from the best in their batches alone.

Answer batch_answer(const Subject& subject) {
  constexpr const char* kQuestion = "Which batch?";
  const analysis::Cell* best = subject.best();
  if (best == nullptr)
    return not_measured("batch", kQuestion,
                        "Not judged: " + text_about_no_best(subject.point, subject.cells.cells), "");
  const auto cells = analysis::other_batches(subject.point);
  if (cells.size() < 2) {
    const std::string batches = fmt::format("{},{},{}", std::max<std::int64_t>(1, best->local_batch / 2),
                                            best->local_batch, 2 * best->local_batch);
    return not_measured(
        "batch", kQuestion,
        fmt::format("Only {} was measured in this way, so there is no choice.", batch_of_cell(*best)),
        command_like(best->record(), best->workers == 1 ? "sweep" : "scale",
                     best->workers == 1 ? "--batches " + batches
                                        : fmt::format("--workers {} --batches {}", best->workers, batches)));
  }
  const auto choice = analysis::fastest(cells);
  const char* const unit = best->workers > 1 ? "images a worker" : "images";
  Answer answer{.id = "batch",
                .question = kQuestion,
                .figure = batch_of_cell(*best),
                .unit = unit,
                .sentence = text_about_others(cells, choice),
                .evidence = "batch",
                .bars = bars_of(cells, best, unit, batch_of_cell)};
  judge(answer, choice);
  take_figures(answer, best->images_per_s, *best);
  return answer;
}

std::optional<Figure> batch_figure(const Subject& subject) {
  const auto cells = analysis::other_batches(subject.point);
  if (cells.size() < 2) return std::nullopt;
  const bool is_of_device = subject.best()->record().memory.device.has_value();
  Figure figure{.id = "batch",
                .note = fmt::format("Error bars: 95 % intervals of the median. Memory is that of {}.",
                                    is_of_device ? "the fullest GPU" : "a process")};
  Figure::View epoch{.name = "epoch",
                     .x = {.label = "local batch", .log = true},
                     .y = {.label = "time of an epoch", .unit = "s"}};
  Figure::View memory{.name = "memory", .x = epoch.x, .y = {.label = "memory", .unit = "B"}};
  Series times{.name = way_of(*subject.best())}, plan{.name = "plan", .dashed = true}, peak{.name = "peak"};
  for (const analysis::Cell* cell : cells) {
    const auto x = static_cast<double>(cell->local_batch);
    times.points.push_back(point_of(x, cell->epoch_s, *cell));
    const auto bytes = memory_of(cell->record());
    if (bytes.plan > 0) plan.points.push_back({.x = x, .y = static_cast<double>(bytes.plan)});
    if (bytes.peak) peak.points.push_back({.x = x, .y = static_cast<double>(*bytes.peak)});
  }
  const auto fastest_epoch = std::ranges::min_element(times.points, {}, &Point::y);
  figure.finding =
      fmt::format("An epoch takes {} at batch {}", duration(fastest_epoch->y), integer(fastest_epoch->x));
  epoch.series.push_back(std::move(times));
  figure.views.push_back(std::move(epoch));
  for (Series* series : {&peak, &plan})
    if (!series->points.empty()) memory.series.push_back(std::move(*series));
  if (!memory.series.empty()) figure.views.push_back(std::move(memory));
  return figure;
}

}  // namespace paceline::report
