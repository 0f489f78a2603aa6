/// Rules for rows with several numbers of workers: weak or strong, slower, limited by one shared source,
/// predicted.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "check/ratios.h"
#include "check/rule.h"

namespace paceline::check {
namespace {

/// Finds rows called weak with one global batch, called strong with one local batch, or ratios in which
/// neither batch stays the same.
void check_mixed(const Study& study, Findings& findings) {
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    if (study.baselines(i).empty() || !row.knows("scaling")) continue;
    const auto k = study.baselines(i).front();
    const auto& base = study.row(k);
    const auto b = local_batch(row), b0 = local_batch(base), all = global_batch(row),
               all0 = global_batch(base);
    if (!b || !b0 || !workers(base) || *workers(row) <= *workers(base)) continue;
    const bool is_weak = row.text("scaling") == "weak";
    const double rounding = *workers(row);  // a global batch that is not divisible by the number of workers
    const bool keeps = is_weak ? *b == *b0 : std::abs(*all - *all0) < rounding;
    const bool both =
        base.knows("scaling") && base.text("scaling") != row.text("scaling") && *workers(base) > 1;
    if (keeps && !both) continue;
    const std::string what =
        keeps ? fmt::format("its baseline {} is called {}", base.name(), base.text("scaling"))
        : is_weak
            ? fmt::format("its local batch is {}, and that of {} is {}", shown(*b), base.name(), shown(*b0))
            : fmt::format("its global batch is {}, and that of {} is {}", shown(*all), base.name(),
                          shown(*all0));
    const std::string instead =
        keeps     ? "one ratio cannot be both"
        : is_weak ? (std::abs(*all - *all0) < rounding ? "one global batch is strong scaling"
                                                       : "weak scaling keeps the local batch")
                  : (*b == *b0 ? "one local batch is weak scaling" : "strong scaling keeps the global batch");
    findings.add(Severity::error, {{i, k}, row.text("scaling")},
                 fmt::format("called {} scaling, but {}: {}.", row.text("scaling"), what, instead));
  }
}

bool is_remarked(const Row& row) {
  if (const auto claimed = row.value("claimed_speedup"); claimed && *claimed <= 1) return true;
  for (const char* const word : {"slow", "longer", "worse", "no gain", "does not scale"})
    if (row.text("claim").find(word) != std::string::npos) return true;
  return false;
}

void check_slower(const Study& study, Findings& findings) {
  struct Slower {
    std::size_t row, baseline;
    Ratio ratio;
  };
  std::vector<Slower> all;
  std::vector<double> z;
  for (std::size_t i = 0; i < study.size(); ++i) {
    if (study.baselines(i).empty()) continue;
    const auto k = study.baselines(i).front();
    const auto ratios = speedups(study.row(i), study.row(k));
    if (ratios.size() != 1 || !workers(study.row(k)) || *workers(study.row(k)) >= *workers(study.row(i)))
      continue;
    const double error = std::hypot(noise(study.row(i)), noise(study.row(k))) / 1.96;
    all.push_back({i, k, ratios.front()});
    z.push_back(-std::log(ratios.front().interval.high) / std::max(error, 1e-9));
  }
  const auto holds = holm(z);
  for (std::size_t c = 0; c < all.size(); ++c) {
    const auto& [i, k, ratio] = all[c];
    if (!holds[c] || is_remarked(study.row(i))) continue;
    findings.add(
        Severity::warning,
        {{i, k},
         study.row(i).text("time_s"),
         figure_of(ratio.value, with_noise(ratio.interval, noise(study.row(i)), noise(study.row(k))))},
        fmt::format("{} workers are slower than {}: {} = {} times as fast, but the table does not say so.",
                    study.row(i).text("workers"), study.row(k).text("workers"), ratio.how,
                    shown(ratio.value)));
  }
}

std::optional<double> images_per_s(const Row& row) {
  if (const auto rate = row.value("rate_per_s"); rate && *rate > 0) {
    if (row.text("rate_of") == "all") return rate;
    if (row.text("rate_of") == "worker" && workers(row)) return *rate * *workers(row);
  }
  const auto time = row.value("time_s");
  const auto all = images(row);
  if (!time || *time <= 0 || !all) return std::nullopt;
  return all->middle() / *time;
}

/// Whether measured parts add up to the time and show that communication, not data, limits the row.
bool is_held_by_communication(const Row& row) {
  constexpr double kClosure = 0.05, kLarge = 0.2;
  const auto time = row.value("time_s"), compute = row.value("compute_s"),
             exposed = row.value("communication_s");
  if (row.text("communication_is") == "exposed" && !compute && time && exposed)
    return *exposed >= kLarge * *time;
  if (!time || !compute || !exposed || row.text("communication_is") == "residual") return false;
  return std::abs(*compute + *exposed - *time) <= kClosure * *time && *exposed >= kLarge * *time;
}

void check_ceiling(const Study& study, Findings& findings) {
  for (const auto& [rows, least, most] : input_ceilings(study))
    findings.add(
        Severity::warning, {rows, "", Figure{most, least, most}},
        fmt::format(
            "{} to {} workers take {} to {} images/s: the rate stays within {:.2f} times while the workers "
            "grow {:g} times, so one source feeds all of them (a disk, one reader, a shared link) at about "
            "{} images/s; measure the wait for data.",
            study.row(rows.front()).text("workers"), study.row(rows.back()).text("workers"), shown(least),
            shown(most), most / least, *workers(study.row(rows.back())) / *workers(study.row(rows.front())),
            shown(most)));
}

bool has_figures(const Row& row) {
  return row.knows("time_s") || row.knows("rate_per_s") || row.knows("compute_s") ||
         row.knows("communication_s");
}

void check_reach(const Study& study, Findings& findings) {
  constexpr double kReach = 4;
  std::set<double> measured;
  for (std::size_t i = 0; i < study.size(); ++i)
    if (has_figures(study.row(i)) && workers(study.row(i))) measured.insert(*workers(study.row(i)));
  if (measured.empty()) return;
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    const auto printed =
        row.knows("claimed_speedup") ? row.number("claimed_speedup") : row.number("claimed_efficiency");
    if (has_figures(row) || !printed || !workers(row)) continue;
    const double n = *workers(row), largest = *measured.rbegin();
    if (n <= largest) continue;
    const bool is_far = n > kReach * largest;
    if (!is_far && measured.size() >= 3) continue;
    findings.add(
        Severity::warning, {{i}, printed->text},
        fmt::format(
            "{} workers were not measured; {} is extrapolated {:g} times beyond the largest number that was "
            "({:g}), from {} number{} of workers.",
            row.text("workers"), printed->text, n / largest, largest, measured.size(),
            measured.size() == 1 ? "" : "s"));
  }
}

constexpr Rule kScalingRules[] = {
    {"scaling.mixed", Severity::error, "scaling workers local_batch|global_batch",
     "weak and strong scaling taken for one another", check_mixed, "run local_batch"},
    {"scaling.slower", Severity::warning, "workers time_s|rate_per_s",
     "more workers that are slower, and no claim says so", check_slower},
    {"input.ceiling", Severity::warning, "covers workers time_s|rate_per_s",
     "one source of data feeds all workers", check_ceiling},
    {"predict.reach", Severity::warning, "workers claimed_speedup|claimed_efficiency",
     "an extrapolation beyond what was measured", check_reach},
};

}  // namespace

std::vector<Ceiling> input_ceilings(const Study& study) {
  constexpr double kFlat = 1.5, kGrows = 4;
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    if (!row.has_word("covers", "data") || row.knows("data_wait_s") || !workers(row) || !images_per_s(row))
      continue;
    if (is_held_by_communication(row)) continue;
    auto key = texts_of(row, {Column("program"), Column("model"), Column("device"), Column("train_samples"),
                              Column("time_of"), Column("scaling"), Column("repeat")});
    for (const auto& [name, value] : row.settings) key += name + '=' + value + '\x1f';
    // One batch for all numbers of workers: the local or the global one.
    const bool of_all =
        row.text("scaling") == "strong" || (row.knows("global_batch") && !row.knows("local_batch"));
    if (row.text("scaling") != "strong")
      key += fmt::format("{}", (of_all ? global_batch(row) : local_batch(row)).value_or(0));
    groups[key].push_back(i);
  }
  std::vector<Ceiling> found;
  for (auto& [key, rows] : groups) {
    std::ranges::sort(rows, [&](auto a, auto b) { return *workers(study.row(a)) < *workers(study.row(b)); });
    if (*workers(study.row(rows.back())) < kGrows * *workers(study.row(rows.front()))) continue;
    double least = 1e300, most = 0;
    for (const auto i : rows) {
      least = std::min(least, *images_per_s(study.row(i)));
      most = std::max(most, *images_per_s(study.row(i)));
    }
    if (most <= kFlat * least) found.push_back({rows, least, most});
  }
  return found;
}

std::span<const Rule> scaling_rules() { return kScalingRules; }

}  // namespace paceline::check
