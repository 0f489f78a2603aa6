/// Checks claimed speedups and efficiencies against the times or rates in the same table.

#include <fmt/format.h>

#include <algorithm>
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
  } else {
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
  }
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

/// The baseline's own claim, if the other claims need not refer to this baseline.
struct ClaimOfBaseline {
  table::Number number;
  bool is_surely_other;  ///< they do not: it is neither 1, nor its number of workers, nor 100 %
};

std::optional<ClaimOfBaseline> claim_of_baseline(const Study& study, std::size_t i, std::size_t baseline,
                                                 const RatioColumn& of) {
  if (study.row(i).knows("baseline")) return std::nullopt;
  const auto own = study.row(baseline).number(of.column);
  if (!own || own->value <= 0) return std::nullopt;
  const double neutral = of.is_efficiency ? 100 : *workers(study.row(baseline));
  if (own->value == 1 || own->value == neutral) return std::nullopt;
  // "1.9" of 2 workers may be a 2, or what was measured over one worker.
  const bool is_near = meets(*own, exactly_one(1), kFollows) || meets(*own, exactly_one(neutral), kFollows);
  return ClaimOfBaseline{*own, !is_near};
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
    auto chained = one;
    const auto& [number, is_surely_other] = *own;
    chained.ratio.interval = times(one.ratio.interval, interval_of(number));
    chained.ratio.value *= number.value;
    chained.ratio.how = fmt::format("{} x {}", number.text, one.ratio.how);
    const auto right = times(chained.ratio.interval, of.is_efficiency ? 1 / scale : 1);
    chained.claim.right = {right};
    if (is_surely_other) return chained;
    // In a column of efficiencies every second one is in per cent.
    const double unit = of.is_efficiency && number.value > 2 ? 0.01 : 1;
    one.claim.right.push_back(times(right, unit));
    if (of.is_efficiency) one.claim.right.push_back(times(right, 100 * unit));
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
    if (!judgements[k].follows && judgements[k].form == nullptr) wrong.push_back(k);
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
    if (judgements[k].follows) continue;
    const auto* form = judgements[k].form;
    const auto& row = study.row(claim.row);
    const double scale = of.is_efficiency ? *workers(row) / *workers(study.row(baseline)) : 1;
    const bool per_cent =
        of.is_efficiency && (in_per_cent || (form != nullptr && form->id.ends_with(kInPerCent)));
    const double unit = per_cent ? 100 : 1;
    const auto right =
        times(with_noise(ratio.interval, noise(row), noise(study.row(baseline))), unit / scale);
    const auto how = of.is_efficiency ? fmt::format("{} / {}", ratio.how, shown(scale)) : ratio.how;
    const std::string swapped =
        with[k] ? fmt::format("{} and {} of {} are exchanged: each is a ratio of the other's times",
                              claim.printed.text, all[*with[k]].claim.printed.text,
                              study.row(all[*with[k]].claim.row).name())
                : "";
    findings.add(form != nullptr || with[k] ? Severity::error : Severity::warning,
                 {.rows = {claim.row, baseline},
                  .printed = claim.printed.text,
                  .corrected = figure_of(unit * ratio.value / scale, right),
                  .cause = with[k] ? "exchanged" : judgements[k].cause()},
                 fmt::format("printed {} of {} over {} with {} times the workers; the {} give {} = {}{}. {}.",
                             of.is_efficiency ? "an efficiency" : "a speedup", claim.printed.text,
                             study.row(baseline).name(), shown(*workers(row) / *workers(study.row(baseline))),
                             ratio.images > 0 ? "times" : "rates", how, shown(unit * ratio.value / scale),
                             per_cent ? " %" : "",
                             with[k]           ? swapped
                             : form != nullptr ? form->sentence
                                               : "The printed figure does not follow from it"));
  }
}

void check_speedup(const Study& study, Findings& findings) {
  check_ratio(study, findings, {Column("claimed_speedup"), false});
}

void check_efficiency(const Study& study, Findings& findings) {
  check_ratio(study, findings, {Column("claimed_efficiency"), true});
}

constexpr Rule kClaimRules[] = {
    {"ratio.speedup", Severity::error, "claimed_speedup workers time_s|rate_per_s",
     "a speedup that does not follow from its times", check_speedup, "time_of time_s", kTwoRows},
    {"ratio.efficiency", Severity::error, "claimed_efficiency workers time_s|rate_per_s",
     "an efficiency that does not follow from its times", check_efficiency, "", kTwoRows},
};

}  // namespace

std::span<const Rule> claim_rules() { return kClaimRules; }

}  // namespace paceline::check
