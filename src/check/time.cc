/// Checks the parts of a time against the time, and times against rates and against what a device can do.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

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

/// T(N) - T(N0) for the same images; T(N0) is divided by N/N0 if the baseline processed all images itself.
/// `times_in`: the column of times.
std::optional<Interval> residual_of(const Study& study, std::size_t i, Column times_in) {
  if (study.baselines(i).empty()) return std::nullopt;
  const auto& row = study.row(i);
  const auto& base = study.row(study.baselines(i).front());
  const auto t = row.number(times_in), t0 = base.number(times_in);
  if (!t || !t0 || !workers(row) || !workers(base) || row.text("time_of") != base.text("time_of"))
    return std::nullopt;
  const auto ideal = times(interval_of(*t0), is_weak_step(row, base) ? 1 : *workers(base) / *workers(row));
  const auto all = interval_of(*t);
  return Interval{all.low - ideal.high, all.high - ideal.low};
}

/// Whether the printed communication is that difference, to its digits.
bool is_residual(const Study& study, std::size_t i, Column times_in) {
  const auto printed = study.row(i).number("communication_s");
  const auto residual = residual_of(study, i, times_in);
  if (!printed || !residual || printed->value <= 0) return false;
  const double middle = residual->middle(),
               slack = (residual->high - residual->low) / 2 + 2 * printed->half_unit;
  // The digits leave a small difference of large numbers too uncertain: it would be matched by chance.
  constexpr double kUndecided = 0.1;
  if (slack > kUndecided * printed->value) return false;
  return std::abs(printed->value - middle) <= std::max(slack, 1e-3 * printed->value);
}

void check_sum_of_parts(const Study& study, Findings& findings) {
  constexpr double kClosure = 0.01;
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    const auto whole = row.number("time_s");
    const auto& is = row.text("communication_is");
    if (!whole || whole->value <= 0 || is == "total") continue;
    double sum = 0, rounding = whole->half_unit;
    std::string terms;
    int parts = 0;
    for (const auto column : kParts) {
      const auto part = row.number(column);
      if (!part) continue;
      ++parts;
      sum += part->value;
      rounding += part->half_unit;
      terms += (terms.empty() ? "" : " + ") + part->text;
    }
    const double excess = sum - whole->value;
    if (parts < 2 || excess <= kClosure * whole->value + rounding) continue;
    const auto communication = row.number("communication_s");
    const auto compute = row.number("compute_s");
    const bool of_times = is_residual(study, i, Column("time_s")),
               of_compute = is_residual(study, i, Column("compute_s"));
    const bool is_stated = is == "exposed" || is == "residual";
    std::string why = "parts that do not overlap cannot be longer than the whole";
    if (communication && compute && (is == "residual" || of_times || of_compute))
      why = fmt::format(
          "the communication of {} is what {} workers take longer than the share of one, which the compute "
          "contains already; compute is what the time leaves beside the communication and the other parts",
          communication->text, row.text("workers"));
    else if (!is_stated)
      why = "the communication may hide behind the compute: say whether it is exposed or total";
    std::optional<Figure> corrected;
    std::string printed = fmt::format("{:.6g}", sum);
    if (communication && compute && (is_stated || of_times || of_compute)) {
      double others = 0;
      for (const auto column : {Column("data_wait_s"), Column("update_s"), Column("other_s")})
        others += row.value(column).value_or(0);
      const double right = whole->value - communication->value - others;
      const double half = rounding + kClosure * whole->value;
      corrected = Figure{right, right - half, right + half};
      printed = compute->text;
      if (right > 0) why += fmt::format("; if time and communication are right, compute is {:.4g}", right);
    }
    findings.add(is_stated || of_times || of_compute ? Severity::error : Severity::warning,
                 {{i}, printed, corrected},
                 fmt::format("the parts {} = {} exceed the time of {} by {:.1f} %: {}.", terms,
                             fmt::format("{:.4g}", sum), whole->text, 100 * excess / whole->value, why));
  }
}

void check_residual(const Study& study, Findings& findings) {
  std::array<std::vector<std::size_t>, 2> found;
  std::size_t candidates = 0;
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    if (!row.value("communication_s") || study.baselines(i).empty() ||
        row.text("communication_is") == "residual")
      continue;
    if (*row.value("communication_s") <= 0) continue;
    ++candidates;
    if (is_residual(study, i, Column("time_s"))) found[0].push_back(i);
    if (is_residual(study, i, Column("compute_s"))) found[1].push_back(i);
  }
  const auto& rows = found[0].size() >= found[1].size() ? found[0] : found[1];
  if (candidates == 0 || rows.size() < candidates) return;
  const bool of_times = found[0].size() >= found[1].size();
  std::set<std::size_t> limited;
  for (const auto& ceiling : input_ceilings(study)) limited.insert(ceiling.rows.begin(), ceiling.rows.end());
  for (const auto i : rows) {
    const bool is_limited = limited.contains(i);
    const auto& row = study.row(i);
    const auto& base = study.row(study.baselines(i).front());
    const Column column = of_times ? Column("time_s") : Column("compute_s");
    const double n = *workers(row) / *workers(base);
    const double compute = *row.value(column) - *row.value("communication_s");
    const double half = row.number(column)->half_unit + row.number("communication_s")->half_unit;
    findings.add(
        is_limited ? Severity::error : Severity::warning,
        {{i, study.baselines(i).front()},
         row.text("compute_s"),
         Figure{compute, compute - half, compute + half}},
        fmt::format(
            "the communication of {} s is {} - {}{}: a residual, which also holds slower kernels of smaller "
            "batches, waiting for a late worker and for data{}; the compute that it implies is {} s.",
            row.text("communication_s"), row.text(column), base.text(column),
            is_weak_step(row, base) ? "" : fmt::format(" / {:g}", n),
            is_limited ? ", and here one source of data feeds all workers" : "", shown(compute)));
  }
}

void check_covers(const Study& study, Findings& findings) {
  for (std::size_t i = 0; i < study.size(); ++i)
    for (const char* const word :
         {"data", "copy", "compute", "communication", "update", "evaluation", "startup"})
      if (study.row(i).has_word("covers", word) && study.row(i).has_word("excludes", word))
        findings.add(
            Severity::error, {{i}, study.row(i).text("time_s")},
            fmt::format(
                "'{0}' is said to be in the time and left out of it; say which, since no ratio with {0} in "
                "one time and not in the other means anything.",
                word));
}

void check_clock(const Study& study, Findings& findings) {
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    const auto time = row.number("time_s"), flops = row.number("flops_per_sample"),
               peak = row.number("peak_flops");
    const auto all = images(row);
    if (!time || !flops || !peak || !all || !workers(row) || peak->value <= 0) continue;
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
  for (std::size_t i = 0; i < study.size(); ++i)
    if (auto claim = rate_claim(study.row(i), i)) claims.push_back(std::move(*claim));
  const auto judgements = judge(claims);
  for (std::size_t k = 0; k < claims.size(); ++k) {
    if (judgements[k].word == Judgement::Word::follows) continue;
    const bool is_explained = judgements[k].word == Judgement::Word::explained;
    const auto& claim = claims[k];
    const auto& row = study.row(claim.row);
    const auto all = *images(row);
    findings.add(
        is_explained ? Severity::error : Severity::warning,
        {{claim.row}, claim.printed.text, figure_of(claim.right.front().middle(), claim.right.front())},
        fmt::format("printed {} images/s; {} images in {} s are {}. {}.", claim.printed.text,
                    shown(all.middle()), row.text("time_s"), shown(claim.right.front().middle()),
                    is_explained ? judgements[k].form->sentence : "The rate does not follow from the time"));
  }
}

constexpr Rule kTimeRules[] = {
    {"parts.sum", Severity::error, "time_s compute_s|communication_s|data_wait_s|other_s",
     "parts that are longer than the whole", check_sum_of_parts,
     "communication_is compute_s communication_s"},
    {"parts.residual", Severity::error, "communication_s workers time_s|compute_s",
     "a residual called communication", check_residual},
    {"time.covers", Severity::error, "covers excludes",
     "a part that is both included in a time and "
     "excluded from it",
     check_covers},
    {"time.clock", Severity::error, "time_s flops_per_sample peak_flops workers", "faster than the device",
     check_clock, "time_of train_samples"},
    {"time.rate", Severity::error, "rate_per_s time_s train_samples|global_batch|local_batch",
     "a rate that does not follow from its time", check_rate, "time_of train_samples rate_of"},
};

}  // namespace

std::span<const Rule> time_rules() { return kTimeRules; }

}  // namespace paceline::check
