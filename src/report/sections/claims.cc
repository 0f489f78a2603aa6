#include "analysis/trainings/claim.h"

#include <fmt/format.h>

#include "report/answers/wording.h"
#include "report/sections/curves.h"
#include "report/sections/parts.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Claim;
using analysis::ClaimVerdict;
using analysis::Variant;

constexpr const char* kClaimsDefinition =
    "Whether a variant is no worse than the baseline, from the accuracies of the seeds on these test images. No worse: the "
    "one-sided 95 % interval of the difference ends above minus the margin; worse: the 95 % interval lies below zero; else not "
    "decided. Intervals by Student's t, of the differences of seeds that both trained (pairs), or of both spreads (Welch). p: "
    "of a permutation test for worse, one-sided. Seeds needed: of each variant, to show 'no worse' in four of five cases if "
    "both are equal.";

std::string seeds_text(const Variant& variant, const Variant& baseline) {
  if (variant.claim->pairs > 0) return counted(variant.claim->pairs, "pair");
  return fmt::format("{} and {}", variant.seeds + variant.failed(), baseline.seeds + baseline.failed());
}

std::vector<TableCell> claim_row(const Variant& variant, const Variant& baseline) {
  const Claim& claim = *variant.claim;
  TableCell p = value(claim.p, "too many orders to try all");
  if (claim.least_p > 0.05) p.note = fmt::format("with so few seeds it is {:.2g} at least", claim.least_p);
  return {words(variant.name),
          words(seeds_text(variant, baseline)),
          {.value = 100 * claim.difference, .low = 100 * claim.low, .high = 100 * claim.high},
          value(100 * claim.bound),
          words(analysis::word_of(claim.verdict)),
          std::move(p),
          claim.verdict == ClaimVerdict::not_decided ? value(claim.seeds_needed) : missing("it is decided")};
}

}  // namespace

std::optional<Table> claims_table(const analysis::Convergence& result) {
  if (!result.baseline) return std::nullopt;
  Table table{
      .id = "claims",
      .title = "No worse than the baseline?",
      .definition = kClaimsDefinition,
      .columns = {
          {.key = "variant", .label = "variant"},
          {.key = "seeds", .label = "seeds"},
          {.key = "difference", .label = "to the baseline", .unit = "points", .format = Format::fixed2},
          {.key = "bound", .label = "at least", .unit = "points", .format = Format::fixed2},
          {.key = "verdict", .label = "verdict"},
          {.key = "p", .label = "p", .format = Format::fixed3},
          {.key = "seeds_needed", .label = "seeds needed", .format = Format::integer}}};
  bool has_failed = false;
  for (const Variant& variant : result.variants) {
    has_failed |= variant.failed() > 0;
    if (variant.claim) table.rows.push_back(claim_row(variant, result.variants[*result.baseline]));
  }
  if (table.rows.empty()) return std::nullopt;
  table.footnotes.push_back(fmt::format("Margin: {:.3g} {} (--margin).", 100 * result.margin,
                                        result.margin == 0.01 ? "point" : "points"));
  if (has_failed) table.footnotes.push_back("A seed whose training failed counts as guessing.");
  return table;
}

std::optional<std::string> text_about_claim(const analysis::Convergence& result) {
  if (!result.large || !result.variants[*result.large].claim) return std::nullopt;
  const Variant& large = result.variants[*result.large];
  const Claim& claim = *large.claim;
  const std::string batch = integer(large.cell->global_batch);
  const std::string seeds = seeds_text(large, result.variants[*result.baseline]);
  const std::string interval = fmt::format("{:+.2f} points [{:+.2f}, {:+.2f}], {} of seeds",
                                           100 * claim.difference, 100 * claim.low, 100 * claim.high, seeds);
  const double margin = 100 * claim.margin;
  switch (claim.verdict) {
    case ClaimVerdict::no_worse:
      return fmt::format("Batch {} is no worse than the baseline by more than {:.3g} points: {}.", batch,
                         margin, interval);
    case ClaimVerdict::worse_within_margin:
      return fmt::format("Batch {} is worse than the baseline, by less than {:.3g} points: {}.", batch,
                         margin, interval);
    case ClaimVerdict::worse:
      return fmt::format("Batch {} is worse than the baseline: {}.", batch, interval);
    case ClaimVerdict::not_decided:
      return fmt::format(
          "Whether batch {} is worse than the baseline by more than {:.3g} points is not decided: {}; about {} would "
          "decide (--repeats {}), if both are equal.",
          batch, margin, interval, counted(claim.seeds_needed, "seed"), claim.seeds_needed);
  }
  return std::nullopt;
}

}  // namespace paceline::report
