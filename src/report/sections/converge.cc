#include "analysis/trainings/converge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

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

TableCell accuracy_cell(const Variant& variant) {
  return {.value = variant.accuracy,
          .low = variant.accuracy - variant.standard_error,
          .high = variant.accuracy + variant.standard_error,
          .note = "interval: one standard error to either side"};
}

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
          value(static_cast<double>(variant.cell->global_batch)),
          value(variant.cell->workers),
          value(variant.epochs),
          value(static_cast<double>(variant.updates)),
          words(fmt::format("{:.4g}", variant.peak_lr)),
          with_mark(value(variant.seeds),
                    variant.failed > 0 ? fmt::format("of {}", variant.seeds + variant.failed) : ""),
          with_mark(value(variant.training_s), marks_of(*variant.cell)),
          with_mark(with_mark(value(variant.epoch_s), variant.epoch_measured ? "" : "est."),
                    marks_of(*variant.cell)),
          variant.test_loss ? value(*variant.test_loss) : missing("not measured"),
          accuracy_cell(variant),
          difference_cell(variant.to_baseline, reason),
          words(variant.to_baseline ? variant.to_baseline->word() : "-"),
          given_back_cell(result, variant)};
}

/// "a, b: remark." Variants with the same batch mostly share their remarks.
std::vector<std::string> joined_remarks(const std::vector<Variant>& variants) {
  std::vector<std::pair<std::string, std::vector<std::string>>> names_of;
  for (const Variant& variant : variants) {
    for (const std::string& remark : variant.verdict.remarks) {
      const auto same = std::find_if(names_of.begin(), names_of.end(),
                                     [&](const auto& one) { return one.first == remark; });
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
    if (variant.failed > 0)
      footnotes.add(fmt::format(
          "{}: {} of {} trainings failed ({}); its mean is over those that did not, and flatters it.",
          variant.name, variant.failed, variant.seeds + variant.failed, fmt::join(variant.failures, "; ")));
    for (const std::string& lost : variant.cell->lost_repeats)
      if (std::find(variant.failures.begin(), variant.failures.end(), lost) == variant.failures.end())
        footnotes.add(fmt::format("{}: a repeat was lost: {}.", variant.name, lost));
    if (variant.same_seed > 0)
      footnotes.add(
          fmt::format("{}: {} of a seed that is there already left out: the same seed gives the "
                      "same training, and no spread.",
                      variant.name, count(variant.same_seed, "repeat")));
    if (variant.cut_short > 0)
      footnotes.add(fmt::format("{}: {} that ended before {} updates left out.", variant.name,
                                count(variant.cut_short, "repeat"), variant.updates));
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

}  // namespace

std::optional<Section> converge_section(const Conclusions& conclusions) {
  if (!conclusions.convergence) return std::nullopt;
  const Convergence& result = *conclusions.convergence;
  Section section{.id = "convergence", .title = "What happens to the accuracy?"};
  section.blocks.push_back(converge_table(result));
  if (result.variants.empty()) return section;
  if (const auto whole = analysis::whole_trainings(result)) {
    section.blocks.push_back(whole_trainings_table(result, *whole));
    if (auto said = text_about_whole_trainings(result, *whole))
      section.blocks.push_back(finding(std::move(*said)));
  }
  section.blocks.push_back(course_table(result));
  for (const Variant& variant : result.variants)
    if (auto said = text_about_overfitting(variant.name, analysis::course(variant.records)))
      section.blocks.push_back(std::move(*said));
  for (auto& plot : converge_plots(result)) section.blocks.push_back(std::move(plot));
  for (auto& plot : course_plots(result)) section.blocks.push_back(std::move(plot));
  return section;
}

}  // namespace paceline::report
