#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/compare/consistency.h"
#include "analysis/steps/breakdown.h"
#include "analysis/steps/process_layouts.h"
#include "report/sections/curves.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::FewestWorkers;
using analysis::Mode;
using analysis::ScalingGroup;
using analysis::ScalingRow;

bool was_disturbed(const analysis::Cell& cell) {
  return std::any_of(cell.records.begin(), cell.records.end(),
                     [](const measure::Record* record) { return analysis::is_disturbed(*record); });
}

/// "other programs kept 0.75 cores busy", for the repeat that was disturbed most. Requires: one was
/// disturbed.
std::string worst_disturbance(const analysis::Cell& cell) {
  const auto others = [](const measure::Record* record) {
    return std::pair(analysis::is_disturbed(*record), record->window.others_cores.value_or(0));
  };
  const measure::Record& worst = **std::ranges::max_element(cell.records, {}, others);
  const auto of_gpus = measure::disturbance_of_gpus(worst);
  return of_gpus == measure::disturbance(worst)
             ? of_gpus
             : fmt::format("other programs kept {:.2f} cores busy", others(&worst).second);
}

/// Why an efficiency exceeds 100 %. Records show whether the baseline was disturbed, but not whether an
/// undisturbed one had a slow moment or too little cache.
std::string above_the_ideal(const ScalingGroup& group, const ScalingRow& row) {
  if (row.efficiency.median <= 1) return "";
  if (!analysis::has_interval(row.efficiency)) return "above 100 %, of a single step: it may be noise";
  if (row.efficiency.low <= 1) return "above 100 % within its interval: noise";
  if (was_disturbed(*group.baseline) && !was_disturbed(*row.cell))
    return fmt::format("above the ideal: {} while the baseline was measured",
                       worst_disturbance(*group.baseline));
  return "above the ideal: the baseline was measured in a slower moment, or a worker's data fits a cache";
}

/// Everything that makes a speedup doubtful.
std::vector<std::string> caveats(const ScalingGroup& group, const ScalingRow& row) {
  std::vector<std::string> all;
  if (const auto ledger = analysis::breakdown(*row.cell); analysis::is_data_bound(ledger))
    all.push_back(fmt::format("the loader is the limit, {} of the step waits for data",
                              percent(ledger.mean.data_wait / ledger.mean.total())));
  if (analysis::has_interval(row.speedup) && row.speedup.low <= 1 && row.speedup.high >= 1)
    all.emplace_back("the interval holds 1: no clear gain");
  if (auto above = above_the_ideal(group, row); !above.empty()) all.push_back(std::move(above));
  if (row.verdict.shares_cores) all.emplace_back("on the baseline's cores, shared out");
  if (auto across = text_about_circumstances(*group.baseline, *row.cell); !across.empty())
    all.push_back(std::move(across));
  return all;
}

std::string workers_text(const ScalingRow& row) { return count(row.cell->workers, "worker"); }

/// The cells that the number of workers was chosen from.
std::vector<const analysis::Cell*> choice_among(const FewestWorkers& choice) {
  std::vector<const analysis::Cell*> cells;
  for (const ScalingRow* row : choice.candidates) cells.push_back(row->cell);
  return cells;
}

/// Adds to the caveats what a reader must know about rivals and omitted rows.
void add_rivals(std::vector<std::string>& all, const FewestWorkers& choice) {
  const auto rate = [](const ScalingRow* row) { return row->cell->images_per_s; };
  std::vector<std::string> open;
  for (const ScalingRow* rival : choice.rivals)
    open.push_back(
        fmt::format("{} gave {} times its images/s", workers_text(*rival),
                    with_interval(analysis::ratio(rate(rival), rate(choice.row)), Format::fixed2)));
  if (!open.empty()) all.push_back(fmt::format("not decided: {}", fmt::join(open, ", ")));
  if (choice.row->is_baseline && choice.candidates.size() > 1 && open.empty())
    all.emplace_back("more were not faster by 5 %");
  for (const ScalingRow* left_out : choice.left_out) {
    const auto gain = analysis::ratio(rate(left_out), rate(choice.row));
    if (choice.row->is_baseline || gain.median > 1)
      all.push_back(fmt::format("{} share cores and are left out, at {} times the images/s",
                                workers_text(*left_out), with_interval(gain, Format::fixed2)));
  }
  if (const auto few = fewest_repeats(choice_among(choice)); !few.empty()) all.push_back(few);
}

/// "batch 128", "batch 128, version 0.2.0". Model and set-up are named once, before all batches.
std::string name_of_group(const ScalingGroup& group) {
  return fmt::format("batch {}{}", group.batch, behind(group.circumstances));
}

/// The answer for a group. In weak scaling N workers do more work per step, not the same work faster.
std::string describe(const ScalingGroup& group, const FewestWorkers& choice, Mode mode) {
  const ScalingRow& row = *choice.row;
  if (row.is_baseline) {
    std::vector<std::string> said{
        fmt::format("{} images/s", with_interval(row.cell->images_per_s, Format::rate))};
    add_rivals(said, choice);
    return fmt::format("{}: {} ({})", name_of_group(group), workers_on_cores(*row.cell),
                       fmt::join(said, "; "));
  }
  auto said = caveats(group, row);
  add_rivals(said, choice);
  return fmt::format("{}: {}, {} {}, efficiency {}{}", name_of_group(group), workers_on_cores(*row.cell),
                     mode == Mode::weak ? "scaled speedup" : "speedup",
                     with_interval(row.speedup, Format::fixed2),
                     with_interval(row.efficiency, Format::percent1),
                     said.empty() ? "" : fmt::format(" ({})", fmt::join(said, "; ")));
}

/// Rows that are not compared, each with its reason.
std::vector<std::string> why_not_compared(const ScalingGroup& group) {
  std::vector<std::string> why;
  for (const ScalingRow& row : group.rows) {
    if (row.has_ratios) continue;
    std::string reason =
        row.cell->is_measured()
            ? fmt::format("not compared: {}", row.verdict.refusals.empty() ? "no baseline was measured"
                                                                           : row.verdict.refusals.front())
            : fmt::format("{}: {}", row.cell->status, row.cell->reason);
    if (reason.ends_with('.')) reason.pop_back();
    why.push_back(fmt::format("{}: {}", workers_text(row), reason));
  }
  return why;
}

/// " of resnet8-cifar, threads of one process".
std::string text_about_whom(const ScalingGroup& group) {
  return (group.subject.empty() ? "" : " of " + group.subject) + behind(group.setup);
}

/// For a group with fewer than two rows to choose from: what it has, and what is missing.
std::string text_about_nothing(const ScalingGroup& group, const FewestWorkers& choice, Mode mode) {
  std::string has =
      group.baseline == nullptr ? "no measured cell" : count(group.baseline->workers, "worker") + " alone";
  if (choice.left_out.size() > 1) {
    std::vector<int> workers;
    for (const ScalingRow* row : choice.left_out) workers.push_back(row->cell->workers);
    has = fmt::format("{} workers, which all share cores: that says nothing about a core for each",
                      fmt::join(workers, ", "));
  }
  auto parts = why_not_compared(group);
  parts.insert(parts.begin(),
               fmt::format("{} scaling{} at {} {} has {}", name(mode), text_about_whom(group),
                           mode == Mode::weak ? "local" : "global", name_of_group(group), has));
  return fmt::format("{}", fmt::join(parts, "; "));
}

/// Says which compared rows are of emulated hardware.
std::string text_about_emulated_rows(const std::vector<const ScalingGroup*>& groups) {
  std::map<std::string, std::vector<int>> workers_of;
  for (const ScalingGroup* group : groups)
    for (const ScalingRow& row : group->rows) {
      if (!row.has_ratios || row.cell->emulated.empty()) continue;
      auto& there = workers_of[row.cell->emulated];
      if (std::find(there.begin(), there.end(), row.cell->workers) == there.end())
        there.push_back(row.cell->workers);
    }
  std::string said;
  for (const auto& [what, there] : workers_of)
    said += fmt::format(" EMULATED {} at {} worker{}: no speedup of such hardware.", what,
                        fmt::join(there, ", "), there.size() == 1 && there.front() == 1 ? "" : "s");
  return said;
}

/// Describes a set-up that was measured with one number of workers. It offers no choice, but is shown beside
/// other set-ups.
std::string describe_alone(const ScalingGroup& group) {
  const ScalingRow& row = group.rows.front();
  const std::string few = few_repeats(*row.cell);
  return fmt::format("{}: {} images/s on {}, the only number of workers measured so{}", name_of_group(group),
                     with_interval(row.cell->images_per_s, Format::rate), workers_on_cores(*row.cell),
                     in_brackets(few));
}

/// Collects the groups of a mode that share an answer: all batches of one model and set-up.
std::vector<std::vector<const ScalingGroup*>> answered_together(const std::vector<ScalingGroup>& groups) {
  std::vector<std::vector<const ScalingGroup*>> parts;
  for (const ScalingGroup& group : groups) {
    const auto same = std::find_if(parts.begin(), parts.end(), [&](const auto& part) {
      return part.front()->subject == group.subject && part.front()->setup == group.setup;
    });
    (same != parts.end() ? *same : parts.emplace_back()).push_back(&group);
  }
  return parts;
}

/// The measured row of a group with that many workers, joined in a known way.
const ScalingRow* row_with_workers(const ScalingGroup& group, int workers) {
  for (const ScalingRow& row : group.rows)
    if (row.cell->workers == workers && row.cell->is_measured() &&
        !analysis::joined_as(row.cell->record()).empty())
      return &row;
  return nullptr;
}

/// "2 workers at local batch 128: threads of one process 4,560 images/s; 2 processes on 2 nodes 0.50 [0.49,
/// 0.51] times that": the groups of one batch that differ in how workers are joined, by workers.
std::vector<std::string> joining_of_groups(const std::vector<ScalingGroup>& groups, Mode mode) {
  std::vector<std::string> said;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const ScalingGroup& first = groups[i];
    const auto is_same_batch = [&](const ScalingGroup& other) {
      return other.batch == first.batch && other.subject == first.subject;
    };
    if (std::any_of(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(i), is_same_batch)) continue;
    std::map<int, std::vector<const analysis::Cell*>> by_workers;
    for (const ScalingGroup& group : groups)
      for (const ScalingRow& row : group.rows)
        if (is_same_batch(group) && row_with_workers(group, row.cell->workers) == &row)
          by_workers[row.cell->workers].push_back(row.cell);
    for (const auto& [workers, cells] : by_workers) {
      std::vector<std::string> ways;
      std::set<std::string> seen;
      std::map<std::string, std::string> refused;
      const auto names = analysis::layout_names(cells);
      for (std::size_t k = 0; k < cells.size(); ++k) {
        const analysis::Cell* cell = cells[k];
        auto way = names[k];
        const auto verdict = analysis::compare_layouts(cells.front()->record(), cell->record());
        if (!verdict.comparable()) {
          refused.try_emplace(way, verdict.refusals.front());
          continue;
        }
        if (!seen.insert(way).second) continue;
        way +=
            ways.empty()
                ? fmt::format(" {} images/s", with_interval(cell->images_per_s, Format::rate))
                : fmt::format(" {} times that{}",
                              with_interval(analysis::ratio(cell->images_per_s, cells.front()->images_per_s),
                                            Format::fixed2),
                              in_brackets(fmt::format("{}", fmt::join(verdict.remarks, "; "))));
        ways.push_back(std::move(way));
      }
      for (const auto& [way, why] : refused)
        if (!seen.contains(way)) ways.push_back(fmt::format("{} not compared ({})", way, why));
      if (ways.size() > 1)
        said.push_back(fmt::format("{} at {} batch {}{}: {}{}", count(workers, "worker"),
                                   mode == Mode::weak ? "local" : "global", first.batch,
                                   first.subject.empty() ? "" : " of " + first.subject, fmt::join(ways, "; "),
                                   in_brackets(fewest_repeats(cells))));
    }
  }
  return said;
}

/// Adds a finding for each model and set-up. Groups with fewer than two rows to choose from are listed in
/// `nothing`.
void answer_mode(std::vector<Block>& blocks, const Conclusions& conclusions, Mode mode,
                 std::vector<std::string>& nothing) {
  const auto& all = conclusions.scaling(mode);
  for (const auto& part : answered_together(all)) {
    std::vector<std::string> answers, alone;
    std::string baseline;
    for (const ScalingGroup* group : part) {
      const FewestWorkers choice = analysis::fewest_workers(*group);
      if (choice.row == nullptr || choice.candidates.size() + choice.left_out.size() < 2) {
        if (!group->setup.empty() && group->baseline != nullptr && group->rows.size() == 1)
          alone.push_back(describe_alone(*group));
        else if (conclusions.stopped("scale").unmeasured == 0)
          nothing.push_back(text_about_nothing(*group, choice, mode));
        continue;
      }
      answers.push_back(describe(*group, choice, mode));
      const auto& record = group->baseline->record();
      baseline = fmt::format(
          " Baseline: {}{}.", group->baseline_name,
          analysis::is_of_cuda_engine(record) ? "" : ", on " + count(analysis::cores_used(record), "core"));
    }
    if (answers.empty() && alone.empty()) continue;
    const char* const rule = answers.empty() ? "" : ", the fewest within 5 % of the best throughput";
    answers.insert(answers.end(), alone.begin(), alone.end());
    blocks.push_back(finding(
        fmt::format("How many workers? {} scaling{}, by {} batch{}: {}.{}{}{}",
                    mode == Mode::weak ? "Weak" : "Strong", text_about_whom(*part.front()),
                    mode == Mode::weak ? "local" : "global", rule, fmt::join(answers, "; "), baseline,
                    text_about_emulated_rows(part), so_far(conclusions, "scale", "cells of scaling"))));
  }
  if (const auto joining = joining_of_groups(all, mode); !joining.empty())
    blocks.push_back(finding(fmt::format("How to join the workers? {}.", fmt::join(joining, ". "))));
}

}  // namespace

std::string not_measured(const Conclusions& conclusions, std::string_view kind) {
  if (conclusions.stopped(kind).unmeasured > 0)
    return "Not measured yet: the study was stopped; the same command goes on.";
  return fmt::format("Not measured: `paceline {}` answers it.", kind);
}

std::string so_far(const Conclusions& conclusions, std::string_view kind, std::string_view noun) {
  const auto stopped = conclusions.stopped(kind);
  if (stopped.unmeasured == 0) return "";
  return fmt::format(" So far: {} of {} {} {} not measured when the study was stopped.", stopped.unmeasured,
                     stopped.records, noun, stopped.unmeasured == 1 ? "was" : "were");
}

void answer_workers(std::vector<Block>& blocks, const Conclusions& conclusions) {
  std::vector<std::string> nothing;
  const std::size_t before = blocks.size();
  for (const Mode mode : {Mode::weak, Mode::strong}) answer_mode(blocks, conclusions, mode, nothing);
  if (!nothing.empty())
    blocks.push_back(plain(fmt::format("How many workers? Not answered: {}.", fmt::join(nothing, ". "))));
  else if (const auto said =
               blocks.size() > before ? std::nullopt : answer_by_trainings(conclusions.convergence))
    blocks.push_back(finding("How many workers? " + *said));
  else if (blocks.size() == before)
    blocks.push_back(plain("How many workers? " + not_measured(conclusions, "scale")));
}

}  // namespace paceline::report
