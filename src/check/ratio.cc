/// Checks speedups and efficiencies against the times or rates in the same table.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "check/ratios.h"
#include "check/rule.h"

namespace paceline::check {
namespace {

constexpr std::string_view kInPerCent = ", in per cent";

struct RatioColumn {
  Column column;
  bool is_efficiency;
};

/// The claim of one row and the ratio to its baselines that it is checked against.
struct RatioClaim {
  Claim claim;
  Ratio ratio;  ///< to the first baseline
  std::size_t baseline = 0;
};

/// The sentence about an efficiency that equals the right speedup. Either it was not divided by `scale`; or
/// the row's own speedup is `scale` times too large and was divided. Then both findings have one cause.
std::string text_about_undivided(const table::Number& efficiency, double scale,
                                 const std::optional<table::Number>& speedup) {
  if (speedup && meets(efficiency, times(interval_of(*speedup), 1 / scale), kFollows))
    return fmt::format("{} is {} / {}: a consequence of that speedup, which is {} times too large",
                       efficiency.text, speedup->text, shown(scale), shown(scale));
  return fmt::format("{} is the speedup, not divided by {}", efficiency.text, shown(scale));
}

/// `speedup`: the speedup that the same row claims, if it does.
void add_wrong_forms(RatioClaim& one, double scale, bool is_efficiency,
                     const std::optional<table::Number>& speedup) {
  const double s = one.ratio.value;
  const auto& printed = one.claim.printed.text;
  const auto interval = one.ratio.interval;
  auto& wrong = one.claim.wrong;
  const auto shown_s = shown(s);
  // The ratio of the times alone, if they are of different numbers of images.
  if (!one.ratio.of_fixed_data && one.ratio.images > 0) {
    const auto bare = times(interval, 1 / one.ratio.images / (is_efficiency ? scale : 1));
    const double of_images = one.ratio.images;
    if (std::abs(of_images - scale) > kApart * scale)
      wrong.push_back(
          {"other images", bare,
           fmt::format("{} is the ratio of the times alone, but the two are of other numbers of images, "
                       "{} times as many",
                       printed, shown(of_images))});
  }
  if (is_efficiency) {
    const double e = s / scale;
    wrong.push_back({"speedup", interval, text_about_undivided(one.claim.printed, scale, speedup)});
    wrong.push_back({"times N", times(interval, scale),
                     fmt::format("{} is {} x {}: the number of workers was multiplied with once too often",
                                 printed, shown(scale), shown_s)});
    wrong.push_back({"over N", times(interval, 1 / scale / scale),
                     fmt::format("{} is {} / {}: it was divided by the number of workers twice", printed,
                                 shown(e), shown(scale))});
    wrong.push_back(
        {"inverted", divided(exactly_one(scale), interval), fmt::format("{} is its inverse", printed)});
    wrong.push_back({"part saved",
                     {1 - 1 / (interval.low / scale), 1 - 1 / (interval.high / scale)},
                     fmt::format("{} is 1 - 1 / {}", printed, shown(e))});
    wrong.push_back({"time saved",
                     {1 - 1 / interval.low, 1 - 1 / interval.high},
                     fmt::format("{} is 1 - 1 / {}: the part of the time that is saved", printed, shown_s)});
    return;
  }
  wrong.push_back(
      {"times N", times(interval, scale),
       fmt::format(
           "{} is {} times the {}, {}: {}", printed, shown(scale),
           one.ratio.images > 0 ? "ratio of the times" : "ratio of the rates", shown_s,
           one.ratio.of_fixed_data
               ? "the time of an epoch over fixed data already contains the 1/N, so it must not be multiplied with the number of workers"
               : "the number of workers is in the ratio already")});
  wrong.push_back(
      {"over N", times(interval, 1 / scale),
       fmt::format("{} is {} / {}: an efficiency, not a speedup", printed, shown_s, shown(scale))});
  wrong.push_back(
      {"inverted", divided(exactly_one(1), interval),
       fmt::format("{} is 1 / {}: the times were divided the wrong way round", printed, shown_s)});
  wrong.push_back({"time saved",
                   {1 - 1 / interval.low, 1 - 1 / interval.high},
                   fmt::format("{} is 1 - 1 / {}: the part of the time that is saved", printed, shown_s)});
}

/// Adds the same ratio for other rows: another baseline with the same number of workers, or another row with
/// the same number as this one.
void add_other_pairs(const Study& study, RatioClaim& one, bool is_efficiency, double scale) {
  constexpr std::size_t kMost = 16;
  const std::size_t i = one.claim.row;
  const auto& baselines = study.baselines(i);
  std::size_t tried = 0;
  // With two digits only, some pair would match by chance.
  if (2 * one.claim.printed.half_unit > kExplains * one.claim.printed.value) return;
  const double n0 = *workers(study.row(one.baseline)), n = *workers(study.row(i));
  // In the order of the table, whichever of the two rows is replaced.
  const auto &first = study.with_workers(n0, study.row(i)), &second = study.with_workers(n, study.row(i));
  auto a_first = first.begin(), a_second = n == n0 ? second.end() : second.begin();
  while (tried < kMost && (a_first != first.end() || a_second != second.end())) {
    const bool replaces_baseline =
        a_second == second.end() || (a_first != first.end() && *a_first < *a_second);
    const std::size_t k = replaces_baseline ? *a_first++ : *a_second++;
    if (k == i || std::ranges::find(baselines, k) != baselines.end()) continue;
    ++tried;
    const auto& a = replaces_baseline ? study.row(i) : study.row(k);
    const auto& b = replaces_baseline ? study.row(k) : study.row(one.baseline);
    for (const auto& ratio : speedups(a, b)) {
      const auto value = is_efficiency ? times(ratio.interval, 1 / scale) : ratio.interval;
      one.claim.wrong.push_back(
          {fmt::format("pair with {}", study.row(k).name()), value,
           fmt::format("{} is of other rows: {} with {} instead of {}", one.claim.printed.text, ratio.how,
                       study.row(k).name(), study.row(replaces_baseline ? one.baseline : i).name())});
    }
  }
}

/// The row with the next fewer workers that ran the same, if that is not the baseline itself.
std::optional<std::size_t> previous_of(const Study& study, std::size_t i, std::size_t baseline) {
  const double n0 = *workers(study.row(baseline)), n = *workers(study.row(i));
  std::optional<std::size_t> found;
  for (std::size_t k = 0; k < study.size(); ++k) {
    const auto many = workers(study.row(k));
    if (!many || *many <= n0 || *many >= n || (found && *many <= *workers(study.row(*found)))) continue;
    if (study.baselines(k).empty() || study.baselines(k).front() != baseline) continue;
    found = k;
  }
  return found;
}

/// Adds the ratio to the row with the next fewer workers, and its inverse: a chain read as ratios to one
/// baseline.
void add_over_previous(const Study& study, RatioClaim& one) {
  const auto k = previous_of(study, one.claim.row, one.baseline);
  if (!k) return;
  const auto ratios = speedups(study.row(one.claim.row), study.row(*k));
  if (ratios.size() != 1) return;
  const auto& printed = one.claim.printed.text;
  const auto name = study.row(*k).name();
  one.claim.wrong.push_back({"over previous", ratios.front().interval,
                             fmt::format("{} is {}: over {}, not over {}", printed, ratios.front().how, name,
                                         study.row(one.baseline).name())});
  one.claim.wrong.push_back({"inverted, over previous", divided(exactly_one(1), ratios.front().interval),
                             fmt::format("{} is 1 / {} of {}: over {} and the wrong way round", printed,
                                         shown(ratios.front().value), ratios.front().how, name)});
}

/// The baseline's own claim, if it shows that the other claims do not refer to this baseline: it is neither
/// 1, nor its number of workers, nor 100 %.
std::optional<table::Number> claim_of_baseline(const Study& study, std::size_t i, std::size_t baseline,
                                               const RatioColumn& of) {
  if (study.row(i).knows("baseline")) return std::nullopt;
  const auto own = study.row(baseline).number(of.column);
  if (!own || own->value <= 0) return std::nullopt;
  const double neutral = of.is_efficiency ? 100 : *workers(study.row(baseline));
  if (meets(*own, exactly_one(1), kFollows) || meets(*own, exactly_one(neutral), kFollows))
    return std::nullopt;
  return own;
}

std::optional<RatioClaim> ratio_claim(const Study& study, std::size_t i, const RatioColumn& of) {
  const auto printed = study.row(i).number(of.column);
  const auto& baselines = study.baselines(i);
  if (!printed || baselines.empty() || !workers(study.row(i)) || !workers(study.row(baselines.front())))
    return {};
  RatioClaim one{.claim = {.row = i, .printed = *printed}, .baseline = baselines.front()};
  const double scale = *workers(study.row(i)) / *workers(study.row(one.baseline));
  bool has_computed_ratio = false;
  for (const auto k : baselines)
    for (const auto& ratio : speedups(study.row(i), study.row(k))) {
      if (!has_computed_ratio) one.ratio = ratio;
      if (!has_computed_ratio) one.baseline = k;
      has_computed_ratio = true;
      const auto value = of.is_efficiency ? times(ratio.interval, 1 / scale) : ratio.interval;
      one.claim.right.push_back(value);
      if (of.is_efficiency) one.claim.right.push_back(times(value, 100));  // in per cent
    }
  if (!has_computed_ratio) return {};
  if (const auto own = claim_of_baseline(study, i, one.baseline, of)) {
    // A baseline with a claim of its own is one link of a chain; the baseline at the chain's end is not in
    // the table.
    one.ratio.interval = times(one.ratio.interval, interval_of(*own));
    one.ratio.value *= own->value;
    one.ratio.how = fmt::format("{} x {}", own->text, one.ratio.how);
    one.claim.right = {times(one.ratio.interval, of.is_efficiency ? 1 / scale : 1)};
    return one;
  }
  if (follows(one.claim)) return one;
  // The claim refers to rows of another set-up: the rule compare.settings reports that.
  if (baseline_of(study, i, study.of_other_settings(i), one.claim.printed, of.is_efficiency)) return {};
  add_wrong_forms(one, scale, of.is_efficiency, study.row(i).number("claimed_speedup"));
  add_other_pairs(study, one, of.is_efficiency, scale);
  if (!of.is_efficiency) add_over_previous(study, one);
  if (of.is_efficiency)
    for (std::size_t k = 0, all = one.claim.wrong.size(); k < all; ++k) {
      auto form = one.claim.wrong[k];
      form.id += kInPerCent;
      form.value = times(form.value, 100);
      one.claim.wrong.push_back(std::move(form));
    }
  return one;
}

/// If the baseline has N0 > 1 workers, speedups may refer to an ideal single worker; all are then N0 times as
/// large. That is accepted if the baseline itself says so, or if several numbers of workers agree on it.
void allow_ideal_baseline(const Study& study, std::vector<RatioClaim>& all) {
  std::set<double> numbers;
  bool is_said = true;
  for (const auto& one : all) {
    const auto& base = study.row(one.baseline);
    const double n0 = *workers(base);
    const auto own = base.number("claimed_speedup");
    if (n0 <= 1 || (own && !meets(*own, exactly_one(n0), kFollows))) return;
    is_said = is_said && own.has_value();
    if (!meets(one.claim.printed, times(one.claim.right.front(), n0), kFollows)) return;
    numbers.insert(*workers(study.row(one.claim.row)));
  }
  if (!is_said && numbers.size() < 2) return;
  for (auto& one : all)
    one.claim.right.push_back(times(one.claim.right.front(), *workers(study.row(one.baseline))));
}

/// Whether the column is in per cent: more claims follow if read as per cent than if read as parts of 1.
bool is_in_per_cent(const std::vector<Claim>& claims) {
  int as_part = 0, in_per_cent = 0;
  for (const auto& claim : claims)
    for (std::size_t k = 0; k < claim.right.size(); ++k)
      if (meets(claim.printed, claim.right[k], kFollows)) ++(k % 2 == 0 ? as_part : in_per_cent);
  return in_per_cent > as_part;
}

/// The ratios of a row that are taken for its speedup: to the baseline, to the row with the next fewer
/// workers, and both inverted.
std::vector<Interval> mistaken_for_speedup(const Study& study, const RatioClaim& one) {
  std::vector<Interval> all{one.ratio.interval};
  if (const auto k = previous_of(study, one.claim.row, one.baseline))
    for (const auto& ratio : speedups(study.row(one.claim.row), study.row(*k))) all.push_back(ratio.interval);
  for (std::size_t k = 0, n = all.size(); k < n; ++k) all.push_back(divided(exactly_one(1), all[k]));
  return all;
}

/// For each claim the one with which it was exchanged: each of the two is a ratio of the other's row.
std::vector<std::optional<std::size_t>> exchanged(const Study& study, const std::vector<RatioClaim>& all,
                                                  const std::vector<Judgement>& judgements) {
  std::vector<std::optional<std::size_t>> with(all.size());
  std::vector<std::size_t> wrong;
  constexpr std::size_t kMost = 32;
  for (std::size_t k = 0; k < all.size() && wrong.size() < kMost; ++k)
    if (judgements[k].word == Judgement::Word::unexplained) wrong.push_back(k);
  const auto is_of = [&](const RatioClaim& printed, const RatioClaim& row) {
    return std::ranges::any_of(mistaken_for_speedup(study, row), [&](const Interval& ratio) {
      return meets(printed.claim.printed, ratio, kExplains);
    });
  };
  for (std::size_t x = 0; x < wrong.size(); ++x)
    for (std::size_t y = x + 1; y < wrong.size(); ++y) {
      const auto &a = all[wrong[x]], &b = all[wrong[y]];
      if (with[wrong[x]] || with[wrong[y]] || !is_of(a, b) || !is_of(b, a)) continue;
      with[wrong[x]] = wrong[y];
      with[wrong[y]] = wrong[x];
    }
  return with;
}

void check_ratio(const Study& study, Findings& findings, const RatioColumn& of) {
  std::vector<RatioClaim> all;
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < study.size(); ++i)
    if (auto one = ratio_claim(study, i, of)) all.push_back(std::move(*one));
  if (!of.is_efficiency) allow_ideal_baseline(study, all);
  for (const auto& one : all) claims.push_back(one.claim);
  findings.compared(claims.size());
  const auto judgements = judge(claims);
  const auto with = of.is_efficiency ? std::vector<std::optional<std::size_t>>(all.size())
                                     : exchanged(study, all, judgements);
  const bool in_per_cent = of.is_efficiency && is_in_per_cent(claims);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto& [claim, ratio, baseline] = all[k];
    if (judgements[k].word == Judgement::Word::follows) continue;
    const bool is_explained = judgements[k].word == Judgement::Word::explained;
    const auto& row = study.row(claim.row);
    const double scale = of.is_efficiency ? *workers(row) / *workers(study.row(baseline)) : 1;
    const bool per_cent =
        of.is_efficiency && (in_per_cent || (is_explained && judgements[k].form->id.ends_with(kInPerCent)));
    const double unit = per_cent ? 100 : 1;
    const auto right =
        times(with_noise(ratio.interval, noise(row), noise(study.row(baseline))), unit / scale);
    const auto how = of.is_efficiency ? fmt::format("{} / {}", ratio.how, shown(scale)) : ratio.how;
    const std::string swapped =
        with[k] ? fmt::format("{} and {} of {} are exchanged: each is a ratio of the other's times",
                              claim.printed.text, all[*with[k]].claim.printed.text,
                              study.row(all[*with[k]].claim.row).name())
                : "";
    findings.add(is_explained || with[k] ? Severity::error : Severity::warning,
                 {.rows = {claim.row, baseline},
                  .printed = claim.printed.text,
                  .corrected = figure_of(unit * ratio.value / scale, right),
                  .cause = with[k]        ? "exchanged"
                           : is_explained ? judgements[k].form->id
                                          : "unexplained"},
                 fmt::format("printed {} of {} over {} with {} times the workers; the {} give {} = {}{}. {}.",
                             of.is_efficiency ? "an efficiency" : "a speedup", claim.printed.text,
                             study.row(baseline).name(), shown(*workers(row) / *workers(study.row(baseline))),
                             ratio.images > 0 ? "times" : "rates", how, shown(unit * ratio.value / scale),
                             per_cent ? " %" : "",
                             with[k]        ? swapped
                             : is_explained ? judgements[k].form->sentence
                                            : "The printed figure does not follow from it"));
  }
}

void check_speedup(const Study& study, Findings& findings) {
  check_ratio(study, findings, {Column("claimed_speedup"), false});
}

void check_efficiency(const Study& study, Findings& findings) {
  check_ratio(study, findings, {Column("claimed_efficiency"), true});
}

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
    if (!n && (other.knows("claimed_speedup") || other.knows("claimed_efficiency"))) continue;
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
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    const auto printed =
        row.knows("claimed_speedup") ? row.number("claimed_speedup") : row.number("claimed_efficiency");
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
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    const auto printed =
        row.knows("claimed_speedup") ? row.number("claimed_speedup") : row.number("claimed_efficiency");
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
  struct Cell {
    std::size_t row, baseline;
    Ratio ratio;
    double scale, error;
  };
  std::vector<Cell> cells;
  std::vector<double> z;
  for (std::size_t i = 0; i < study.size(); ++i) {
    if (study.baselines(i).empty()) continue;
    const auto k = study.baselines(i).front();
    const auto ratios = speedups(study.row(i), study.row(k));
    if (ratios.size() != 1 || !workers(study.row(i)) || !workers(study.row(k))) continue;
    const double scale = *workers(study.row(i)) / *workers(study.row(k));
    if (scale <= 1)
      continue;  // same number of workers: another device or program may be any number of times as fast
    const double error = std::hypot(noise(study.row(i)), noise(study.row(k))) / 1.96;
    cells.push_back({i, k, ratios.front(), scale, error});
    z.push_back(std::log(ratios.front().interval.low / scale) / std::max(error, 1e-9));
  }
  findings.compared(cells.size());
  const auto holds = holm(z);
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const auto& [i, k, ratio, scale, error] = cells[c];
    if (!holds[c] || ratio.value < scale * (1 + noise(study.row(i)) + noise(study.row(k)))) continue;
    const auto& a = study.row(i);
    const auto& b = study.row(k);
    auto differs = differing_settings(a, b);
    for (const Column column :
         {Column("local_batch"), Column("global_batch"), Column("statistic"), Column("nodes")})
      if (a.knows(column) && b.knows(column) && a.text(column) != b.text(column))
        differs.emplace_back(column.name());
    findings.add(Severity::warning,
                 {{i, k}, "", figure_of(ratio.value, with_noise(ratio.interval, noise(a), noise(b)))},
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
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto speedup = study.row(i).number(Column("claimed_speedup"));
    const auto scales = growths(study, i);
    if (!speedup || scales.empty() || scales.front() <= 1) continue;
    const double scale = scales.front();
    const auto efficiency = study.row(i).number(Column("claimed_efficiency"));
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
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    if (row.knows("claimed_speedup") || row.knows("claimed_efficiency")) return;
    if (study.baselines(i).empty()) continue;
    const auto& base = study.row(study.baselines(i).front());
    const auto ratios = speedups(row, base);
    if (ratios.size() != 1 || !workers(row) || !workers(base) || *workers(row) <= *workers(base)) continue;
    rows.push_back(i);
    if (rows.size() > kShown) continue;
    said += fmt::format("{}{} on {} ({})", said.empty() ? "" : ", ", shown(ratios.front().value),
                        row.text("workers"), shown(ratios.front().value / *workers(row) * *workers(base)));
  }
  if (rows.empty()) return;
  findings.add(Severity::note, {.rows = rows, .is_of_all = true},
               fmt::format("no speedup is claimed; the {} give these, with the efficiency behind each: {}{}.",
                           study.row(rows.front()).knows("time_s") ? "times" : "rates", said,
                           rows.size() > kShown ? " ..." : ""));
}

constexpr std::string_view kTwoRows = "two rows of one set-up whose times or rates can be compared";

constexpr Rule kRatioRules[] = {
    {"ratio.speedup", Severity::error, "claimed_speedup workers time_s|rate_per_s",
     "a speedup that does not follow from its times", check_speedup, "time_of time_s", kTwoRows},
    {"ratio.efficiency", Severity::error, "claimed_efficiency workers time_s|rate_per_s",
     "an efficiency that does not follow from its times", check_efficiency, "", kTwoRows},
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
  for (std::size_t i = 0; i < study.size(); ++i) {
    if (has_computed_ratio(study, i)) return "";
    has_times = has_times || study.row(i).knows(Column("time_s"));
    says_of_what = says_of_what || study.row(i).knows(Column("time_of"));
  }
  return has_times && !says_of_what ? "column time_of (step, epoch or run: what time_s is the time of)"
                                    : "two rows whose times or rates can be compared";
}

std::span<const Rule> ratio_rules() { return kRatioRules; }

}  // namespace paceline::check
