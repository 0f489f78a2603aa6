#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "analysis/compare/cell.h"
#include "analysis/compare/cell_labels.h"
#include "analysis/steps/bandwidth.h"
#include "analysis/steps/breakdown.h"
#include "analysis/steps/process_layouts.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

// The five questions. Every answer carries its numbers, the batch and workers that they belong to, and what
// makes them doubtful; for a question without records the report says that it was not measured, and gives the
// command that would measure it.

namespace paceline::report {
namespace {

std::string share_text(const char* what, double part, double total) {
  return fmt::format("{} {}", what, percent(part / total));
}

/// Where the lost efficiency went: the residual by its largest parts, those of at least a twentieth of it.
std::string describe_loss(const analysis::Cell& baseline, const analysis::Breakdown& ledger) {
  const auto split = analysis::residual(analysis::breakdown(baseline), ledger);
  std::vector<std::string> doubts{fewest_repeats({&baseline, ledger.cell}),
                                  text_about_circumstances(baseline, *ledger.cell)};
  std::erase(doubts, "");
  const std::string in_doubt = in_brackets(fmt::format("{}", fmt::join(doubts, "; ")));
  if (!analysis::has_to_be_explained(split))
    return fmt::format(
        " Against the ideal T(1)/N an epoch of all images took {} {}, {}: there is nothing to explain{}.",
        duration(std::abs(split.residual_s)), split.residual_s < 0 ? "less" : "more",
        std::abs(split.residual_s) <= split.noise_s
            ? fmt::format("and its noise is {}", duration(split.noise_s))
            : fmt::format("what parts of up to {} leave of each other", duration(split.largest_part_s())),
        in_doubt);
  if (split.residual_s <= 0)
    return fmt::format(" Against the ideal T(1)/N an epoch of all images lost nothing ({} less){}.",
                       duration(-split.residual_s), in_doubt);
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
  return fmt::format(" Of the {} that an epoch of all images lost against the ideal T(1)/N: {}{}.",
                     duration(split.residual_s), fmt::join(said, ", "), in_doubt);
}

/// Other measured cells with the same number of workers and batch, one for each other way of joining the
/// workers, that may be compared with it.
std::vector<const analysis::Cell*> joined_otherwise(const analysis::CellGroup& subject,
                                                    const analysis::Cell& cell) {
  std::vector<const analysis::Cell*> others;
  std::set<std::string> layouts{analysis::joined_as(cell.record())};
  if (layouts.contains("")) return others;
  for (const bool same_kind : {true, false})
    for (const analysis::Cell* other : subject.cells)
      if (other->is_measured() && (other->kind == cell.kind) == same_kind && other->workers == cell.workers &&
          other->local_batch == cell.local_batch && other->global_batch == cell.global_batch &&
          analysis::compare_layouts(cell.record(), other->record()).comparable() &&
          layouts.insert(analysis::joined_as(other->record())).second)
        others.push_back(other);
  return others;
}

/// " The same workers joined otherwise: 2 processes on 2 nodes 56.3 ms, exposed transfer 48.0 %, ...".
std::string text_about_time_joined_otherwise(const std::vector<const analysis::Cell*>& others) {
  std::vector<std::string> said;
  for (const analysis::Cell* other : others) {
    const auto mean = analysis::breakdown(*other).mean;
    said.push_back(fmt::format("{} {}, {}, {}", analysis::joined_as(other->record()), duration(mean.total()),
                               share_text("exposed transfer", mean.exposed_transfer, mean.total()),
                               share_text("waiting for a later rank", mean.exposed_wait, mean.total())));
  }
  return said.empty() ? "" : fmt::format(" The same workers joined otherwise: {}.", fmt::join(said, "; "));
}

void answer_time(std::vector<Block>& blocks, const Conclusions& conclusions,
                 const analysis::CellGroup& subject) {
  const auto [group, row] = headline(conclusions, subject.name);
  const analysis::Cell* cell = row != nullptr ? row->cell : nullptr;
  if (cell == nullptr)
    for (const analysis::Cell* other : subject.cells)
      if (cell == nullptr && other->is_measured()) cell = other;
  if (cell == nullptr) {
    blocks.push_back(
        plain(fmt::format("Where does the time go? Not measured: no record{} holds a measured step.",
                          subject.name.empty() ? "" : " of " + subject.name)));
    return;
  }
  const auto ledger = analysis::breakdown(*cell);
  const auto& mean = ledger.mean;
  const double total = mean.total();
  const std::string which = which_of_several(conclusions, group, subject.name, *cell);
  std::string text =
      fmt::format("Where does the time go? A step of local batch {} on {}{} takes {}: {}", cell->local_batch,
                  workers_on_cores(*cell), which.empty() ? "" : fmt::format(", {},", which), duration(total),
                  share_text("compute", mean.compute(), total));
  if (cell->workers > 1)
    text += fmt::format(", {}, {}", share_text("exposed transfer", mean.exposed_transfer, total),
                        share_text("waiting for a later rank", mean.exposed_wait, total));
  text += fmt::format(", {}, {}.", share_text("data wait", mean.data_wait, total),
                      share_text("copy and other", mean.copy + mean.other, total));
  if (ledger.communication_total > 0)
    text += fmt::format(
        " The all-reduces of a step take, on average over all steps, {} of transfer and {} of waiting for a "
        "later rank; {} of both is hidden behind the backward pass.",
        duration(ledger.transfer), duration(ledger.late_peer),
        percent(ledger.overlapped / ledger.communication_total));
  if (row != nullptr) text += describe_loss(*group->baseline, ledger);
  text += text_about_time_joined_otherwise(joined_otherwise(subject, *cell)) + text_about_emulation(*cell);
  blocks.push_back(finding(text));
  if (analysis::waits_for_scheduling(ledger))
    blocks.push_back(plain(fmt::format(
        "Steps waited {} each for data although the loader was fast enough (scheduling): it could give {} "
        "images/s, {} were used.",
        duration(mean.data_wait), number(ledger.loader_images_per_s),
        number(static_cast<double>(cell->global_batch) / total))));
}

std::string text_about_network_joined_otherwise(const std::vector<const analysis::Cell*>& others) {
  std::vector<std::string> said;
  for (const analysis::Cell* other : others)
    if (const auto one = analysis::bandwidth(*other))
      said.push_back(fmt::format("{} in {}, busbw {} GB/s", analysis::joined_as(other->record()),
                                 duration(one->transfer_s.median), with_interval(one->busbw, Format::rate)));
  return said.empty() ? "" : fmt::format(" The same workers joined otherwise: {}.", fmt::join(said, "; "));
}

std::string no_network(const Conclusions& conclusions) {
  return fmt::format("How fast is the all-reduce? {}",
                     conclusions.stopped("scale").unmeasured > 0
                         ? not_measured(conclusions, "scale")
                         : "Not measured: no record has more than one worker.");
}

/// Adds nothing for a model that was run on one worker only.
void answer_network(std::vector<Block>& blocks, const Conclusions& conclusions,
                    const analysis::CellGroup& subject) {
  const auto [group, row] = headline(conclusions, subject.name);
  std::optional<analysis::Bandwidth> one;
  if (row != nullptr) one = analysis::bandwidth(*row->cell);
  for (const analysis::Cell* cell : subject.cells)
    if (!one) one = analysis::bandwidth(*cell);
  if (!one) return;
  const std::string which = which_of_several(conclusions, group, subject.name, *one->cell);
  std::string text = fmt::format(
      "How fast is the all-reduce? {} of gradients a step among {} in {} (median step): algbw {} GB/s, "
      "busbw {} GB/s",
      bytes(one->bytes_per_step), count(one->cell->workers, "worker"), duration(one->transfer_s.median),
      with_interval(one->algbw, Format::rate), with_interval(one->busbw, Format::rate));
  if (one->utilisation)
    text += fmt::format(", {} of the {} GB/s of reducing the same buckets with nothing else running",
                        with_interval(*one->utilisation, Format::percent1),
                        with_interval(*one->ceiling, Format::rate));
  blocks.push_back(
      finding(fmt::format("{} (local batch {}{}).{}{}", text, one->cell->local_batch, behind(which),
                          text_about_network_joined_otherwise(joined_otherwise(subject, *one->cell)),
                          text_about_emulation(*one->cell))));
}

/// "; of 'sqrt' 1 of 2 seeds failed": a remedy that diverges is no remedy, whatever the other seeds reached.
std::string text_about_failed(const std::vector<const analysis::Variant*>& remedies) {
  std::string text;
  for (const auto* one : remedies)
    if (one->failed > 0)
      text +=
          fmt::format("; of '{}' {} of {} seeds failed", one->name, one->failed, one->seeds + one->failed);
  return text;
}

/// Which remedy gives back most, as far as the differences are certain.
std::string text_about_remedies(const analysis::Convergence& result) {
  const auto& variants = result.variants;
  const auto is_remedy = [&](const analysis::Variant& one) {
    return one.given_back && one.large == result.large;
  };
  if (std::none_of(variants.begin(), variants.end(), is_remedy)) return "";
  if (result.give_back_most.empty()) return " No remedy gave any of it back.";
  const auto& best = variants[result.give_back_most.front()];
  if (result.give_back_most.size() > 1) {
    std::vector<std::string> names, shares;
    std::vector<const analysis::Variant*> remedies;
    for (const std::size_t i : result.give_back_most) {
      remedies.push_back(&variants[i]);
      names.push_back(fmt::format("'{}'", variants[i].name));
      shares.push_back(percent(*variants[i].given_back));
    }
    const auto list = [](std::vector<std::string> texts) {
      const std::string last = std::move(texts.back());
      texts.pop_back();
      return fmt::format("{} and {}", fmt::join(texts, ", "), last);
    };
    return fmt::format(" {} give back most, {} of the loss: not told apart{}{}.", list(names), list(shares),
                       best.to_large->is_noise() ? ", and noise" : "", text_about_failed(remedies));
  }
  const analysis::Variant* next = nullptr;
  for (const auto& variant : variants)
    if (is_remedy(variant) && &variant != &best &&
        (next == nullptr || *variant.given_back > *next->given_back))
      next = &variant;
  std::string rival;
  if (next != nullptr) {
    const auto lead = analysis::difference(*next, best);
    rival = fmt::format(", against {} of '{}' ({}{})", percent(*next->given_back), next->name, lead.word(),
                        lead.one_seed && !lead.is_clear() ? "; one seed" : "");
  }
  return fmt::format(" '{}' gives back most: {} of the loss{}{}{}.", best.name, percent(*best.given_back),
                     rival, best.to_large->is_noise() ? ", which is noise" : "", text_about_failed({&best}));
}

std::string epochs_of(const analysis::Variant& variant) {
  return fmt::format("{} epoch{}", amount(variant.epochs), variant.epochs == 1 ? "" : "s");
}

/// "2 seeds each", "one seed against 3 of 4": the number of trainings behind a difference.
std::string seeds_of(const analysis::Variant& one, const analysis::Variant& baseline) {
  const auto said = [](const analysis::Variant& variant) {
    const int all = variant.seeds + variant.failed;
    if (variant.failed > 0) return fmt::format("{} of {} seeds, the others failed", variant.seeds, all);
    return all == 1 ? std::string("one seed") : count(all, "seed");
  };
  if (one.seeds == baseline.seeds && one.failed == 0 && baseline.failed == 0) return said(one) + " each";
  return fmt::format("{} against {}", said(one), said(baseline));
}

/// "2048", of several versions that trained it "2048 (version 0.2.0)".
std::string batch_of_variant(const analysis::Convergence& result, const analysis::Variant& one) {
  std::vector<const analysis::Cell*> alike{one.cell};
  for (const auto& other : result.variants)
    if (other.cell != one.cell && other.cell->variant == one.cell->variant &&
        other.cell->global_batch == one.cell->global_batch)
      alike.push_back(other.cell);
  return fmt::format("{}{}", one.cell->global_batch,
                     in_brackets(analysis::different_circumstances(alike).front()));
}

void answer_accuracy(std::vector<Block>& blocks, const Conclusions& conclusions) {
  const auto& result = conclusions.convergence;
  if (result && result->variants.size() == 1 && conclusions.stopped("converge").records == 0) {
    const auto& one = result->variants.front();
    blocks.push_back(finding(fmt::format(
        "What happens to the accuracy? One configuration, nothing to compare: {} with a standard error of "
        "{:.1f} points after {} at global batch {}, mean over {}{}. `paceline converge` compares.",
        percent(one.accuracy), 100 * one.standard_error, epochs_of(one), one.cell->global_batch,
        count(one.seeds, "seed"),
        one.failed > 0 ? fmt::format("; {} of {} failed", one.failed, one.seeds + one.failed) : "")));
    return;
  }
  if (!result || !result->baseline || !result->large) {
    blocks.push_back(plain("What happens to the accuracy? " +
                           (result && conclusions.stopped("converge").unmeasured == 0
                                ? "The baseline or the large batch without remedy is missing: see the table."
                                : not_measured(conclusions, "converge"))));
    return;
  }
  const auto& baseline = result->variants[*result->baseline];
  const auto& large = result->variants[*result->large];
  const auto& loss = *large.to_baseline;
  std::string word = loss.word();
  if (const std::string seed = "; one seed"; word.ends_with(seed)) word.resize(word.size() - seed.size());
  std::string text = fmt::format(
      "What happens to the accuracy? After {} at global batch {} instead of {}: {} instead of {}: {:+.1f} "
      "points with a standard error of {:.1f} ({}; {}); {} updates instead of {}.",
      epochs_of(large), batch_of_variant(*result, large), batch_of_variant(*result, baseline),
      percent(large.accuracy), percent(baseline.accuracy), 100 * loss.value, 100 * loss.standard_error, word,
      seeds_of(large, baseline), integer(static_cast<double>(large.updates)),
      integer(static_cast<double>(baseline.updates)));
  text += text_about_remedies(*result) + so_far(conclusions, "converge", "trainings");
  blocks.push_back(finding(text));
}

/// Explains the figures in brackets, once for the whole report; docs/comparing.md has the reasons.
std::optional<Paragraph> text_about_intervals(const Conclusions& conclusions) {
  const bool any = std::any_of(conclusions.cells.begin(), conclusions.cells.end(), [](const auto& cell) {
    return cell.is_measured() && analysis::has_interval(cell.step_s);
  });
  if (!any) return std::nullopt;
  return plain(
      "Intervals, [low, high]: of a time or rate they hold the median of the steps measured with at "
      "least 95 % (of steps that are independent; of fewer than 6: the extremes), of several repeats the "
      "medians of all of them too; they are of these runs, and another run may lie outside. Of a ratio: "
      "both joined in quadrature. Of a ledger's part: the extremes of the repeats. Of an accuracy: one "
      "standard error to either side.");
}

}  // namespace

Section summary_section(const Conclusions& conclusions) {
  Section section{.id = "summary", .title = "Summary"};
  answer_batch(section.blocks, conclusions);
  answer_workers(section.blocks, conclusions);
  for (const auto& subject : conclusions.subjects) answer_time(section.blocks, conclusions, subject);
  if (auto warned = loader_warning(conclusions)) section.blocks.push_back(std::move(*warned));
  const std::size_t before = section.blocks.size();
  for (const auto& subject : conclusions.subjects) answer_network(section.blocks, conclusions, subject);
  if (section.blocks.size() == before) section.blocks.push_back(plain(no_network(conclusions)));
  answer_accuracy(section.blocks, conclusions);
  if (auto legend = text_about_intervals(conclusions)) section.blocks.push_back(std::move(*legend));
  return section;
}

}  // namespace paceline::report
