#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/bandwidth.h"
#include "analysis/breakdown.h"
#include "analysis/cells.h"
#include "report/sections/loader.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

// The five questions. Every answer carries its numbers, the batch and workers that they belong to, and what
// makes them doubtful; a question without records is said not to have been measured, with the command that
// would.

namespace paceline::report {
namespace {

using analysis::Estimate;
using analysis::Mode;
using analysis::ScalingGroup;
using analysis::ScalingRow;

/// What makes a speedup doubtful, all of it.
std::string caveats(const ScalingRow& row) {
  std::vector<std::string> all;
  if (const auto ledger = analysis::breakdown(*row.cell); analysis::is_data_bound(ledger))
    all.push_back(fmt::format("the loader is the limit, {} of the step waits for data",
                              percent(ledger.mean.data_wait / ledger.mean.total())));
  if (analysis::has_interval(row.speedup) && row.speedup.low <= 1 && row.speedup.high >= 1)
    all.emplace_back("the interval holds 1: no clear gain");
  if (analysis::has_interval(row.efficiency) && row.efficiency.low > 1)
    all.emplace_back(
        "above the ideal: the baseline was measured in a slower moment, or a worker's share fits a cache");
  if (row.cell->oversubscribed) all.emplace_back("more worker threads than cores");
  if (row.verdict.shares_cores) all.emplace_back("on the baseline's cores, shared out");
  return all.empty() ? "" : fmt::format(" ({})", fmt::join(all, "; "));
}

void answer_batch(std::vector<Block>& blocks, const Conclusions& conclusions) {
  if (!conclusions.sweep || !conclusions.sweep->knee) {
    blocks.push_back(plain("Which batch size? Not measured: `paceline sweep` answers it."));
    return;
  }
  const auto& sweep = *conclusions.sweep;
  const auto& knee = *sweep.points[*sweep.knee].cell;
  const auto& best = *sweep.points[*sweep.best].cell;
  std::string text = fmt::format("Which batch size? {} on {}: {} images/s", knee.local_batch,
                                 workers_on_cores(knee), with_interval(knee.images_per_s, Format::rate));
  const bool all_compared = std::all_of(
      sweep.points.begin(), sweep.points.end(),
      [](const analysis::SweepPoint& point) { return point.on_curve || !point.cell->is_measured(); });
  if (sweep.knee == sweep.best)
    text +=
        all_compared ? ", the best of all that were measured." : ", the best of those that can be compared.";
  else
    text += fmt::format(", the smallest within 5 % of the best ({} images/s at {}).",
                        number(best.images_per_s.median), best.local_batch);
  if (const std::string open = knee_not_decided(sweep); !open.empty())
    text += fmt::format(" Not decided: {}.", open);
  if (sweep.largest_that_fits)
    text += fmt::format(" The largest that {} is {}.",
                        sweep.memory_ends || !sweep.largest_was_measured ? "fits" : "was measured",
                        integer(static_cast<double>(*sweep.largest_that_fits)));
  blocks.push_back(finding(text));
}

/// The fewest workers within 5 % of the best throughput: more of them cost cores and give nothing. Workers
/// without a core each are never advised: what they gain here, one worker with more threads gains as well.
const ScalingRow* recommended(const ScalingGroup& group) {
  const auto is_candidate = [](const ScalingRow& row) { return row.has_ratios && !row.cell->oversubscribed; };
  double best = 0;
  for (const ScalingRow& row : group.rows)
    if (is_candidate(row)) best = std::max(best, row.cell->images_per_s.median);
  for (const ScalingRow& row : group.rows)
    if (is_candidate(row) && row.cell->images_per_s.median >= (1 - analysis::kKneeTolerance) * best)
      return &row;
  return nullptr;
}

/// N workers of weak scaling do more work in a step, not the same one faster.
std::string describe(const ScalingGroup& group, const ScalingRow& row, Mode mode) {
  if (row.is_baseline)
    return fmt::format("batch {}: {} ({} images/s; more were not faster by 5 %)", group.batch,
                       workers_on_cores(*row.cell), number(row.cell->images_per_s.median));
  return fmt::format("batch {}: {}, {} {}, efficiency {}{}", group.batch, workers_on_cores(*row.cell),
                     mode == Mode::weak ? "scaled speedup" : "speedup",
                     with_interval(row.speedup, Format::fixed2),
                     with_interval(row.efficiency, Format::percent1), caveats(row));
}

void answer_workers(std::vector<Block>& blocks, const Conclusions& conclusions) {
  bool any = false;
  for (const Mode mode : {Mode::weak, Mode::strong}) {
    std::vector<std::string> answers;
    std::string baseline;
    for (const ScalingGroup& group : conclusions.scaling(mode)) {
      const ScalingRow* row = recommended(group);
      const auto compared = std::count_if(group.rows.begin(), group.rows.end(),
                                          [](const ScalingRow& one) { return one.has_ratios; });
      if (row == nullptr || compared < 2) continue;
      answers.push_back(describe(group, *row, mode));
      baseline = fmt::format("{}, on {}", group.baseline_name,
                             count(analysis::cores_used(group.baseline->record()), "core"));
    }
    if (answers.empty()) continue;
    any = true;
    blocks.push_back(
        finding(fmt::format("How many workers? {} scaling, by {} batch, the fewest within 5 % of the best "
                            "throughput: {}. Baseline: {}.",
                            mode == Mode::weak ? "Weak" : "Strong", mode == Mode::weak ? "local" : "global",
                            fmt::join(answers, "; "), baseline)));
  }
  if (!any) blocks.push_back(plain("How many workers? Not measured: `paceline scale` answers it."));
}

std::string share(const char* what, double part, double total) {
  return fmt::format("{} {}", what, percent(part / total));
}

const ScalingGroup* group_of(const Conclusions& conclusions, const ScalingRow& row) {
  for (const auto* groups : {&conclusions.weak, &conclusions.strong})
    for (const ScalingGroup& group : *groups)
      for (const ScalingRow& one : group.rows)
        if (&one == &row) return &group;
  return nullptr;
}

/// Where the lost efficiency went: the residual by its largest parts, those of at least a twentieth of it.
std::string describe_loss(const analysis::Residual& split) {
  if (split.residual_s <= 0)
    return fmt::format(" Against the ideal T(1)/N an epoch of all images lost nothing ({} less).",
                       duration(-split.residual_s));
  std::vector<std::pair<double, const char*>> parts{{split.slower_kernels_s, "slower kernels"},
                                                    {split.waiting_s, "waiting for a later rank"},
                                                    {split.exposed_transfer_s, "exposed transfer"},
                                                    {split.data_wait_s, "waiting for data"},
                                                    {split.rest_s, "copy and other"}};
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> said;
  for (const auto& [seconds, what] : parts)
    if (std::abs(seconds) >= 0.05 * split.residual_s)
      said.push_back(fmt::format("{} {}", duration(seconds), what));
  return fmt::format(" Of the {} that an epoch of all images lost against the ideal T(1)/N: {}.",
                     duration(split.residual_s), fmt::join(said, ", "));
}

void answer_time(std::vector<Block>& blocks, const Conclusions& conclusions) {
  const ScalingRow* row = headline(conclusions);
  const analysis::Cell* cell = row != nullptr ? row->cell : nullptr;
  if (cell == nullptr)
    for (const auto& other : conclusions.cells)
      if (cell == nullptr && other.is_measured()) cell = &other;
  if (cell == nullptr) {
    blocks.push_back(plain("Where does the time go? Not measured: no record holds a measured step."));
    return;
  }
  const auto ledger = analysis::breakdown(*cell);
  const auto& mean = ledger.mean;
  const double total = mean.total();
  std::string text =
      fmt::format("Where does the time go? A step of local batch {} on {} takes {}: {}", cell->local_batch,
                  workers_on_cores(*cell), duration(total), share("compute", mean.compute(), total));
  if (cell->workers > 1)
    text += fmt::format(", {}, {}", share("exposed transfer", mean.exposed_transfer, total),
                        share("waiting for a later rank", mean.exposed_wait, total));
  text += fmt::format(", {}, {}.", share("data wait", mean.data_wait, total),
                      share("copy and other", mean.copy + mean.other, total));
  if (ledger.communication_total > 0)
    text += fmt::format(
        " The all-reduces of a step take {} of transfer and {} of waiting for a later rank; {} of both is "
        "hidden behind the backward pass.",
        duration(ledger.transfer), duration(ledger.late_peer),
        percent(ledger.overlapped / ledger.communication_total));
  if (row != nullptr)
    text += describe_loss(
        analysis::residual(analysis::breakdown(*group_of(conclusions, *row)->baseline), ledger));
  blocks.push_back(finding(text));
  if (analysis::waits_for_scheduling(ledger))
    blocks.push_back(plain(fmt::format(
        "Steps waited {} each for data although the loader was fast enough (scheduling): it could give {} "
        "images/s, {} were used.",
        duration(mean.data_wait), number(ledger.loader_images_per_s),
        number(static_cast<double>(cell->global_batch) / total))));
}

void answer_network(std::vector<Block>& blocks, const Conclusions& conclusions) {
  const ScalingRow* row = headline(conclusions);
  std::optional<analysis::Bandwidth> one;
  if (row != nullptr) one = analysis::bandwidth(*row->cell);
  for (const auto& cell : conclusions.cells)
    if (!one) one = analysis::bandwidth(cell);
  if (!one) {
    blocks.push_back(
        plain("What does the all-reduce give? Not measured: no record has more than one worker."));
    return;
  }
  std::string text = fmt::format(
      "What does the all-reduce give? {} of gradients a step among {} in {}: algbw {} GB/s, busbw {} GB/s",
      bytes(one->bytes_per_step), count(one->cell->workers, "worker"), duration(one->transfer_s.median),
      with_interval(one->algbw, Format::rate), with_interval(one->busbw, Format::rate));
  if (one->utilisation)
    text += fmt::format(", {} of the {} GB/s of reducing the same buckets with nothing else running",
                        percent(one->utilisation->median), number(*one->ceiling));
  blocks.push_back(finding(fmt::format("{} (local batch {}).", text, one->cell->local_batch)));
}

void answer_accuracy(std::vector<Block>& blocks, const Conclusions& conclusions) {
  const auto& result = conclusions.convergence;
  if (!result || !result->baseline || !result->large) {
    blocks.push_back(
        plain(result ? "What does the accuracy pay? The baseline or the large batch without remedy is "
                       "missing: see the table."
                     : "What does the accuracy pay? Not measured: `paceline converge` answers it."));
    return;
  }
  const auto& baseline = result->variants[*result->baseline];
  const auto& large = result->variants[*result->large];
  const auto& loss = *large.to_baseline;
  std::string text = fmt::format(
      "What does the accuracy pay? After {} at global batch {} instead of {}: {} instead of {}: {:+.1f} "
      "points with a standard error of {:.1f} ({}); {} updates instead of {}.",
      fmt::format("{:.3g} epoch{}", large.epochs, large.epochs == 1 ? "" : "s"), large.cell->global_batch,
      baseline.cell->global_batch, percent(large.accuracy), percent(baseline.accuracy), 100 * loss.value,
      100 * loss.standard_error, loss.word(), integer(static_cast<double>(large.updates)),
      integer(static_cast<double>(baseline.updates)));
  const analysis::Variant* best = nullptr;
  for (const auto& variant : result->variants)
    if (variant.given_back && (best == nullptr || *variant.given_back > *best->given_back) &&
        variant.cell->global_batch == large.cell->global_batch)
      best = &variant;
  if (best != nullptr && *best->given_back > 0)
    text += fmt::format(" '{}' gives back most: {} of the loss{}.", best->name, percent(*best->given_back),
                        best->to_large->is_noise() ? ", which is noise" : "");
  else if (best != nullptr)
    text += " No remedy gave any of it back.";
  blocks.push_back(finding(text));
}

}  // namespace

Section summary_section(const Conclusions& conclusions) {
  Section section{.id = "summary", .title = "Summary"};
  answer_batch(section.blocks, conclusions);
  answer_workers(section.blocks, conclusions);
  answer_time(section.blocks, conclusions);
  if (auto warned = loader_warning(conclusions)) section.blocks.push_back(std::move(*warned));
  answer_network(section.blocks, conclusions);
  answer_accuracy(section.blocks, conclusions);
  return section;
}

}  // namespace paceline::report
