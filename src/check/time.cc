/// Checks the parts of a time against the time, and times against rates and against what a device can do.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/text.h"
#include "check/ratios.h"
#include "check/rule.h"

namespace paceline::check {
namespace {

constexpr std::array kParts{Column("compute_s"), Column("communication_s"), Column("data_wait_s"),
                            Column("update_s"), Column("other_s")};

/// Whether these are steps with the same local batch (weak scaling): ideally they take equally long on any
/// number of workers.
bool is_weak_step(const Row& row, const Row& base) {
  return row.text("time_of") == "step" && row.text("scaling") != "strong" &&
         local_batch(row) == local_batch(base);
}

/// A communication that is the `whole` of its row without the ideal share of `share` of another row.
struct Residual {
  Column whole, share;
  std::size_t base = 0;
};

/// The columns from which such differences are taken; the first is the most usual.
constexpr std::pair<Column, Column> kResiduals[] = {{Column("time_s"), Column("time_s")},
                                                    {Column("compute_s"), Column("compute_s")},
                                                    {Column("compute_s"), Column("time_s")},
                                                    {Column("time_s"), Column("compute_s")}};

constexpr double kPartsAddUp = 0.01;

/// Rows that are searched for the one whose share was taken off.
constexpr std::size_t kSearched = 256;

/// Whether row `k` may be the one whose share is taken off row `i`: the same model, kind of time and batch on
/// fewer workers.
bool is_base(const Study& study, std::size_t i, std::size_t k) {
  const auto &row = study.row(i), &base = study.row(k);
  if (!workers(row) || !workers(base) || *workers(base) >= *workers(row)) return false;
  if (row.text("time_of") != base.text("time_of") || row.text("model") != base.text("model")) return false;
  if (base.value("communication_s").value_or(0) > 0) return false;  // then its time is not ideal
  const auto differ = [](std::optional<double> a, std::optional<double> b) { return a && b && *a != *b; };
  return !differ(local_batch(row), local_batch(base)) || !differ(global_batch(row), global_batch(base));
}

/// Whether the printed communication is whole - share / (N / N0), to its digits; the share is not divided
/// where both are steps of one local batch.
bool is_difference(const Study& study, std::size_t i, const Residual& of) {
  const auto &row = study.row(i), &base = study.row(of.base);
  const auto printed = row.number("communication_s"), whole = row.number(of.whole),
             share = base.number(of.share);
  if (!printed || !whole || !share || printed->value <= 0) return false;
  const auto ideal = times(interval_of(*share), is_weak_step(row, base) ? 1 : *workers(base) / *workers(row));
  const auto all = interval_of(*whole);
  const Interval residual{all.low - ideal.high, all.high - ideal.low};
  const double slack = (residual.high - residual.low) / 2 + 2 * printed->half_unit;
  // Parts that were measured add up to the time, and computing may scale as it ideally does.
  const auto compute = row.value("compute_s"), time = row.value("time_s");
  if (of.whole != of.share && compute && time &&
      std::abs(*compute + printed->value - *time) <= kPartsAddUp * *time)
    return false;
  // The digits leave a small difference of large numbers too uncertain: it would be matched by chance. More
  // so where the row is not the baseline, of which there is one, but any other.
  const bool is_baseline = !study.baselines(i).empty() && study.baselines(i).front() == of.base;
  const double undecided = is_baseline && of.whole == of.share ? 0.1 : 0.02;
  if (slack > undecided * printed->value) return false;
  return std::abs(printed->value - residual.middle()) <= std::max(slack, 1e-3 * printed->value);
}

/// The first row whose share gives the communication of row `i`: its baseline, or another one.
std::optional<Residual> residual_of(const Study& study, std::size_t i, Column whole, Column share) {
  if (!study.row(i).knows("communication_s") || !study.row(i).knows(whole)) return std::nullopt;
  if (!study.baselines(i).empty()) {
    const Residual one{whole, share, study.baselines(i).front()};
    if (is_base(study, i, one.base) && is_difference(study, i, one)) return one;
  }
  for (std::size_t k = 0; k < std::min(study.size(), kSearched); ++k)
    if (const Residual one{whole, share, k}; is_base(study, i, k) && is_difference(study, i, one)) return one;
  return std::nullopt;
}

void check_sum_of_parts(const Study& study, Findings& findings) {
  constexpr double kClosure = 0.01;
  for (const auto& [i, row] : study.rows()) {
    const auto whole = row.number("time_s");
    const auto& is = row.text("communication_is");
    if (!whole || whole->value <= 0 || is == "total") continue;
    double sum = 0, rounding = whole->half_unit;
    std::vector<std::string> terms;
    for (const auto column : kParts) {
      const auto part = row.number(column);
      if (!part) continue;
      sum += part->value;
      rounding += part->half_unit;
      terms.push_back(part->text);
    }
    const double excess = sum - whole->value;
    if (terms.size() < 2) continue;
    findings.compared();
    if (excess <= kClosure * whole->value + rounding) continue;
    const auto communication = row.number("communication_s");
    const auto compute = row.number("compute_s");
    const bool is_found = is_residual(study, i), is_stated = is == "exposed" || is == "residual";
    std::string why = "parts that do not overlap cannot be longer than the whole";
    if (communication && compute && (is == "residual" || is_found))
      why = fmt::format(
          "the communication of {} is what {} workers take longer than the share of one, which the compute "
          "contains already; compute is what the time leaves beside the communication and the other parts",
          communication->text, row.text("workers"));
    else if (!is_stated)
      why = "the communication may hide behind the compute: say whether it is exposed or total";
    std::optional<Figure> corrected;
    std::string printed = fmt::format("{:.6g}", sum);
    if (communication && compute) {
      const double right = compute->value - excess;
      const double half = rounding + kClosure * whole->value;
      corrected = Figure{right, right - half, right + half};
      printed = compute->text;
      if (right > 0 && (is_stated || is_found))
        why += fmt::format("; if time and communication are right, compute is {:.4g}", right);
      else if (right > 0)
        why += fmt::format("; if it is exposed, compute is {:.4g}; if it is a total, {:.4g} of it are hidden",
                           right, excess);
    }
    findings.add(
        is_stated || is_found ? Severity::error : Severity::warning,
        {.rows = {i}, .printed = printed, .corrected = corrected, .cause = is_found ? "residual" : is},
        fmt::format("the parts {} = {:.4g} exceed the time of {} by {:.1f} %: {}.",
                    base::joined(terms, " + "), sum, whole->text, 100 * excess / whole->value, why));
  }
}

void check_residual(const Study& study, Findings& findings) {
  std::array<std::vector<std::pair<std::size_t, Residual>>, std::size(kResiduals)> found;
  std::size_t candidates = 0;
  for (const auto& [i, row] : study.rows()) {
    if (row.value("communication_s").value_or(0) <= 0 || row.text("communication_is") == "residual") continue;
    bool has_base = false;
    for (std::size_t k = 0; k < std::min(study.size(), kSearched) && !has_base; ++k)
      has_base = is_base(study, i, k);
    if (!has_base) continue;
    ++candidates;
    for (std::size_t form = 0; form < found.size(); ++form)
      if (const auto one = residual_of(study, i, kResiduals[form].first, kResiduals[form].second))
        found[form].emplace_back(i, *one);
  }
  findings.compared(candidates);
  const auto& rows =
      *std::ranges::max_element(found, [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (candidates == 0 || rows.size() < candidates) return;
  std::set<std::size_t> limited;
  for (const auto& ceiling : input_ceilings(study))
    if (ceiling.is_sure) limited.insert(ceiling.rows.begin(), ceiling.rows.end());
  for (const auto& [i, of] : rows) {
    const bool is_limited = limited.contains(i);
    const auto& row = study.row(i);
    const auto& base = study.row(of.base);
    const double n = *workers(row) / *workers(base);
    const double compute = *row.value(of.whole) - *row.value("communication_s");
    const double half = row.number(of.whole)->half_unit + row.number("communication_s")->half_unit;
    const auto stated = row.value("compute_s");
    const bool is_other =
        of.whole == Column("time_s") && stated && std::abs(*stated - compute) > 0.01 * compute;
    findings.add(
        is_limited ? Severity::error : Severity::warning,
        {{i, of.base}, row.text("compute_s"), Figure{compute, compute - half, compute + half}},
        fmt::format(
            "the communication of {} s is {} - {}{}: a residual, which also holds slower kernels of smaller "
            "batches, waiting for a late worker and for data{}; the compute that it implies is {} s{}.",
            row.text("communication_s"), row.text(of.whole), base.text(of.share),
            is_weak_step(row, base) ? "" : fmt::format(" / {:g}", n),
            is_limited ? ", and here one source of data feeds all workers" : "", shown(compute),
            is_other ? fmt::format(", not the stated {}", row.text("compute_s")) : ""));
  }
}

void check_covers(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows())
    for (const auto word : table::split_words(row.text("covers")))
      if (row.has_word("excludes", word))
        findings.add(
            Severity::error, {{i}, row.text("time_s")},
            fmt::format(
                "'{0}' is said to be in the time and left out of it; say which, since no ratio with {0} in "
                "one time and not in the other means anything.",
                word));
}

void check_clock(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    const auto time = row.number("time_s"), flops = row.number("flops_per_sample"),
               peak = row.number("peak_flops");
    const auto all = images(row);
    if (!time || !flops || !peak || !all || !workers(row) || peak->value <= 0) continue;
    findings.compared();
    const auto least = divided(times(*all, interval_of(*flops)), times(interval_of(*peak), *workers(row)));
    if (least.low <= interval_of(*time).high * (1 + kFollows)) continue;
    findings.add(
        Severity::error, {{i}, time->text, figure_of(least.middle(), least)},
        fmt::format(
            "{} images of {} operations need at least {} s on {:g} workers of {}/s, but {} s were measured: "
            "the clock stopped before the device had finished, or one of the figures belongs to something "
            "else.",
            shown(all->middle()), flops->text, shown(least.middle()), *workers(row), peak->text, time->text));
  }
}

/// The claim that rate x time equals the images, for a rate of all workers or of one.
std::optional<Claim> rate_claim(const Row& row, std::size_t i) {
  const auto rate = row.number("rate_per_s"), time = row.number("time_s");
  const auto all = images(row);
  if (!rate || !time || time->value <= 0 || rate->value <= 0 || !all) return std::nullopt;
  const double n = workers(row).value_or(1);
  const auto& of = row.text("rate_of");
  const auto of_all = divided(*all, interval_of(*time));
  Claim claim{.row = i, .printed = *rate};
  const bool is_of_worker = of == "worker";
  if (of.empty() || !is_of_worker) claim.right.push_back(of_all);
  if (of.empty() || is_of_worker) claim.right.push_back(times(of_all, 1 / n));
  // With gradient accumulation the local batch may be that of one pass and the time that of all passes.
  if (const double passes = accumulation(row); passes > 1 && row.text("time_of") == "step")
    claim.right.push_back(times(claim.right.front(), passes));
  if (follows(claim)) return claim;
  const auto shown_all = shown(of_all.middle());
  if (!is_of_worker)
    claim.wrong.push_back({"over N", times(of_all, 1 / n),
                           fmt::format("{} is the rate of one of {:g} workers", rate->text, n)});
  else
    claim.wrong.push_back(
        {"of all", of_all, fmt::format("{} is the rate of all {:g} workers", rate->text, n)});
  claim.wrong.push_back(
      {"times N", times(of_all, n),
       fmt::format("{} is {:g} x {}: the images were counted by every worker", rate->text, n, shown_all)});
  if (const auto count = steps(row))
    claim.wrong.push_back({"steps", divided(*count, interval_of(*time)),
                           fmt::format("{} is steps a second, not images", rate->text)});
  return claim;
}

void check_rate(const Study& study, Findings& findings) {
  std::vector<Claim> claims;
  for (const auto& [i, row] : study.rows())
    if (auto claim = rate_claim(row, i)) claims.push_back(std::move(*claim));
  findings.compared(claims.size());
  const auto judgements = judge(claims);
  for (std::size_t k = 0; k < claims.size(); ++k) {
    if (judgements[k].follows) continue;
    const auto* form = judgements[k].form;
    const auto& claim = claims[k];
    const auto& row = study.row(claim.row);
    const auto all = *images(row);
    findings.add(form != nullptr ? Severity::error : Severity::warning,
                 {.rows = {claim.row},
                  .printed = claim.printed.text,
                  .corrected = figure_of(claim.right.front().middle(), claim.right.front()),
                  .cause = judgements[k].cause()},
                 fmt::format("printed {} images/s; {} images in {} s are {}. {}.", claim.printed.text,
                             shown(all.middle()), row.text("time_s"), shown(claim.right.front().middle()),
                             form != nullptr ? form->sentence : "The rate does not follow from the time"));
  }
}

constexpr Rule kTimeRules[] = {
    {"parts.sum", Severity::error, "time_s compute_s|communication_s|data_wait_s|other_s",
     "parts that are longer than the whole", check_sum_of_parts, "communication_is compute_s communication_s",
     "two parts of a time in one row"},
    {"parts.residual", Severity::error, "communication_s workers time_s|compute_s",
     "a residual called communication", check_residual, "",
     "a row of fewer workers beside the communication"},
    {"time.covers", Severity::error, "covers excludes",
     "a part that is both included in a time and "
     "excluded from it",
     check_covers},
    {"time.clock", Severity::error, "time_s flops_per_sample peak_flops workers", "faster than the device",
     check_clock, "time_of train_samples", "a row that has all of them"},
    {"time.rate", Severity::error, "rate_per_s time_s train_samples|global_batch|local_batch",
     "a rate that does not follow from its time", check_rate, "time_of train_samples rate_of",
     "a row whose images are known"},
};

}  // namespace

bool is_residual(const Study& study, std::size_t i) {
  return std::ranges::any_of(
      kResiduals, [&](const auto& of) { return residual_of(study, i, of.first, of.second).has_value(); });
}

std::span<const Rule> time_rules() { return kTimeRules; }

}  // namespace paceline::check
