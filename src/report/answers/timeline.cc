#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/steps/by_worker.h"
#include "measure/disturbance.h"
#include "measure/statistics.h"
#include "measure/timeline.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/text.h"

// How the efficiency of the operating point is lost, and the same for all numbers of workers of its group.

namespace paceline::report {
namespace {

using analysis::EfficiencyLoss;
using analysis::LossPart;

const LossesOfGroup* losses_of(const Subject& subject) {
  for (const auto& losses : subject.conclusions.losses)
    if (losses.group == subject.group) return &losses;
  return nullptr;
}

std::string hint_of(const analysis::Remedies& remedies, LossPart part, const analysis::Cell& cell) {
  for (const auto& remedy : remedies.list)
    if (remedy.part == part) return fmt::format("{}: {}", name_of(remedy, cell), text_about_gain(remedy));
  return "";
}

/// Parts that are not 0 in every row; only these get a bar.
std::vector<LossPart> parts_of(const LossesOfGroup& losses) {
  std::vector<LossPart> parts;
  for (std::size_t i = 0; i < analysis::kLossParts; ++i)
    if (std::ranges::any_of(losses.rows, [i](const auto& loss) { return loss.parts[i].seconds != 0; }))
      parts.push_back(static_cast<LossPart>(i));
  return parts;
}

/// What a part of the loss is, inside a sentence.
std::string text_about_loss_part(LossPart part) {
  switch (part) {
    case LossPart::smaller_batch:
      return "the smaller batch";
    case LossPart::sharing:
      return "sharing memory and caches";
    case LossPart::imbalance:
      return "waiting for the slowest worker";
    case LossPart::jitter:
      return "unevenness of steps";
    case LossPart::latency:
    case LossPart::transfer:
      return std::string(name(part)) + ", which computing does not hide,";
    default:
      return name(part);
  }
}

/// Names the largest part beyond noise, and what the others make together, for a part may be larger than the
/// whole.
std::string finding_of_loss(const EfficiencyLoss& loss) {
  const auto who = counted(loss.cell->workers, "worker");
  if (loss.loss_s() <= 0) return fmt::format("{} lose no efficiency against one worker", who);
  const auto lost = fmt::format("{} lose {} of a step", who, about(loss.loss_s() / loss.step_s));
  std::optional<LossPart> most;  // of those beyond noise
  double most_of_noise = 0;
  for (std::size_t i = 0; i < analysis::kLossParts; ++i) {
    const auto part = static_cast<LossPart>(i);
    const auto& one = loss[part];
    if (one.is_within_noise())
      most_of_noise = std::max(most_of_noise, one.seconds);
    else if (one.seconds > 0 && (!most || one.seconds > loss[*most].seconds))
      most = part;
  }
  if (!most) return lost + ": no part of it is beyond noise";
  if (most_of_noise > loss[*most].seconds)
    return fmt::format("{}: {} costs {}, the rest may be noise", lost, text_about_loss_part(*most),
                       about(loss.points(*most)));
  const double rest = loss.loss_s() / loss.step_s - loss.points(*most);
  constexpr double kNothing = 0.005;
  const auto others = std::abs(rest) < kNothing ? std::string("the rest nearly cancels out")
                      : rest > 0                ? fmt::format("the rest {}", about(rest))
                                                : fmt::format("the rest gives {} back", about(-rest));
  return fmt::format("{}: {} costs {}, {}", lost, text_about_loss_part(*most), about(loss.points(*most)),
                     others);
}

using measure::Record;
using measure::TimelineSpan;

/// The most typical record with steps: undisturbed if possible, and with the median step nearest to that of
/// all.
const Record* record_to_show(const analysis::Cell& cell) {
  const Record* found = nullptr;
  const auto distance = [&](const Record& record) {
    const double median = measure::quantile(record.ranks.front().step_s, 0.5);
    return std::pair(measure::disturbance_of(record), std::abs(median - cell.step_s.median));
  };
  for (const Record* record : cell.records) {
    if (!record->last_steps || record->last_steps->ranks.empty()) continue;
    if (record->ranks.empty() || record->ranks.front().step_s.empty()) continue;
    if (found == nullptr || distance(*record) < distance(*found)) found = record;
  }
  return found;
}

/// The caption, as far as all repeats agree.
std::string finding_of_timeline(const analysis::Cell& cell, std::int64_t steps) {
  const auto workers = analysis::by_worker(cell);
  const std::string shown = counted(steps, "step");
  if (!workers) return fmt::format("{} of {}", shown, way_of(cell));
  const auto& slowest = workers->workers[workers->slowest];
  if (workers->imbalance < analysis::kBalanced)
    return fmt::format("{} of {}: over all repeats no rank is steadily later than the others", shown,
                       way_of(cell));
  if (workers->is_told_apart()) {
    double waited = 0;
    for (const auto& worker : workers->workers) waited += worker.waiting_s;
    waited /= static_cast<double>(workers->workers.size() - 1);
    return fmt::format("Rank {} comes late: the others wait {} a step for it", slowest.rank,
                       duration(waited));
  }
  if (workers->lead_s.n < 2)
    return fmt::format("Rank {} works longest; one repeat does not tell whether it always does",
                       slowest.rank);
  return fmt::format("{} of {}: no rank is late beyond the spread of repeats", shown, way_of(cell));
}

std::string note_of(const Record& record) {
  const auto& last = *record.last_steps;
  std::string note =
      fmt::format("The last {} of {}; waiting and transfer are split as in the times of a step.",
                  counted(last.steps, "step"), record.id);
  double error = 0;
  for (const auto& rank : last.ranks) error = std::max(error, rank.clock_error_us.value_or(0));
  if (error > 0) note += fmt::format(" Clocks agree within {}.", duration(1e-6 * error));
  if (last.ranks_left_out > 0)
    note += fmt::format(" {} of {} ranks are left out: shown are those that waited least and most.",
                        last.ranks_left_out, record.workers);
  return note;
}

std::optional<Timeline> timeline_of(const analysis::Cell& cell, std::string id) {
  const Record* record = record_to_show(cell);
  if (record == nullptr) return std::nullopt;
  Timeline timeline{.id = std::move(id),
                    .finding = finding_of_timeline(cell, record->last_steps->steps),
                    .note = note_of(*record)};
  for (std::size_t phase = 0; phase < measure::kPhases; ++phase)
    timeline.phases.emplace_back(measure::name(static_cast<measure::Phase>(phase)));
  const int collective = static_cast<int>(timeline.phases.size());
  timeline.phases.emplace_back("communication");
  for (const auto& rank : measure::timelines(*record->last_steps)) {
    const int lane = static_cast<int>(timeline.lanes.size());
    timeline.lanes.push_back(fmt::format("rank {}", rank.rank));
    bool has_collectives = false;
    for (const auto& span : rank.spans) {
      const bool is_phase = span.lane == TimelineSpan::Lane::phase;
      has_collectives = has_collectives || !is_phase;
      timeline.spans.push_back({.lane = is_phase ? lane : lane + 1,
                                .phase = is_phase ? span.what : collective,
                                .begin = span.begin_s,
                                .end = span.end_s});
    }
    if (has_collectives) timeline.lanes.push_back(fmt::format("rank {}, all-reduce", rank.rank));
  }
  return timeline;
}

}  // namespace

std::optional<Waterfall> step_waterfall(const Subject& subject) {
  if (subject.row == nullptr) return std::nullopt;
  const LossesOfGroup* losses = losses_of(subject);
  if (losses == nullptr) return std::nullopt;
  const auto found = std::ranges::find(losses->rows, subject.best(), &EfficiencyLoss::cell);
  if (found == losses->rows.end()) return std::nullopt;
  Waterfall waterfall{.id = "step",
                      .finding = finding_of_loss(*found),
                      .note = "Mean times of the middle worker, which add up. Grey: too small to be sure.",
                      .from_name = fmt::format("ideal, by {}", baseline_name(*found->baseline)),
                      .to_name = way_of(*found->cell),
                      .from = found->ideal_s,
                      .to = found->step_s};
  const auto parts = parts_of(*losses);
  const auto remedies = analysis::remedies(*found);
  for (const LossPart part : parts) {
    const auto& figure = (*found)[part];
    waterfall.changes.push_back({.name = name(part),
                                 .seconds = figure.seconds,
                                 .hint = hint_of(remedies, part, *found->cell),
                                 .low = figure.low,
                                 .high = figure.high,
                                 .is_noise = figure.is_within_noise()});
  }
  for (const EfficiencyLoss& loss : losses->rows) {
    auto& bar = waterfall.bars.emplace_back();
    bar.name = counted(loss.cell->workers, "worker");
    bar.step_s = loss.step_s;
    for (const LossPart part : parts) bar.parts.push_back(loss.points(part));
  }
  return waterfall;
}

// A timeline of a few steps of the operating point: which worker computed, which waited, when gradients were
// sent.

std::vector<Timeline> step_timelines(const Subject& subject) {
  std::vector<Timeline> timelines;
  if (subject.best() == nullptr) return timelines;
  if (auto best = timeline_of(*subject.best(), "timeline")) timelines.push_back(std::move(*best));
  if (subject.row == nullptr || subject.group->baseline->workers != 1) return timelines;
  if (auto baseline = timeline_of(*subject.group->baseline, "timeline-baseline"))
    timelines.push_back(std::move(*baseline));
  return timelines;
}

}  // namespace paceline::report
