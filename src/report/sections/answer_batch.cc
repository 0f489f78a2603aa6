#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "analysis/compare/cell_labels.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

/// The largest batch that was reached, and the limit there.
std::string largest_batch(const analysis::Sweep& sweep) {
  if (!sweep.largest_that_fits) return "";
  const std::string size = integer(static_cast<double>(*sweep.largest_that_fits));
  switch (sweep.largest_met) {
    case analysis::Limit::data:
      return fmt::format(" The largest is {}: there the data set ends, not memory.", size);
    case analysis::Limit::memory:
      return fmt::format(" The largest that fits into memory is {}.", size);
    default:
      return fmt::format(" The largest that was measured is {}.", size);
  }
}

long count_measured(const analysis::Sweep& sweep) {
  return std::count_if(sweep.points.begin(), sweep.points.end(),
                       [](const analysis::SweepPoint& point) { return point.cell->is_measured(); });
}

/// How the workers of the first cell are joined, if other cells with the same number of workers are joined
/// differently.
std::string joined_among(const std::vector<const analysis::Cell*>& alike) {
  return analysis::are_joined_otherwise(alike) ? analysis::joined_as(alike.front()->record()) : "";
}

/// A knee among batches measured by several versions may come from the difference between versions.
std::string text_about_mixture(const analysis::Sweep& sweep) {
  std::vector<const analysis::Cell*> compared;
  for (const analysis::SweepPoint& point : sweep.points)
    if (point.on_curve) compared.push_back(point.cell);
  const auto texts = analysis::different_circumstances(compared);
  const std::set<std::string> kinds(texts.begin(), texts.end());
  return kinds.size() < 2 ? "" : fmt::format("batches measured with {}", fmt::join(kinds, " and with "));
}

/// "64 on 1 worker (1 core)", of several workers "local batch 64 on 2 workers (2 cores)".
std::string batch_on(const analysis::Cell& cell, const std::string& which) {
  return fmt::format("{}{} on {}{}", cell.workers == 1 ? "" : "local batch ", cell.local_batch,
                     workers_on_cores(cell), behind(which));
}

/// `is_only`: the model has no other sweep with which to compare it.
std::string text_about_sweep(const Conclusions& conclusions, const analysis::Sweep& sweep, bool is_only) {
  const auto& knee = *sweep.points[*sweep.knee].cell;
  const auto& best = *sweep.points[*sweep.best].cell;
  std::vector<std::string> doubts{text_about_repeats(sweep), text_about_mixture(sweep)};
  std::erase(doubts, "");
  const std::string repeats = in_brackets(fmt::format("{}", fmt::join(doubts, "; ")));
  std::string which = which_of_several(conclusions, nullptr, sweep.subject, knee);
  if (which.find(sweep.setup) == std::string::npos) which += (which.empty() ? "" : ", ") + sweep.setup;
  const std::string rate = with_interval(knee.images_per_s, Format::rate);
  if (sweep.on_curve == 1)
    return fmt::format("Which batch size? Not answered: only {}{} was {}, on {}{}: {} images/s{}.{}{}",
                       knee.workers == 1 ? "batch " : "local batch ", knee.local_batch,
                       count_measured(sweep) == 1 ? "measured" : "compared", workers_on_cores(knee),
                       behind(which), rate, repeats, largest_batch(sweep), text_about_emulation(knee));
  std::string text = fmt::format("Which batch size? {}: {} images/s{}", batch_on(knee, which), rate, repeats);
  const bool all_compared = std::all_of(
      sweep.points.begin(), sweep.points.end(),
      [](const analysis::SweepPoint& point) { return point.on_curve || !point.cell->is_measured(); });
  if (sweep.knee == sweep.best)
    text += !all_compared ? ", the best of those that can be compared."
            : is_only     ? ", the best of all that were measured."
                          : ", the best of this sweep.";
  else
    text += fmt::format(", the smallest within 5 % of the best ({} images/s at {}).",
                        number(best.images_per_s.median), best.local_batch);
  if (const std::string open = knee_not_decided(sweep); !open.empty())
    text += fmt::format(" Not decided: {}.", open);
  return text + largest_batch(sweep) + text_about_emulation(knee) + so_far(conclusions, "sweep", "batches");
}

}  // namespace

std::string which_of_several(const Conclusions& conclusions, const analysis::ScalingGroup* group,
                             const std::string& subject, const analysis::Cell& cell) {
  if (group != nullptr)
    if (auto own = text_about_group(*group); own != group->subject) return own;
  std::vector<const analysis::Cell*> alike{&cell};
  for (const auto& one : conclusions.subjects)
    if (one.name == subject)
      for (const analysis::Cell* other : one.cells)
        if (other != &cell && other->is_measured() && other->workers == cell.workers &&
            other->local_batch == cell.local_batch)
          alike.push_back(other);
  std::vector<std::string> said{subject, joined_among(alike),
                                analysis::different_circumstances(alike).front()};
  std::erase(said, "");
  return fmt::format("{}", fmt::join(said, ", "));
}

/// Every sweep gets its own answer; if a model has several sweeps, the best of all follows.
void answer_batch(std::vector<Block>& blocks, const Conclusions& conclusions) {
  const std::size_t before = blocks.size();
  for (const auto& subject : conclusions.subjects) {
    std::vector<const analysis::Sweep*> own;
    for (const auto& sweep : conclusions.sweeps)
      if (sweep.subject == subject.name && sweep.knee) own.push_back(&sweep);
    for (const auto* sweep : own)
      blocks.push_back(finding(text_about_sweep(conclusions, *sweep, own.size() == 1)));
    if (own.size() < 2) continue;
    const auto* most = analysis::best_of(conclusions.sweeps, subject.name);
    const auto& best = *most->points[*most->best].cell;
    std::vector<std::string> which{subject.name, most->setup};
    std::erase(which, "");
    blocks.push_back(finding(fmt::format("Which batch size? The best of all sweeps{}: {}, {} images/s{}.{}",
                                         most->undecided.empty() ? "" : ", though its knee is not decided",
                                         batch_on(best, fmt::format("{}", fmt::join(which, ", "))),
                                         with_interval(best.images_per_s, Format::rate),
                                         in_brackets(few_repeats(best)), text_about_emulation(best))));
  }
  if (blocks.size() == before)
    blocks.push_back(plain("Which batch size? " + not_measured(conclusions, "sweep")));
}

}  // namespace paceline::report
