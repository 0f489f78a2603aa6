#include "report/build.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare/interval.h"
#include "analysis/steps/bandwidth.h"
#include "analysis/steps/breakdown.h"
#include "analysis/steps/gpus.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Cell;

std::string ms(const analysis::Estimate& seconds) {
  return with_interval(analysis::scaled(seconds, 1e3), Format::rate) + " ms";
}

std::string name_of_cell(const Cell& cell) {
  return fmt::format("{}, {} images{}", way_of(cell), integer(cell.local_batch),
                     cell.workers > 1 ? " each" : "");
}

/// "8,557 [8,409, 8,624] images/s = 64 / 7.48 ms (median of 15 steps in 3 repeats)".
std::string rate_of(const Cell& cell) {
  return fmt::format("{} images/s = {} / {} ms (median of {} in {})",
                     with_interval(cell.images_per_s, Format::rate), cell.global_batch,
                     number(1e3 * cell.step_s.median), counted(cell.step_s.n, "step"),
                     counted(cell.records.size(), "repeat"));
}

/// "decided: ...": the word of an answer, and its rule.
std::string verdict_of_answer(const Answer& answer) {
  return fmt::format(
      "{} {}{}", sign_of(answer.certainty), text_of(answer.certainty),
      answer.chip.empty() || answer.chip == text_of(answer.certainty) ? "" : ": " + answer.chip);
}

Section section_of(const std::string& id, const Answer& answer, const char* rule) {
  Section section{.id = id, .title = answer.question.empty() ? "The operating point" : answer.question};
  std::string figure = figure_with_unit(answer);
  if (figure.ends_with('.')) figure.pop_back();
  section.blocks.emplace_back(
      finding(fmt::format("{} ({}). {}", figure, verdict_of_answer(answer), answer.sentence)));
  section.blocks.emplace_back(plain(rule));
  return section;
}

void add_text(Section& section, std::string text) { section.blocks.emplace_back(plain(std::move(text))); }

/// At most four of `cells` in words, and how many more there are.
template <typename Text>
std::string first_of(const std::vector<const Cell*>& cells, Text text) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(kMost, cells.size()); ++i) texts.push_back(text(*cells[i]));
  if (cells.size() > kMost) texts.push_back(fmt::format("{} more", cells.size() - kMost));
  return listed(texts);
}

/// Adds which cells may be faster than they were measured, and which intervals overlap, in numbers.
void add_standing(Section& section, const analysis::Choice& choice,
                  const std::vector<const Cell*>& compared) {
  if (choice.best == nullptr) return;
  const auto possible = [&](const Cell& cell) {
    return fmt::format("{} ({}, may reach {})", name_of_cell(cell), mark_of(cell.disturbance),
                       number(analysis::possible_rate(cell, compared)));
  };
  const auto reached = [](const Cell& cell) {
    return fmt::format("{} (up to {})", name_of_cell(cell), number(cell.images_per_s.high));
  };
  if (!choice.unsettled.empty())
    add_text(section, fmt::format("Not settled: {}.", first_of(choice.unsettled, possible)));
  const auto& best = choice.best->images_per_s;
  if (choice.overlap.empty())
    return add_text(
        section,
        fmt::format("No other interval reaches {} images/s, the lower end of the best's.", number(best.low)));
  add_text(section,
           fmt::format("The best's interval begins at {} images/s, which others reach: {}. A tie would lie "
                       "above {} % of its median, {}.",
                       number(best.low), first_of(choice.overlap, reached), 100 * (1 - analysis::kTie),
                       number((1 - analysis::kTie) * best.median)));
}

/// Of a single training, from which nothing is chosen.
Section section_of_training(const Subject& subject) {
  Section section =
      section_of("training", training_answer(subject),
                 "The test accuracy of the weights that the training kept: with a validation set those of "
                 "the epoch that it chose, tested once; else of its last epoch that was tested. Without a "
                 "test, the validation images or those of the training are named.");
  section.title = "What the training reached";
  return section;
}

Section operating_point(const Subject& subject) {
  if (is_of_one_training(subject)) return section_of_training(subject);
  constexpr std::size_t kMost = 5;
  Section section = section_of(
      "operating-point", best_answer(subject),
      "The highest median of images/s among cells that are complete and have a core for each thread, or a GPU "
      "for each worker; of exact ties the narrower interval, then the smaller global batch. The rate of a cell "
      "that other programs "
      "disturbed is a lower bound: with k of them beside it, it may be 1 + k times as fast.");
  const auto& eligible = subject.point.eligible;
  for (std::size_t i = 0; i < std::min(kMost, eligible.size()); ++i)
    add_text(section, fmt::format("{}. {}: {}{}.", i + 1, name_of_cell(*eligible[i]), rate_of(*eligible[i]),
                                  behind(mark_of(eligible[i]->disturbance))));
  if (auto load = text_about_load(subject.cells.cells); !load.empty())
    add_text(section,
             fmt::format("While cells were measured, {}{}.", load,
                         subject.point.choice.constant_load
                             ? ", in all of them about alike: they are compared for the machine as it is"
                             : ""));
  if (eligible.size() > kMost)
    add_text(section, fmt::format("{} more were measured slower.", eligible.size() - kMost));
  for (const auto& [cell, why] : subject.point.left_out)
    add_text(section, fmt::format("Left out: {}: {}.", name_of_cell(*cell), why));
  add_standing(section, subject.point.choice, eligible);
  return section;
}

Section batch(const Subject& subject) {
  Section section =
      section_of("batch", batch_answer(subject),
                 "Among the cells that differ from the operating point in their batch alone. A tie: "
                 "intervals overlap and lie within 5 % of the best's median; wider: not decided.");
  const auto cells = analysis::other_batches(subject.point);
  for (const Cell* cell : cells)
    add_text(section, fmt::format("{}: {}.", name_of_cell(*cell), rate_of(*cell)));
  if (cells.size() > 1) add_standing(section, analysis::fastest(cells), cells);
  return section;
}

Section workers_section(const Subject& subject) {
  Section section = section_of(
      "workers", workers_answer(subject),
      "Of each number of workers the fastest cell. Weak scaling: E = t_step(1) / t_step(N), scaled speedup N E. "
      "Strong scaling: S = T(1) / T(N), E = S / N.");
  const auto cells = analysis::other_workers(subject.point);
  for (const Cell* cell : cells)
    add_text(section, fmt::format("{}: {}.", name_of_cell(*cell), rate_of(*cell)));
  if (subject.row != nullptr) {
    const Cell& baseline = *subject.group->baseline;
    const Cell& best = *subject.best();
    const auto times = fmt::format("{} / {}", ms(baseline.step_s), ms(best.step_s));
    const auto efficiency = with_interval(subject.row->efficiency, Format::percent1),
               speedup = with_interval(subject.row->speedup, Format::fixed2);
    add_text(section,
             baseline.local_batch == best.local_batch
                 ? fmt::format("E = {} = {}; {} E = {}.", times, efficiency, best.workers, speedup)
                 : fmt::format("S = {} = {}; E = S / {} = {}.", times, speedup, best.workers, efficiency));
  }
  if (cells.size() > 1) add_standing(section, analysis::fastest(cells), cells);
  return section;
}

/// Adds the use of its GPUs: the busy share by the ledger beside NVIDIA's utilisation.
void add_gpus(Section& section, const Cell& cell) {
  const auto uses = analysis::gpu_uses(cell);
  if (!uses) return;
  for (const auto& gpu : uses->gpus) {
    std::vector<std::string> texts;
    if (gpu.utilisation) texts.push_back("utilisation " + percent(*gpu.utilisation));
    if (gpu.busy) texts.push_back("busy by the ledger " + percent(*gpu.busy));
    if (gpu.watts)
      texts.push_back(fmt::format("{} W{}", integer(*gpu.watts),
                                  gpu.watts_limit ? fmt::format(" of {}", integer(*gpu.watts_limit)) : ""));
    if (gpu.images_per_j) texts.push_back(number(*gpu.images_per_j) + " images per joule");
    for (const auto& [reason, part] : gpu.held_back.value_or(std::map<std::string, double>()))
      if (part > 0)
        texts.push_back(fmt::format("clocks held back by {} in {} of the readings", reason, percent(part)));
    if (!texts.empty()) add_text(section, fmt::format("GPU {}: {}.", gpu.index, listed(texts)));
  }
  add_text(
      section,
      "Utilisation is the time in which any kernel ran, also one that waits for a peer or is another program's; busy "
      "is this training's forward, backward and update, gaps between its kernels included.");
}

Section limit(const Subject& subject) {
  Section section =
      section_of("limit", limit_answer(subject),
                 "Every second of a step is in one phase; means over ranks and steps, which add up to "
                 "the mean step (the throughput is of the median step).");
  if (subject.best() == nullptr) return section;
  const auto ledger = analysis::breakdown(*subject.best());
  const auto& mean = ledger.mean;
  const auto line = [&](const char* name, double seconds) {
    return fmt::format("{} {} ms ({})", name, number(1e3 * seconds), percent(seconds / mean.total()));
  };
  add_text(section, fmt::format("{} + {} + {} + {} + {} = {} ms; the ledger closes at {} of the wall time.",
                                line("compute", mean.compute()), line("transfer", mean.exposed_transfer),
                                line("waiting for a later rank", mean.exposed_wait),
                                line("waiting for data", mean.data_wait),
                                line("copy and other", mean.copy + mean.other), number(1e3 * mean.total()),
                                percent(ledger.closure)));
  add_gpus(section, *subject.best());
  return section;
}

Section network_section(const Subject& subject) {
  Section section =
      section_of("network", network_answer(subject),
                 "algbw = X / t; busbw = algbw x 2 (N - 1) / N, what each link would carry in a ring. "
                 "A free network would save the exposed transfer of a step.");
  const Cell* best = subject.best();
  const auto one = best == nullptr ? std::nullopt : analysis::bandwidth(*best);
  if (!one) return section;
  const auto mean = analysis::breakdown(*best).mean;
  add_text(section,
           fmt::format("X = {} a step, t = {}: algbw {} GB/s, busbw = {} x 2 ({} - 1) / {} = {} GB/s.",
                       bytes(one->bytes_per_step), duration(one->transfer_s.median),
                       with_interval(one->algbw, Format::rate), number(one->algbw.median), best->workers,
                       best->workers, with_interval(one->busbw, Format::rate)));
  if (one->utilisation && one->ceiling)
    add_text(section, fmt::format("Alone the same messages get {} GB/s: {} of it is used in training.",
                                  with_interval(*one->ceiling, Format::rate),
                                  with_interval(*one->utilisation, Format::percent1)));
  add_text(section, fmt::format("Gain of a free network: {} ms / ({} ms - {} ms) = {}.",
                                number(1e3 * mean.exposed_transfer), number(1e3 * mean.total()),
                                number(1e3 * mean.exposed_transfer),
                                percent(mean.exposed_transfer / (mean.total() - mean.exposed_transfer))));
  return section;
}

Section accuracy(const Subject& subject) {
  const Answer answer = accuracy_answer(subject);
  Section section =
      section_of("accuracy", answer,
                 "The mean over seeds at the last epoch. Its standard error joins the test set's, "
                 "sqrt(p (1 - p) / n), with the spread over seeds; what one seed shows is never clear.");
  if (answer.certainty == Certainty::not_measured) return section;
  for (const auto& one : subject.conclusions.convergence->variants) {
    std::string text =
        fmt::format("{}: {} ± {} points after {} updates, {}", one.name, percent(one.accuracy),
                    number(100 * one.standard_error), integer(one.updates), counted(one.seeds, "seed"));
    if (one.to_baseline)
      text += fmt::format("; {:+.1f} points to the baseline, standard error {:.1f}: {}",
                          100 * one.to_baseline->value, 100 * one.to_baseline->standard_error,
                          one.to_baseline->word());
    add_text(section, text + ".");
  }
  return section;
}

Section steps_section(const Subject& subject) {
  Section section{.id = "steps", .title = "What was measured, step by step"};
  add_block(section.blocks, step_strip(subject));
  return section;
}

}  // namespace

Document explain(std::span<const measure::Record> records) {
  Document document{.title = "How the answers follow from the records"};
  const Conclusions conclusions = conclude(records);
  document.trust = text_about_checksums(records);
  for (const auto& cells : conclusions.subjects) {
    const Subject subject = subject_of(conclusions, cells);
    for (auto* const step :
         {operating_point, batch, workers_section, limit, network_section, accuracy, steps_section}) {
      document.sections.push_back(step(subject));
      if (cells.name.empty()) continue;
      document.sections.back().id += "-" + std::to_string(document.sections.size());
      document.sections.back().title += " (" + cells.name + ")";
    }
  }
  return document;
}

}  // namespace paceline::report
