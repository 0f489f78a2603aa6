/// Checks ratios without workers, ratios against each other and those that the times give, claimed or not.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "check/ratios.h"
#include "check/rule.h"

namespace paceline::check {
namespace {

/// Possible baselines for a row with an unknown number of workers: the named one; otherwise, among rows of
/// the same model and kind of time, those with the fewest workers.
std::vector<std::size_t> possible_baselines(const Study& study, std::size_t i) {
  const auto& row = study.row(i);
  std::vector<std::size_t> found;
  double fewest = 1e300;
  for (std::size_t k = 0; k < study.size(); ++k) {
    const auto& other = study.row(k);
    if (k == i) continue;
    if (row.knows("baseline")) {
      if (other.text("run") == row.text("baseline")) found.push_back(k);
      continue;
    }
    if (other.text("model") != row.text("model") || other.text("time_of") != row.text("time_of") ||
        !differing_settings(row, other).empty())
      continue;
    const auto n = workers(other);
    if (!n && claimed_ratio(other)) continue;
    if (n.value_or(1) < fewest) found.clear();
    fewest = std::min(fewest, n.value_or(1));
    if (n.value_or(1) <= fewest) found.push_back(k);
  }
  return found;
}

/// "; with the efficiency of 0.92 these are 4 workers", if the row claims both ratios.
std::string implied_workers(const Row& row) {
  const auto s = row.value("claimed_speedup"), e = row.value("claimed_efficiency");
  if (!s || !e || *s <= 0 || *e <= 0) return "";
  return fmt::format("; with the efficiency of {} that would be {}", row.text("claimed_efficiency"),
                     shown(*s / *e * (*e > 2 ? 100 : 1)));
}

/// Finds ratios over a row that does not say on how many workers it ran.
void check_base_without_workers(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    const auto printed = claimed_ratio(row);
    if (!printed || printed->value == 1 || printed->value == 100 || !workers(row) || row.knows("nodes"))
      continue;
    if (!row.knows("baseline") && !study.baselines(i).empty()) continue;
    for (const auto k : possible_baselines(study, i)) {
      const auto& base = study.row(k);
      if (workers(base) || base.knows("nodes")) continue;
      findings.add(
          Severity::warning, {.rows = {i, k}, .printed = printed->text, .cause = "baseline"},
          fmt::format("printed a ratio of {} on {} workers over {}, which does not say on how many it "
                      "ran: no efficiency follows.",
                      printed->text, row.text("workers"), base.name()));
      break;
    }
  }
}

/// Checks rows with an unknown number of workers, for which no baseline can be found by that number.
void check_no_workers(const Study& study, Findings& findings) {
  check_base_without_workers(study, findings);
  for (const auto& [i, row] : study.rows()) {
    const auto printed = claimed_ratio(row);
    // Rows that count nodes scale over the number of nodes.
    if (!printed || workers(row) || row.knows("nodes")) continue;
    std::optional<Ratio> best;
    std::size_t baseline = i;
    for (const auto k : possible_baselines(study, i)) {
      const auto ratio = ratio_without_workers(row, study.row(k));
      if (ratio && (!best || ratio->value > best->value)) {
        best = ratio;
        baseline = k;
      }
    }
    if (!best) {
      findings.add(Severity::error, {{i}, printed->text},
                   fmt::format("printed {} for an unstated number of workers: it cannot be checked{}.",
                               printed->text, implied_workers(row)));
      continue;
    }
    const double least = std::max(1.0, std::ceil(best->interval.low * (1 - kFollows)));
    findings.add(
        Severity::error,
        {{i, baseline},
         printed->text,
         figure_of(best->value, with_noise(best->interval, noise(row), noise(study.row(baseline))))},
        fmt::format(
            "printed a ratio of {} for an unstated number of workers; {} = {}, which is not super-linear from {:.0f} "
            "workers on{}.",
            printed->text, best->how, shown(best->value), least, implied_workers(row)));
  }
}

void check_superlinear(const Study& study, Findings& findings) {
  const auto all = scaled_rows(study);
  std::vector<double> z;
  for (const auto& one : all) z.push_back(std::log(one.ratio.interval.low / one.scale) / one.error);
  findings.compared(all.size());
  const auto holds = holm(z);
  for (std::size_t c = 0; c < all.size(); ++c) {
    const auto& [i, k, ratio, scale, likely, error] = all[c];
    const auto &a = study.row(i), &b = study.row(k);
    if (!holds[c] || ratio.value < scale * (1 + noise(a) + noise(b))) continue;
    auto differs = differing_settings(a, b);
    for (const Column column :
         {Column("local_batch"), Column("global_batch"), Column("statistic"), Column("nodes")})
      if (a.knows(column) && b.knows(column) && a.text(column) != b.text(column))
        differs.emplace_back(column.name());
    findings.add(Severity::warning, {{i, k}, "", figure_of(ratio.value, likely)},
                 fmt::format("{} = {} on {} times the workers is super-linear; {}.", ratio.how,
                             shown(ratio.value), shown(scale),
                             differs.empty()
                                 ? "caches can do that, and so can a baseline that was measured badly"
                                 : fmt::format("the two rows also differ in {}", fmt::join(differs, ", "))));
  }
}

/// How many times the workers of what the claims of row `i` may refer to: its baseline, or one ideal worker
/// that is not in the table. The baseline's own claim may say which.
std::vector<double> growths(const Study& study, std::size_t i) {
  const auto n = workers(study.row(i));
  if (!n) return {};
  const auto is_one = [](const Row& row) { return row.value("claimed_speedup").value_or(1) == 1; };
  if (study.baselines(i).empty()) {
    if (is_one(study.row(i)) || study.row(i).knows("baseline")) return {};
    std::vector<double> all{*n};
    for (const auto k : study.of_other_settings(i))
      if (const auto n0 = workers(study.row(k))) all.push_back(*n / *n0);
    return all;
  }
  const auto& base = study.row(study.baselines(i).front());
  if (!workers(base)) return {};
  if (base.knows("claimed_speedup")) return {is_one(base) ? *n / *workers(base) : *n};
  return *workers(base) == 1 ? std::vector{*n} : std::vector{*n / *workers(base), *n};
}

/// Whether the times or rates of the row give the ratio to its baseline, so that other rules check the
/// claims.
bool has_computed_ratio(const Study& study, std::size_t i) {
  return std::ranges::any_of(study.baselines(i),
                             [&](std::size_t k) { return !speedups(study.row(i), study.row(k)).empty(); });
}

/// Claims of one row against each other, where no times are there to hold them against.
void check_claims(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    const auto speedup = row.number("claimed_speedup");
    const auto scales = growths(study, i);
    if (!speedup || scales.empty() || scales.front() <= 1) continue;
    const double scale = scales.front();
    const auto efficiency = row.number("claimed_efficiency");
    findings.compared();
    if (has_computed_ratio(study, i)) continue;  // the other rules hold both against the times
    const auto expected = times(interval_of(*speedup), 1 / scale);
    // One of the two may be in per cent.
    const bool follows = !efficiency || std::ranges::any_of(scales, [&](double one) {
      return std::ranges::any_of(std::array{1.0, 100.0, 0.01}, [&](double factor) {
        return meets(*efficiency, times(interval_of(*speedup), factor / one), kFollows);
      });
    });
    if (!follows) {
      const double factor = efficiency->value > 2 && speedup->value / scale <= 2 ? 100 : 1;
      findings.add(
          Severity::error,
          {.rows = {i},
           .printed = efficiency->text,
           .corrected = figure_of(factor * speedup->value / scale, times(expected, factor)),
           .cause = "efficiency"},
          fmt::format("an efficiency of {} does not follow from the speedup {} on {} times the workers, "
                      "which is {}.",
                      efficiency->text, speedup->text, shown(scale), shown(factor * speedup->value / scale)));
    }
    if (interval_of(*speedup).low > *std::ranges::max_element(scales) * (1 + kFollows))
      findings.add(
          Severity::warning, {.rows = {i}, .printed = speedup->text, .cause = "super-linear"},
          fmt::format("a speedup of {} on {} times the workers is super-linear, and the table has no "
                      "times to show it.",
                      speedup->text, shown(scale)));
  }
}

/// Says the ratios of a table that claims none: of rows with more workers than their baseline, one ratio
/// each.
void check_unclaimed(const Study& study, Findings& findings) {
  constexpr std::size_t kShown = 6;
  std::vector<std::size_t> rows;
  std::string said;
  for (const auto& [i, row] : study.rows())
    if (claimed_ratio(row)) return;
  for (const auto& one : scaled_rows(study)) {
    rows.push_back(one.row);
    if (rows.size() > kShown) continue;
    said += fmt::format("{}{} on {} ({})", said.empty() ? "" : ", ", shown(one.ratio.value),
                        study.row(one.row).text("workers"), shown(one.ratio.value / one.scale));
  }
  if (rows.empty()) return;
  findings.add(Severity::note, {.rows = rows, .is_of_all = true},
               fmt::format("no speedup is claimed; the {} give these, with the efficiency behind each: {}{}.",
                           study.row(rows.front()).knows("time_s") ? "times" : "rates", said,
                           rows.size() > kShown ? " ..." : ""));
}

constexpr Rule kRatioRules[] = {
    {"ratio.no-workers", Severity::error, "claimed_speedup|claimed_efficiency",
     "a ratio for an unstated number of workers", check_no_workers, "claimed_speedup"},
    {"ratio.claims", Severity::error, "claimed_speedup workers",
     "a speedup and an efficiency of one row that contradict each other", check_claims, "claimed_efficiency",
     "a speedup on more workers than the fewest"},
    {"ratio.superlinear", Severity::warning, "workers time_s|rate_per_s", "faster than the workers allow",
     check_superlinear, "", kTwoRows},
    {"ratio.unclaimed", Severity::note, "workers time_s|rate_per_s", "the ratios of a table that claims none",
     check_unclaimed},
};

}  // namespace

std::string why_no_ratio(const Study& study) {
  bool has_times = false, says_of_what = false;
  for (const auto& [i, row] : study.rows()) {
    if (has_computed_ratio(study, i)) return "";
    has_times = has_times || row.knows("time_s");
    says_of_what = says_of_what || row.knows("time_of");
  }
  return has_times && !says_of_what ? "column time_of (step, epoch or run: what time_s is the time of)"
                                    : "two rows whose times or rates can be compared";
}

std::span<const Rule> ratio_rules() { return kRatioRules; }

}  // namespace paceline::check
