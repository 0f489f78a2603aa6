/// Computes how many times as fast one row is as another, in all ways that the known columns allow.

#include "check/ratios.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/rule.h"

namespace paceline::check {
namespace {

/// Images of row `a` divided by images of row `b`; 1 if both mean an epoch and say nothing else; nullopt if
/// it cannot be known.
std::optional<Interval> image_ratio(const Row& a, const Row& b) {
  if (a.text("time_of") != "step") {
    const auto all = [&](const Row& row) {
      // The same number of images unless both say how many.
      const bool has_samples = a.knows("train_samples") && b.knows("train_samples");
      const bool has_epochs = a.text("time_of") == "run" && a.knows("epochs") && b.knows("epochs");
      return (has_samples ? row.value("train_samples").value_or(0) : 1) *
             (has_epochs ? row.value("epochs").value_or(0) : 1);
    };
    const double x = all(a), y = all(b);
    return exactly_one(x > 0 && y > 0 ? x / y : 1);
  }
  const auto x = global_batch(a), y = global_batch(b);
  if (x && y) return exactly_one(*x / *y);
  if (a.text("scaling") == "weak") return exactly_one(*workers(a) / *workers(b));
  if (a.text("scaling") == "strong") return exactly_one(1);
  return std::nullopt;
}

std::optional<Interval> rate_of_all(const Row& row) {
  const auto rate = row.number("rate_per_s");
  if (!rate || rate->value <= 0 || !row.knows("rate_of")) return std::nullopt;
  const auto n = workers(row);
  if (row.text("rate_of") == "all") return interval_of(*rate);
  return n ? std::optional(times(interval_of(*rate), *n)) : std::nullopt;
}

/// Whether the rows are called weak but do not say how many images they trained on: the work may be fixed, or
/// may grow with the workers.
bool may_have_grown(const Row& a, const Row& b) {
  const auto says_images = [](const Row& row) {
    return knows_any(row, {"train_samples", "epochs", "steps", "updates"});
  };
  return a.text("time_of") == "run" && a.text("scaling") == "weak" && workers(a) && workers(b) &&
         !says_images(a) && !says_images(b);
}

/// Rates count the images that were processed, ratios of epochs those in the data set. The two differ by a
/// last batch that was dropped or filled up.
Interval with_tails(const Interval& ratio, const Row& a, const Row& b) {
  const auto tail = [](const Row& row) {
    const auto samples = row.value("train_samples"), batch = global_batch(row);
    return row.text("time_of") != "step" && samples && batch && *samples > 0
               ? std::min(1.0, *batch / *samples)
               : 0;
  };
  const double either = std::max(tail(a), tail(b));
  return {ratio.low / (1 + either), ratio.high * (1 + either)};
}

std::string image_factor(double factor) { return factor == 1 ? "" : fmt::format("{} x ", shown(factor)); }

/// Adds ratios of rates that may be per worker or of all workers.
void add_unlabelled_rates(const Row& a, const Row& b, std::vector<Ratio>& ratios) {
  const auto rate = a.number("rate_per_s"), rate0 = b.number("rate_per_s");
  if (rate->value <= 0 || rate0->value <= 0 || !workers(a) || !workers(b)) return;
  const auto quotient = with_tails(divided(interval_of(*rate), interval_of(*rate0)), a, b);
  for (const double factor : {1.0, *workers(a) / *workers(b)})
    ratios.push_back({.value = factor * rate->value / rate0->value,
                      .interval = times(quotient, factor),
                      .how = fmt::format("{}{} / {}", image_factor(factor), rate->text, rate0->text)});
}

}  // namespace

std::vector<Ratio> speedups(const Row& a, const Row& b) {
  std::vector<Ratio> ratios;
  const auto t = a.number("time_s"), t0 = b.number("time_s");
  if (t && t0 && t->value > 0 && t0->value > 0 && a.knows("time_of") &&
      a.text("time_of") == b.text("time_of")) {
    const auto quotient = divided(interval_of(*t0), interval_of(*t));
    const auto add = [&](const Interval& factor) {
      ratios.push_back({.value = t0->value / t->value * factor.middle(),
                        .interval = times(quotient, factor),
                        .how = fmt::format("{}{} / {}", image_factor(factor.middle()), t0->text, t->text),
                        .of_fixed_data = factor.middle() == 1,
                        .images = factor.middle()});
    };
    if (const auto factor = image_ratio(a, b)) {
      add(*factor);
      if (may_have_grown(a, b)) add(exactly_one(*workers(a) / *workers(b)));
    } else if (workers(a) && workers(b)) {  // the batches of the steps are unknown: strong or weak
      add(exactly_one(1));
      add(exactly_one(*workers(a) / *workers(b)));
    }
  }
  const auto rate = rate_of_all(a), rate0 = rate_of_all(b);
  if (ratios.empty() && a.knows("rate_per_s") && b.knows("rate_per_s") && !a.knows("rate_of") &&
      !b.knows("rate_of"))
    add_unlabelled_rates(a, b, ratios);
  if (rate && rate0) {
    // As printed, or times the workers.
    const auto of_all = [](const Row& row) {
      return *row.value("rate_per_s") * (row.text("rate_of") == "all" ? 1 : *workers(row));
    };
    ratios.push_back(
        {.value = of_all(a) / of_all(b),
         .interval = ratios.empty() ? with_tails(divided(*rate, *rate0), a, b) : divided(*rate, *rate0),
         .how = fmt::format("{} / {}", shown(of_all(a)), shown(of_all(b)))});
  }
  return ratios;
}

std::vector<ScaledRow> scaled_rows(const Study& study) {
  std::vector<ScaledRow> all;
  for (std::size_t i = 0; i < study.size(); ++i) {
    if (study.baselines(i).empty()) continue;
    const auto k = study.baselines(i).front();
    const auto &row = study.row(i), &base = study.row(k);
    const auto ratios = speedups(row, base);
    if (ratios.size() != 1 || !workers(row) || !workers(base) || *workers(row) <= *workers(base)) continue;
    all.push_back({.row = i,
                   .baseline = k,
                   .ratio = ratios.front(),
                   .scale = *workers(row) / *workers(base),
                   .likely = with_noise(ratios.front().interval, noise(row), noise(base)),
                   .error = std::max(1e-9, std::hypot(noise(row), noise(base)) / 1.96)});
  }
  return all;
}

std::optional<std::size_t> baseline_of(const Study& study, std::size_t i,
                                       const std::vector<std::size_t>& baselines,
                                       const table::Number& printed, bool is_efficiency) {
  for (const auto k : baselines)
    for (const auto& ratio : speedups(study.row(i), study.row(k))) {
      const double scale = is_efficiency ? *workers(study.row(i)) / *workers(study.row(k)) : 1;
      if (meets(printed, times(ratio.interval, 1 / scale), kFollows)) return k;
      if (is_efficiency && meets(printed, times(ratio.interval, 100 / scale), kFollows)) return k;
    }
  return std::nullopt;
}

std::optional<Ratio> ratio_without_workers(const Row& row, const Row& base) {
  const auto t = row.number("time_s"), t0 = base.number("time_s");
  const auto all = row.value("global_batch"), all0 = global_batch(base);
  const bool is_step = row.text("time_of") == "step", is_strong = row.text("scaling") == "strong";
  if (t && t0 && t->value > 0 && t0->value > 0 && (!is_step || is_strong || (all && all0))) {
    const double images = is_step && !is_strong ? *all / *all0 : 1;
    return Ratio{images * t0->value / t->value, times(divided(interval_of(*t0), interval_of(*t)), images),
                 fmt::format("{}{} / {}", image_factor(images), t0->text, t->text), true};
  }
  const auto r = row.number("rate_per_s"), r0 = base.number("rate_per_s");
  if (!r || !r0 || r->value <= 0 || r0->value <= 0 || row.text("rate_of") == "worker") return std::nullopt;
  return Ratio{r->value / r0->value, divided(interval_of(*r), interval_of(*r0)),
               fmt::format("{} / {}", r->text, r0->text), false};
}

}  // namespace paceline::check
