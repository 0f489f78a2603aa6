#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "analysis/compare/interval.h"
#include "analysis/steps/breakdown.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/text.h"

// What limits: the ledger of the operating point's step.

namespace paceline::report {
namespace {

struct Share {
  const char* name;  ///< as the heading
  const char* part;  ///< inside a sentence
  double seconds;
};

std::vector<Share> shares_of(const analysis::Parts& parts) {
  std::vector<Share> shares{{"Compute", "computing", parts.compute()},
                            {"Waiting", "waiting for a later worker", parts.exposed_wait},
                            {"Data", "waiting for data", parts.data_wait},
                            {"Communication", "moving gradients", parts.exposed_transfer},
                            {"Other", "copying and other", parts.copy + parts.other}};
  std::ranges::stable_sort(shares, std::greater(), &Share::seconds);
  return shares;
}

using analysis::Mode;

/// Cores that the run could use, over all nodes.
int cores_there(const measure::Record& record) { return record.environment.cores * analysis::nodes(record); }

/// "of 4 cores" behind the number of workers that have a core each, "with 2 threads each on 4 cores" behind
/// others, "" on GPUs.
std::string unit_of_workers(const analysis::Cell& best) {
  if (!is_on_cpu(best)) return "";
  const auto cores = counted(cores_there(best.record()), "core");
  return best.threads_per_worker == 1
             ? fmt::format("of {}", cores)
             : fmt::format("with {}{} on {}", counted(best.threads_per_worker, "thread"),
                           best.workers > 1 ? " each" : "", cores);
}

/// Whether the operating point is a row of strong scaling.
bool is_of_strong_scaling(const Subject& subject) {
  return std::ranges::any_of(subject.conclusions.strong,
                             [&](const auto& group) { return &group == subject.group; });
}

/// "1.88 [1.84, 1.92] times one core at the same global batch: 94 % efficient."
std::string text_about_speedup(const Subject& subject) {
  if (subject.row == nullptr) return "";
  if (const auto& baseline = *subject.group->baseline;
      baseline.disturbance != measure::Disturbance::none && !subject.point.choice.constant_load)
    return fmt::format("No speedup: other programs {} while {} ran.",
                       baseline.disturbance == measure::Disturbance::maybe ? "may have worked" : "worked",
                       baseline_name(baseline));
  const auto& speedup = subject.row->speedup;
  return fmt::format("{} times {} at the same {} batch: {} efficient.",
                     with_interval(speedup, Format::fixed2), baseline_name(*subject.group->baseline),
                     is_of_strong_scaling(subject) ? "global" : "local",
                     about(subject.row->efficiency.median));
}

/// "4 threads need 4 cores." about cells that were left out because cores, or GPUs, are missing.
std::string text_about_left_out(const Subject& subject) {
  int threads = 0, workers = 0;
  for (const auto& [cell, why] : subject.point.left_out) {
    if (!cell->oversubscribed) continue;
    if (cell->shares_gpus())
      workers = std::max(workers, cell->workers);
    else
      threads = std::max(threads, cell->workers * cell->threads_per_worker);
  }
  if (workers > 0) return fmt::format("{} workers need {} GPUs.", workers, workers);
  return threads == 0 ? "" : fmt::format("{} threads need {} cores.", threads, threads);
}

Figure::View view_of(const Subject& subject, Mode mode) {
  Figure::View view{.name = analysis::name(mode),
                    .x = {.label = "workers", .log = true},
                    .y = {.label = "efficiency", .unit = "%"}};
  int cores = 0;
  double least = 10, most = 0;
  bool is_disturbed = false;  // so that efficiencies say little
  for (const auto& group : subject.conclusions.scaling(mode)) {
    if (group.subject != subject.cells.name || group.baseline == nullptr || group.rows.size() < 2) continue;
    cores = cores_there(group.baseline->record());
    Series series{.name = fmt::format("{} batch {}{}", mode == Mode::weak ? "local" : "global", group.batch,
                                      behind(group.setup))};
    for (const auto& row : group.rows) {
      if (!row.has_ratios) continue;
      series.points.push_back(point_of(row.cell->workers, analysis::scaled(row.efficiency, 100), *row.cell));
      mark_above_ideal(series.points.back(), row);
      if (row.cell->workers != subject.best()->workers || row.is_baseline) continue;
      least = std::min(least, row.efficiency.median);
      most = std::max(most, row.efficiency.median);
      is_disturbed = is_disturbed || row.cell->disturbance == measure::Disturbance::disturbed ||
                     group.baseline->disturbance == measure::Disturbance::disturbed;
    }
    if (series.points.size() > 1) view.series.push_back(std::move(series));
  }
  const auto who = fmt::format("{} scaling, {}", mode == Mode::weak ? "Weak" : "Strong",
                               counted(subject.best()->workers, "worker"));
  if (most > 0)
    view.finding = is_disturbed ? fmt::format("{}: as measured beside other programs", who)
                   : about(least) == about(most)
                       ? fmt::format("{}: {} efficient", who, about(most))
                       : fmt::format("{}: {} to {} efficient", who, rough(100 * least), about(most));
  view.note =
      fmt::format("Efficiency: speedup over the number of workers, {}. Error bars: 95 % intervals.",
                  mode == Mode::weak ? "each with the same batch" : "all together with the same batch");
  if (cores > 0 && is_on_cpu(*subject.best())) view.marks.push_back(beyond_cores(cores));
  return view;
}

}  // namespace

Answer limit_answer(const Subject& subject) {
  constexpr const char* kQuestion = "What limits?";
  const analysis::Cell* best = subject.best();
  if (best == nullptr)
    return not_measured("limit", kQuestion,
                        "Not judged: " + text_about_no_best(subject.point, subject.cells.cells), "");
  const auto parts = analysis::breakdown(*best).mean;
  const auto shares = shares_of(parts);
  Answer answer{.id = "limit",
                .question = kQuestion,
                .figure = shares.front().name,
                .unit = about(shares.front().seconds / parts.total()),
                .evidence = "step"};
  std::vector<std::string> rest;
  for (std::size_t i = 1; i < shares.size() && rest.size() < 3; ++i)
    if (shares[i].seconds > 0)
      rest.push_back(fmt::format("{} {}", shares[i].part, about(shares[i].seconds / parts.total())));
  if (!rest.empty()) {
    answer.sentence = fmt::format("{}.", fmt::join(rest, ", "));
    answer.sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(answer.sentence[0])));
  }
  judge(answer, *best);
  // If two phases are equally large, it is undecided which of them limits.
  constexpr double kApart = 0.1;
  if (shares[0].seconds - shares[1].seconds < kApart * parts.total()) {
    answer.certainty = Certainty::not_decided;
    answer.chip = "two alike";
  }
  answer.value = shares.front().seconds / parts.total();
  for (const measure::Record* record : best->records) answer.records.push_back(record->id);
  answer.n = static_cast<int>(best->steps_measured);
  return answer;
}

// How many workers to use, comparing the fastest cell for each number.

Answer workers_answer(const Subject& subject) {
  constexpr const char* kQuestion = "How many workers?";
  const analysis::Cell* best = subject.best();
  if (best == nullptr)
    return not_measured("workers", kQuestion,
                        "Not judged: " + text_about_no_best(subject.point, subject.cells.cells), "");
  const auto cells = analysis::other_workers(subject.point);
  const auto& record = best->record();
  if (cells.size() < 2)
    return not_measured(
        "workers", kQuestion,
        fmt::format("Only {} measured with {}.", counted(best->workers, "worker was", "workers were"),
                    best->needs()),
        command_like(record, "scale", fmt::format("--workers 1,2 --batches {}", best->local_batch)));
  // The number is undecided if any cell with another number reaches the best, not only the fastest of its
  // number.
  std::vector<const analysis::Cell*> rivals{best};
  for (const analysis::Cell* cell : subject.point.eligible)
    if (cell->workers != best->workers) rivals.push_back(cell);
  const auto choice = analysis::fastest(rivals);
  Answer answer{.id = "workers",
                .question = kQuestion,
                .figure = std::to_string(best->workers),
                .unit = unit_of_workers(*best),
                .sentence = text_about_speedup(subject),
                .evidence = "workers",
                .bars = bars_of(cells, best, "",
                                [](const analysis::Cell& cell) { return counted(cell.workers, "worker"); })};
  if (answer.sentence.empty() && choice.overlap.empty()) {
    const auto* other = cells[cells.front() == best ? 1 : 0];
    const bool is_unsettled = std::ranges::find(choice.unsettled, other) != choice.unsettled.end();
    answer.sentence = is_unsettled
                          ? fmt::format("{} is not settled: {}.", way_of(*other),
                                        other->disturbance == measure::Disturbance::disturbed
                                            ? "other programs worked while it ran"
                                            : "its runs were too short to see other programs")
                          : fmt::format("With {}: {} times its images/s.", way_of(*other),
                                        number(other->images_per_s.median / best->images_per_s.median));
  }
  if (!choice.overlap.empty())
    answer.sentence +=
        fmt::format("{}{} may be as fast as the best, with {} images.", answer.sentence.empty() ? "" : " ",
                    way_of(*choice.overlap.front()), integer(choice.overlap.front()->local_batch));
  else if (auto more = text_about_left_out(subject); !more.empty())
    answer.sentence += " " + more;
  judge(answer, choice);
  if (subject.row != nullptr && subject.row->efficiency.low > 1 &&
      answer.certainty != Certainty::not_decided) {
    answer.certainty = Certainty::careful;  // more than N times: the baseline was measured at a slow moment
    answer.chip = "above the ideal";
  }
  take_figures(answer, best->images_per_s, *best);
  return answer;
}

std::optional<Figure> workers_figure(const Subject& subject) {
  if (subject.best() == nullptr) return std::nullopt;
  Figure figure{.id = "workers"};
  for (const Mode mode : {Mode::weak, Mode::strong})
    if (auto view = view_of(subject, mode); !view.series.empty()) figure.views.push_back(std::move(view));
  if (figure.views.empty()) return std::nullopt;
  // The mode of the answer comes first, and the title is of the view that is shown.
  if (figure.views.size() > 1 && is_of_strong_scaling(subject)) std::ranges::reverse(figure.views);
  for (Figure::View& view : figure.views)
    if (view.finding.empty()) view.finding = "How much each further worker adds";
  figure.finding = figure.views.front().finding;
  figure.note = figure.views.front().note;
  return figure;
}

}  // namespace paceline::report
