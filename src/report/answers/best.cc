#include <fmt/format.h>

#include "analysis/compare/interval.h"
#include "analysis/steps/breakdown.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/text.h"

// What to do, in one sentence, with the command that does it.

namespace paceline::report {
namespace {

/// "Train with 2 workers, 32 images each: 8,557 images/s."
std::string sentence_of(const analysis::Cell& cell) {
  std::string with = count(cell.workers, "worker");
  if (analysis::processes(cell.record()) > 1) with += " (" + analysis::joined_as(cell.record()) + ")";
  if (cell.workers == 1 && cell.threads_per_worker > 1 && !analysis::is_of_cuda_engine(cell.record()))
    with += fmt::format(" on {}", count(cell.threads_per_worker, "core"));
  return fmt::format("Train with {}, {} images{}: {} images/s.", with,
                     integer(static_cast<double>(cell.local_batch)), cell.workers > 1 ? " each" : "",
                     number(cell.images_per_s.median));
}

const analysis::Cell* fastest_of_one_worker(const Subject& subject) {
  for (const analysis::Cell* cell : subject.point.eligible)
    if (cell->workers == 1) return cell;
  return nullptr;
}

/// What limits the cell, if one phase does.
std::string said_of_limit(const analysis::Cell& cell) {
  const auto parts = analysis::breakdown(cell).mean;
  constexpr double kMost = 0.5;
  if (parts.compute() > kMost * parts.total())
    return cell.workers > 1 ? "Compute is the limit, not communication." : "Compute is the limit.";
  if (parts.data_wait > kMost * parts.total()) return "Loading data is the limit.";
  if (parts.exposed() > kMost * parts.total()) return "Communication is the limit.";
  return "";
}

}  // namespace

Answer best_answer(const Subject& subject) {
  const analysis::Cell* best = subject.best();
  if (best == nullptr) {
    Answer answer =
        not_measured("best", "", "No cell is complete, undisturbed and with a core for each thread.", "");
    answer.figure = "No configuration can be recommended.";
    return answer;
  }
  Answer answer{.id = "best", .figure = sentence_of(*best), .evidence = "hero"};
  std::vector<std::string> said;
  const analysis::Cell* one = fastest_of_one_worker(subject);
  if (subject.row != nullptr)
    said.push_back(fmt::format("{} times {}", number(subject.row->speedup.median),
                               baseline_name(*subject.group->baseline)));
  if (one != nullptr && best->workers > 1 && (subject.row == nullptr || one != subject.group->baseline))
    said.push_back(fmt::format("{} times the best single worker",
                               number(best->images_per_s.median / one->images_per_s.median)));
  if (!said.empty()) answer.sentence = listed(said) + ".";
  if (const std::string limit = said_of_limit(*best); !limit.empty())
    answer.sentence += (answer.sentence.empty() ? "" : " ") + limit;
  judge(answer, subject.point.choice);
  take_figures(answer, best->images_per_s, *best);
  const std::string threads = best->workers == 1 || best->threads_per_worker == 1
                                  ? ""
                                  : fmt::format(" --threads {}", best->threads_per_worker);
  answer.command =
      command_like(best->record(), "train",
                   fmt::format("--workers {} --local-batch {}{}", best->workers, best->local_batch, threads));
  return answer;
}

}  // namespace paceline::report
