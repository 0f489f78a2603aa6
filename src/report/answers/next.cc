#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "analysis/steps/breakdown.h"
#include "base/text.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

// The next steps: measurements that could change a verdict, with the command and its time on this machine.

namespace paceline::report {
namespace {

using analysis::Cell;

constexpr int kRepeats = 5;
constexpr long kLeastSteps = 10;
constexpr double kAround_s = 0.5;  ///< a cell's start and end
constexpr std::size_t kMostBatches = 4;

/// A stopped study is continued with the command that began it.
std::optional<Next::Step> finish(const Subject& subject) {
  const auto [all, unmeasured] = subject.conclusions.stopped_study();
  const auto& command = subject.best()->record().command;
  if (unmeasured == 0 || command.empty()) return std::nullopt;
  return Next::Step{.title = "Finish the study",
                    .why = fmt::format("{} of {} runs are not measured.", unmeasured, all),
                    .command = command};
}

/// What is not certain of the choice, and what to do before measuring again.
std::string why_to_settle(const analysis::Choice& choice, const Cell& best) {
  std::vector<const Cell*> cells = choice.unsettled;
  cells.push_back(&best);
  if (auto load = text_about_load(cells); !load.empty()) {
    load.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(load.front())));
    const bool by_others = std::ranges::any_of(cells, [](const Cell* cell) { return cell->competitors > 0; });
    return load + (by_others ? ": stop them first, or take a quieter moment." : ".");
  }
  if (!choice.overlap.empty()) return "Their intervals overlap.";
  if (best.disturbance == measure::Disturbance::none && choice.unsettled.empty())
    return "The best was measured once.";
  return "The windows were too short to see other programs.";
}

/// A step for records of which none can be recommended: the same again, with what they lack.
Next::Step begin_again(const Subject& subject) {
  const auto& cells = subject.cells.cells;
  const auto over =
      std::ranges::find_if(subject.point.left_out, [](const auto& one) { return one.cell->oversubscribed; });
  if (over != subject.point.left_out.end())
    return {.title = fmt::format("Measure with {}", over->cell->needs()),
            .why = text_about_no_best(subject.point, cells),
            .command = command_like(over->cell->record(), "scale",
                                    fmt::format("--workers 1,2 --batches {}",
                                                std::max<std::int64_t>(1, over->cell->local_batch)))};
  return {.title = "Run it again",
          .why = text_about_no_best(subject.point, cells),
          .command = cells.empty() ? "" : cells.front()->record().command};
}

/// Suggests more repeats and longer windows for cells between which no difference is certain.
std::optional<Next::Step> settle(const Subject& subject) {
  const Cell& best = *subject.best();
  const auto& choice = subject.point.choice;
  const bool is_unsure = choice.standing != analysis::Standing::decided || !choice.unsettled.empty() ||
                         best.disturbance != measure::Disturbance::none || best.records.size() < 2;
  if (!is_unsure) return std::nullopt;
  auto rivals = choice.overlap;
  rivals.insert(rivals.end(), choice.unsettled.begin(), choice.unsettled.end());
  // Cells that one command can measure: those like the best cell if there are any, otherwise like the next.
  const auto is_alike = [](const Cell& a, const Cell& b) {
    return a.threads_per_worker == b.threads_per_worker;
  };
  const Cell* first = &best;
  if (!rivals.empty() &&
      std::ranges::none_of(rivals, [&](const Cell* cell) { return is_alike(*cell, best); }))
    first = rivals.front();
  std::set<std::int64_t> batches{first->local_batch};
  std::set<int> workers{first->workers};
  double slowest = first->step_s.median;
  for (const Cell* cell : rivals) {
    if (!is_alike(*cell, *first) || batches.size() >= kMostBatches) continue;
    batches.insert(cell->local_batch);
    workers.insert(cell->workers);
    slowest = std::max(slowest, cell->step_s.median);
  }
  const auto steps =
      std::max(kLeastSteps, static_cast<long>(measure::kKnownWindow_s / first->step_s.median) + 1);
  const auto cells = static_cast<double>(batches.size() * workers.size() * kRepeats);
  const auto names = base::texts_of(batches, [](auto batch) { return integer(batch); });
  const bool is_one = first->workers == 1 && workers.size() == 1;
  return Next::Step{
      .title = first != &best ? fmt::format("Settle {}, batch {}", way_of(*first), listed(names))
               : batches.size() > 1
                   ? fmt::format("Settle {} images{}", listed(names), best.workers > 1 ? " a worker" : "")
                   : "Measure the best for longer",
      .why = why_to_settle(choice, best),
      .command = command_like(best.record(), is_one ? "sweep" : "scale",
                              fmt::format("{}--batches {} --repeats {} --window-steps {}",
                                          is_one ? "" : fmt::format("--workers {} ", fmt::join(workers, ",")),
                                          fmt::join(batches, ","), kRepeats, steps)),
      .seconds = cells * (kAround_s + static_cast<double>(steps + 2) * slowest)};
}

/// "--baseline-batch 32 --large-batch 512 --epochs 3": as they were trained.
std::string options_of(const analysis::Convergence& convergence) {
  const auto& baseline = convergence.variants[convergence.baseline.value_or(0)];
  std::string options = fmt::format("--baseline-batch {}", baseline.cell->global_batch);
  if (convergence.large)
    options += fmt::format(" --large-batch {}", convergence.variants[*convergence.large].cell->global_batch);
  return options + fmt::format(" --epochs {:g}", baseline.epochs);
}

/// Suggests more seeds if the accuracy is from a single one.
std::optional<Next::Step> seeds(const Subject& subject) {
  constexpr int kSeeds = 3;
  const Answer accuracy = accuracy_answer(subject);
  const auto& convergence = subject.conclusions.convergence;
  if (accuracy.certainty == Certainty::not_measured)
    return Next::Step{.title = "Ask what a larger batch costs in accuracy",
                      .why = "These runs trained no epoch.",
                      .command = accuracy.command};
  if (accuracy.chip != "one seed" || !convergence) return std::nullopt;
  double seconds = 0;
  for (const auto& variant : convergence->variants) seconds += variant.training_s;
  const auto& record = *convergence->variants.front().record;
  if (record.kind != "converge") return std::nullopt;
  return Next::Step{.title = "Train with three seeds",
                    .why = "What one seed shows may be luck.",
                    .command = command_like(record, "converge",
                                            fmt::format("{} --repeats {}", options_of(*convergence), kSeeds)),
                    .seconds = kSeeds * seconds};
}

/// Suggests timing collectives alone, if workers communicate and that was not done.
std::optional<Next::Step> network_step(const Subject& subject) {
  const Cell& best = *subject.best();
  const auto& records = subject.conclusions.records;
  if (best.workers < 2 || std::ranges::any_of(records, is_of_collectives)) return std::nullopt;
  constexpr double kSeconds = 10;
  const auto& record = best.record();
  const std::string device =
      analysis::is_of_cuda_engine(record) ? " --device " + base::shell_word(record.device) : "";
  return Next::Step{.title = "Time the all-reduce by the size of its message",
                    .why = "It shows what a larger model would meet.",
                    .command = "paceline comm" + device + fmt::format(" --workers {}", best.workers),
                    .seconds = kSeconds};
}

/// Suggests the number of workers that says most about more of them, where this machine has cores for them.
std::optional<Next::Step> more_workers(const Subject& subject) {
  const auto* prediction = subject.prediction();
  if (prediction == nullptr || !prediction->forecast.next) return std::nullopt;
  const auto& next = *prediction->forecast.next;
  const auto& record = subject.best()->record();
  const auto cores = std::int64_t{record.environment.cores} * analysis::nodes(record);
  if (!is_on_cpu(*subject.best()) || next.workers * subject.best()->threads_per_worker > cores)
    return std::nullopt;
  return Next::Step{
      .title = fmt::format("Measure {}", counted(next.workers, "worker")),
      .why = fmt::format("It says most about {} for its time.", counted(next.target, "worker")),
      .command = command_like(record, "scale",
                              fmt::format("--workers {},{} --batches {:g}", prediction->model.fewest(),
                                          next.workers, prediction->forecast.request.step.batch))};
}

/// What a quick study leaves out, each with the command that measures it.
void add_of_quick(const Subject& subject, std::vector<std::string>& sentences) {
  const auto& record = subject.best()->record();
  if (!is_quick(record)) return;
  sentences.push_back(
      fmt::format("Which batch between those, and what five repeats say: `{}`.",
                  command_like(record, "sweep", "--batches 8,16,32,64,128,256,512 --repeats 5")));
  const auto& convergence = subject.conclusions.convergence;
  if (!convergence || !convergence->large) return;
  const auto& baseline = convergence->variants[convergence->baseline.value_or(0)];
  sentences.push_back(
      fmt::format("What each remedy of a large batch gives by itself, and all together: `{}`.",
                  command_like(*baseline.record, "converge", options_of(*convergence))));
}

std::vector<std::string> not_answered(const Subject& subject) {
  std::vector<std::string> sentences;
  const Cell* most = nullptr;
  for (const auto& [cell, why] : subject.point.left_out)
    if (cell->oversubscribed && (most == nullptr || cell->workers > most->workers)) most = cell;
  if (most != nullptr)
    sentences.push_back(fmt::format("What {} workers give with {}.", most->workers, most->needs()));
  if (analysis::nodes(subject.best()->record()) == 1)
    sentences.emplace_back("How much a network between machines would cost: all workers were on one.");
  if (subject.best()->synthetic)
    sentences.emplace_back("Which accuracy real images give: the data was synthetic.");
  add_of_quick(subject, sentences);
  return sentences;
}

}  // namespace

Next next_steps(const Subject& subject) {
  Next next;
  if (subject.best() == nullptr) {
    next.steps.push_back(begin_again(subject));
    return next;
  }
  for (auto& step :
       {finish(subject), settle(subject), seeds(subject), network_step(subject), more_workers(subject)})
    if (step) next.steps.push_back(*step);
  next.not_answered = not_answered(subject);
  return next;
}

}  // namespace paceline::report
