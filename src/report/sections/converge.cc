#include "analysis/trainings/converge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/compare/cell_labels.h"
#include "base/text.h"
#include "report/answers/wording.h"
#include "report/sections/curves.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Convergence;
using analysis::Difference;
using analysis::Variant;

constexpr const char* kConvergeDefinition =
    "Accuracy of the last epoch on the whole test set, mean over seeds (never the best of them). Standard "
    "error: sqrt(p(1-p) / test images) joined with the spread over seeds. Variants are compared at equal "
    "epochs; their updates differ and are shown. A difference (in points of a percent) below its own "
    "standard error is noise, above two of them (more where few seeds lie far apart) clear, but never with "
    "one seed. Training: seconds of the last seed, without evaluation; an epoch: their median. Given back: "
    "what a remedy gains over the large batch without remedy, as a part of what that lost.";

TableCell difference_cell(const std::optional<Difference>& difference, const std::string& reason) {
  if (!difference) return missing(reason);
  return {.value = 100 * difference->value,
          .low = 100 * (difference->value - difference->standard_error),
          .high = 100 * (difference->value + difference->standard_error),
          .note = difference->word()};
}

TableCell given_back_cell(const Convergence& result, const Variant& variant) {
  if (variant.given_back) {
    TableCell cell = value(*variant.given_back);
    if (variant.to_large->is_noise()) cell = with_mark(std::move(cell), "noise");
    return cell;
  }
  if (!variant.to_large) return missing("no remedy of the large batch");
  return missing(result.variants[*variant.large].to_baseline->value < 0
                     ? "the loss of the large batch is noise"
                     : "the large batch lost nothing");
}

std::vector<TableCell> converge_row(const Convergence& result, std::size_t i) {
  const Variant& variant = result.variants[i];
  const std::string reason = i == result.baseline           ? "is the baseline"
                             : variant.verdict.comparable() ? "no baseline"
                                                            : variant.verdict.refusals.front();
  return {words(variant.name),
          value(variant.cell->global_batch),
          value(variant.cell->workers),
          value(variant.epochs),
          value(variant.updates),
          words(fmt::format("{:.4g}", variant.peak_lr)),
          with_mark(value(variant.seeds),
                    variant.failed() > 0 ? fmt::format("of {}", variant.seeds + variant.failed()) : ""),
          with_mark(value(variant.training_s), marks_of(*variant.cell)),
          with_mark(with_mark(value(variant.epoch_s), variant.epoch_measured ? "" : "est."),
                    marks_of(*variant.cell)),
          value(variant.test_loss, "not measured"),
          with_error(variant.accuracy, variant.standard_error),
          difference_cell(variant.to_baseline, reason),
          words(variant.to_baseline ? variant.to_baseline->word() : "-"),
          given_back_cell(result, variant)};
}

/// "a, b: remark." Variants with the same batch mostly share their remarks.
std::vector<std::string> joined_remarks(const std::vector<Variant>& variants) {
  std::vector<std::pair<std::string, std::vector<std::string>>> names_of;
  for (const Variant& variant : variants) {
    for (const std::string& remark : variant.verdict.remarks) {
      const auto same = std::ranges::find_if(names_of, [&](const auto& one) { return one.first == remark; });
      if (same != names_of.end())
        same->second.push_back(variant.name);
      else
        names_of.push_back({remark, {variant.name}});
    }
  }
  std::vector<std::string> joined;
  for (const auto& [remark, names] : names_of)
    joined.push_back(fmt::format("{}: {}.", fmt::join(names, "; "), remark));
  return joined;
}

Table converge_table(const Convergence& result) {
  Table table{
      .id = "converge",
      .title = "Accuracy against the global batch, and what each remedy gives back",
      .definition = kConvergeDefinition,
      .columns = {
          {.key = "variant", .label = "variant"},
          {.key = "global_batch", .label = "global batch", .format = Format::integer},
          {.key = "workers", .label = "workers", .format = Format::integer},
          {.key = "epochs", .label = "epochs", .format = Format::integer},
          {.key = "updates", .label = "updates", .format = Format::integer},
          {.key = "peak_lr", .label = "peak lr"},
          {.key = "seeds", .label = "seeds", .format = Format::integer},
          {.key = "training", .label = "training", .unit = "s", .format = Format::seconds},
          {.key = "epoch", .label = "an epoch", .unit = "s", .format = Format::seconds},
          {.key = "test_loss", .label = "test loss", .format = Format::fixed3},
          {.key = "accuracy", .label = "accuracy", .format = Format::percent1},
          {.key = "difference", .label = "to the baseline", .unit = "points", .format = Format::fixed1},
          {.key = "verdict", .label = "verdict"},
          {.key = "given_back", .label = "given back", .format = Format::percent1}}};
  Footnotes footnotes;
  for (const Variant& variant : result.variants) {
    if (variant.epochs != std::round(variant.epochs)) table.columns[3].format = Format::fixed2;
    if (!variant.epoch_measured)
      footnotes.add("est.: no whole epoch was trained: of the part that was, over that part.");
  }
  footnotes.add("Intervals here are one standard error to either side.");
  for (std::size_t i = 0; i < result.variants.size(); ++i) {
    const Variant& variant = result.variants[i];
    table.rows.push_back(converge_row(result, i));
    for (const auto& refusal : variant.verdict.refusals)
      footnotes.add(fmt::format("{}: not compared with the baseline: {}.", variant.name, refusal));
    footnotes.explain_marks(*variant.cell);
    if (result.baseline && i != *result.baseline) {
      const auto& baseline = result.variants[*result.baseline].cell->record();
      if (const auto changed = analysis::changed_settings(baseline, variant.cell->record()); !changed.empty())
        footnotes.add(
            fmt::format("{} changes against the baseline, beside its batch: {}.", variant.name, changed));
    }
    if (variant.seeds == 1)
      footnotes.add(
          "One seed: the spread over seeds is not known, the standard error is the test set's alone.");
    if (variant.failed() > 0)
      footnotes.add(fmt::format(
          "{}: {} of {} trainings failed ({}); its mean is over those that did not, and flatters it.",
          variant.name, variant.failed(), variant.seeds + variant.failed(),
          base::joined(variant.failures, "; ", &analysis::FailedSeed::reason)));
    for (const std::string& lost : variant.cell->lost_repeats)
      if (std::ranges::find(variant.failures, lost, &analysis::FailedSeed::reason) == variant.failures.end())
        footnotes.add(fmt::format("{}: a repeat was lost: {}.", variant.name, lost));
    if (variant.same_seed > 0)
      footnotes.add(
          fmt::format("{}: {} of a seed that is there already left out: the same seed gives the "
                      "same training, and no spread.",
                      variant.name, counted(variant.same_seed, "repeat")));
    if (variant.cut_short > 0)
      footnotes.add(fmt::format("{}: {} that ended before {} updates left out.", variant.name,
                                counted(variant.cut_short, "repeat"), variant.updates));
    if (variant.cell->status != "complete")
      footnotes.add(fmt::format("{}: {}: {}.", variant.name, variant.cell->status, variant.cell->reason));
  }
  for (const std::string& remark : joined_remarks(result.variants)) footnotes.add(remark);
  for (const auto& missing : result.missing) footnotes.add(missing + ".");
  std::vector<const analysis::Cell*> cells;
  for (const Variant& variant : result.variants) cells.push_back(variant.cell);
  insert_setup_columns(table, 3, cells);
  table.footnotes = footnotes.take();
  return table;
}

/// "; of 'sqrt' 1 of 2 seeds failed": a remedy that diverges is no remedy, whatever the other seeds reached.
std::string text_about_failed(const std::vector<const analysis::Variant*>& remedies) {
  std::string text;
  for (const auto* one : remedies)
    if (one->failed() > 0)
      text += fmt::format("; of '{}' {} of {} seeds failed", one->name, one->failed(),
                          one->seeds + one->failed());
  return text;
}

/// Which remedy gives back most, as far as the differences are certain.
std::string text_about_remedies(const analysis::Convergence& result) {
  const auto& variants = result.variants;
  const auto is_remedy = [&](const analysis::Variant& one) {
    return one.given_back && one.large == result.large;
  };
  if (std::ranges::none_of(variants, is_remedy)) return "";
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
    return fmt::format(" {} give back most, {} of the loss: not told apart{}{}.", listed(names),
                       listed(shares), best.to_large->is_noise() ? ", and noise" : "",
                       text_about_failed(remedies));
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

/// "2 seeds each", "one seed against 3 of 4": the number of trainings behind a difference.
std::string seeds_of(const analysis::Variant& one, const analysis::Variant& baseline) {
  const auto said = [](const analysis::Variant& variant) {
    const int all = variant.seeds + variant.failed();
    if (variant.failed() > 0) return fmt::format("{} of {} seeds, the others failed", variant.seeds, all);
    return all == 1 ? std::string("one seed") : counted(all, "seed");
  };
  if (one.seeds == baseline.seeds && one.failed() == 0 && baseline.failed() == 0) return said(one) + " each";
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

/// What the large batch did to the accuracy, and which remedy gives most of it back; nothing without a
/// baseline and a large batch. Of several seeds of one training: their mean.
std::optional<Paragraph> text_about_accuracy(const Conclusions& conclusions) {
  const auto& result = conclusions.convergence;
  if (!result || result->variants.empty()) return std::nullopt;
  const auto& records = conclusions.records;
  if (result->variants.size() == 1 &&
      std::ranges::find(records, "converge", &measure::Record::kind) == records.end()) {
    const auto& one = result->variants.front();
    return finding(fmt::format(
        "One configuration, nothing to compare: {} with a standard error of {:.1f} points after {} at global "
        "batch {}, mean over {}{}. `paceline converge` compares.",
        percent(one.accuracy), 100 * one.standard_error, epochs_text(one.epochs), one.cell->global_batch,
        counted(one.seeds, "seed"),
        one.failed() > 0 ? fmt::format("; {} of {} failed", one.failed(), one.seeds + one.failed()) : ""));
  }
  if (!result->baseline || !result->large) return std::nullopt;
  const auto& baseline = result->variants[*result->baseline];
  const auto& large = result->variants[*result->large];
  const auto& loss = *large.to_baseline;
  std::string word = loss.word();
  if (const std::string seed = "; one seed"; word.ends_with(seed)) word.resize(word.size() - seed.size());
  std::string text = fmt::format(
      "After {} at global batch {} instead of {}: {} instead of {}: {:+.1f} "
      "points with a standard error of {:.1f} ({}; {}); {} updates instead of {}.",
      epochs_text(large.epochs), batch_of_variant(*result, large), batch_of_variant(*result, baseline),
      percent(large.accuracy), percent(baseline.accuracy), 100 * loss.value, 100 * loss.standard_error, word,
      seeds_of(large, baseline), integer(large.updates), integer(baseline.updates));
  return finding(text + text_about_remedies(*result));
}

}  // namespace

std::optional<Section> converge_section(const Conclusions& conclusions) {
  if (!conclusions.convergence) return std::nullopt;
  const Convergence& result = *conclusions.convergence;
  Section section{.id = "convergence", .title = "What happens to the accuracy?"};
  add_block(section.blocks, text_about_accuracy(conclusions));
  section.blocks.push_back(converge_table(result));
  if (auto said = text_about_claim(result)) section.blocks.push_back(finding(std::move(*said)));
  add_block(section.blocks, claims_table(result));
  if (result.variants.empty()) return section;
  if (const auto whole = analysis::whole_trainings(result)) {
    section.blocks.push_back(whole_trainings_table(result, *whole));
    if (auto said = text_about_whole_trainings(result, *whole))
      section.blocks.push_back(finding(std::move(*said)));
  }
  section.blocks.push_back(course_table(result));
  for (const Variant& variant : result.variants)
    add_block(section.blocks, text_about_overfitting(variant.name, analysis::course(variant.records)));
  for (auto& plot : converge_plots(result)) section.blocks.push_back(std::move(plot));
  for (auto& plot : course_plots(result)) section.blocks.push_back(std::move(plot));
  return section;
}

}  // namespace paceline::report
