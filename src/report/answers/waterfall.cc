#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "report/answers/answers.h"
#include "report/answers/remedy_text.h"
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
    if (remedy.part == part) return fmt::format("{}: {}", name_of(remedy, cell), said_of_gain(remedy));
  return "";
}

/// Parts that are not 0 in every row; only these get a bar.
std::vector<LossPart> parts_of(const LossesOfGroup& losses) {
  std::vector<LossPart> parts;
  for (std::size_t i = 0; i < analysis::kLossParts; ++i)
    if (std::any_of(losses.rows.begin(), losses.rows.end(),
                    [i](const EfficiencyLoss& loss) { return loss.parts[i].seconds != 0; }))
      parts.push_back(static_cast<LossPart>(i));
  return parts;
}

/// Names the largest part that exceeds the noise; none if all may be chance.
std::string finding_of_loss(const EfficiencyLoss& loss) {
  const auto who = count(loss.cell->workers, "worker");
  if (loss.loss_s() <= 0) return fmt::format("{} lose no efficiency against one worker", who);
  const auto lost = fmt::format("{} lose {} of their step", who, about(loss.loss_s() / loss.step_s));
  std::optional<LossPart> most;
  for (std::size_t i = 0; i < analysis::kLossParts; ++i) {
    const auto part = static_cast<LossPart>(i);
    if (loss[part].seconds <= 0 || loss[part].is_within_noise()) continue;
    if (!most || loss[part].seconds > loss[*most].seconds) most = part;
  }
  if (!most) return lost + ": no part of it is beyond noise";
  return fmt::format("{}: most to {} ({})", lost, name(*most), about(loss.points(*most)));
}

}  // namespace

std::optional<Waterfall> step_waterfall(const Subject& subject) {
  if (subject.row == nullptr) return std::nullopt;
  const LossesOfGroup* losses = losses_of(subject);
  if (losses == nullptr) return std::nullopt;
  const auto found = std::find_if(losses->rows.begin(), losses->rows.end(),
                                  [&](const EfficiencyLoss& loss) { return loss.cell == subject.best(); });
  if (found == losses->rows.end()) return std::nullopt;
  Waterfall waterfall{
      .id = "step",
      .finding = finding_of_loss(*found),
      .note =
          "Of a step of the typical worker, by means, which add up; elsewhere a step is a median. "
          "Grey is within noise.",
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
    bar.name = count(loss.cell->workers, "worker");
    bar.step_s = loss.step_s;
    for (const LossPart part : parts) bar.parts.push_back(loss.points(part));
  }
  return waterfall;
}

}  // namespace paceline::report
