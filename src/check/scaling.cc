/// Rules for rows with several numbers of workers: weak or strong, slower, limited by one shared source,
/// predicted.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "check/ratios.h"
#include "check/rule.h"

namespace paceline::check {
namespace {

/// Finds rows called weak with one global batch, called strong with one local batch, or ratios in which
/// neither batch stays the same.
void check_mixed(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    if (study.baselines(i).empty() || !row.knows("scaling")) continue;
    const auto k = study.baselines(i).front();
    const auto& base = study.row(k);
    const auto b = local_batch(row), b0 = local_batch(base), all = global_batch(row),
               all0 = global_batch(base);
    if (!b || !b0 || !workers(base) || *workers(row) <= *workers(base)) continue;
    findings.compared();
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
  const auto words = base::lower_case(row.text("claim"));
  if (has_any(words, {"not slow", "no slow", "not longer", "not worse", "no worse"})) return false;
  return has_any(words, {"slow", "longer", "worse", "no gain", "not faster", "no faster", "does not scale",
                         "doesn't scale", "not scale"});
}

/// What the table says of a row whose workers are slower: that it is better, or nothing.
std::string said_of_slower(const Row& row) {
  const auto& claim = row.text("claim");
  if (const auto claimed = row.number("claimed_speedup"); claimed && claimed->value > 1)
    return fmt::format("the table calls it a speedup of {}", claimed->text);
  if (has_any(base::lower_case(claim),
              {"fast", "speed", "doubl", "twice", "better", "improve", "scales", "gain"}))
    return fmt::format("the table says '{}'", claim);
  if (row.text("best") == "yes" && !row.knows("accuracy")) return "the table calls it the best";
  return "the table does not say so";
}

void check_slower(const Study& study, Findings& findings) {
  const auto all = scaled_rows(study);
  std::vector<double> z;
  for (const auto& one : all) z.push_back(-std::log(one.ratio.interval.high) / one.error);
  findings.compared(all.size());
  const auto holds = holm(z);
  for (std::size_t c = 0; c < all.size(); ++c) {
    const auto& [i, k, ratio, scale, likely, error] = all[c];
    if (!holds[c] || is_remarked(study.row(i))) continue;
    findings.add(
        Severity::warning,
        {.rows = {i, k},
         .printed = study.row(i).text("time_s"),
         .corrected = figure_of(ratio.value, likely),
         .cause = said_of_slower(study.row(i)) == "the table does not say so" ? "" : "called better"},
        fmt::format("{} workers are slower than {}: {} = {} times as fast, but {}.",
                    study.row(i).text("workers"), study.row(k).text("workers"), ratio.how, shown(ratio.value),
                    said_of_slower(study.row(i))));
  }
}

/// Images/s; where the images of an epoch are not known, epochs an hour, and `of_images` becomes false.
std::optional<double> rate_of_row(const Row& row, bool& of_images) {
  if (const auto rate = row.value("rate_per_s"); rate && *rate > 0) {
    if (row.text("rate_of") == "all") return rate;
    if (row.text("rate_of") == "worker" && workers(row)) return *rate * *workers(row);
  }
  const auto time = row.value("time_s");
  const auto all = images(row);
  if (!time || *time <= 0) return std::nullopt;
  if (all) return all->middle() / *time;
  if (row.text("time_of") != "epoch") return std::nullopt;
  of_images = false;
  return 3600 / *time;
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
  for (const auto& [rows, least, most, of_images, is_said, is_sure] : input_ceilings(study, &findings)) {
    const char* const unit = of_images ? "images/s" : "epochs an hour";
    const std::string source = "one source feeds all of them (a disk, one reader, a shared link)";
    findings.add(
        is_said ? Severity::warning : Severity::note,
        {.rows = rows, .corrected = Figure{most, least, most}, .cause = is_said ? "" : "not said"},
        fmt::format(
            "{} to {} workers take {} to {} {}: the rate stays within {:.2f} times while the workers "
            "grow {:g} times, so {} at about {} {}{}; measure the wait for data.",
            study.row(rows.front()).text("workers"), study.row(rows.back()).text("workers"), shown(least),
            shown(most), unit, most / least,
            *workers(study.row(rows.back())) / *workers(study.row(rows.front())),
            is_said && is_sure ? source : source + " or the communication does not scale", shown(most), unit,
            is_sure
                ? ""
                : " (the communication beside them is a residual, in which waiting for data is contained, so "
                  "it does not tell)"));
  }
}

bool has_figures(const Row& row) {
  return knows_any(row, {"time_s", "rate_per_s", "compute_s", "communication_s"});
}

void check_reach(const Study& study, Findings& findings) {
  constexpr double kReach = 4;
  std::set<double> measured;
  for (const auto& [i, row] : study.rows())
    if (has_figures(row) && workers(row)) measured.insert(*workers(row));
  if (measured.empty()) return;
  for (const auto& [i, row] : study.rows()) {
    const auto printed = claimed_ratio(row);
    if (has_figures(row) || !printed || !workers(row)) continue;
    const double n = *workers(row), largest = *measured.rbegin();
    if (n <= largest) continue;
    const bool is_far = n > kReach * largest;
    if (!is_far && measured.size() >= 3) continue;
    findings.add(
        Severity::warning, {{i}, printed->text},
        fmt::format(
            "{} workers were not measured; {} is extrapolated {:g} times beyond the largest number that was "
            "({:g}), from {} of workers.",
            row.text("workers"), printed->text, n / largest, largest,
            base::counted(measured.size(), "number")));
  }
}

constexpr Rule kScalingRules[] = {
    {"scaling.mixed", Severity::error, "scaling workers local_batch|global_batch",
     "weak and strong scaling taken for one another", check_mixed, "run local_batch",
     "two rows whose batches are known"},
    {"scaling.slower", Severity::warning, "workers time_s|rate_per_s",
     "more workers that are slower, and no claim says so", check_slower, "", kTwoRows},
    {"input.ceiling", Severity::warning, "workers time_s|rate_per_s", "one source of data feeds all workers",
     check_ceiling, "covers time_of", "rates of one batch on four times as many workers"},
    {"predict.reach", Severity::warning, "workers claimed_speedup|claimed_efficiency",
     "an extrapolation beyond what was measured", check_reach},
};

}  // namespace

std::vector<Ceiling> input_ceilings(const Study& study, Findings* findings) {
  constexpr double kFlat = 1.5, kGrows = 4;
  struct Point {
    std::size_t row;
    double rate;
    bool of_images, is_residual;
  };
  std::map<std::string, std::vector<Point>> groups;
  for (const auto& [i, row] : study.rows()) {
    // The time of an epoch or a run usually contains loading; that of a step does if the row says so.
    const bool is_likely =
        !row.knows("covers") && !row.has_word("excludes", "data") && row.text("time_of") != "step";
    bool of_images = true;
    if ((!row.has_word("covers", "data") && !is_likely) || row.knows("data_wait_s") || !workers(row))
      continue;
    const auto rate = rate_of_row(row, of_images);
    if (!rate) continue;
    const bool by_residual = is_residual(study, i);
    if (is_held_by_communication(row) && !by_residual) continue;
    auto key = texts_of(row, {Column("program"), Column("model"), Column("device"), Column("train_samples"),
                              Column("time_of"), Column("scaling"), Column("repeat"), Column("covers")});
    key += of_images ? "images" : "epochs";
    for (const auto& [name, value] : row.settings) key += name + '=' + value + '\x1f';
    // One batch for all numbers of workers: the local or the global one.
    const bool of_all =
        row.text("scaling") == "strong" || (row.knows("global_batch") && !row.knows("local_batch"));
    if (row.text("scaling") != "strong")
      key += fmt::format("{}", (of_all ? global_batch(row) : local_batch(row)).value_or(0));
    groups[key].push_back({i, *rate, of_images, by_residual});
  }
  std::vector<Ceiling> found;
  for (auto& [key, points] : groups) {
    std::ranges::sort(points, {}, [&](const Point& one) { return *workers(study.row(one.row)); });
    const auto& first = study.row(points.front().row);
    if (*workers(study.row(points.back().row)) < kGrows * *workers(first)) continue;
    if (findings != nullptr) findings->compared();
    Ceiling one{.least = 1e300, .of_images = points.front().of_images, .is_said = first.knows("covers")};
    for (const auto& [i, rate, of_images, by_residual] : points) {
      one.rows.push_back(i);
      one.least = std::min(one.least, rate);
      one.most = std::max(one.most, rate);
      one.is_sure = one.is_sure && !by_residual;
    }
    if (one.most <= kFlat * one.least) found.push_back(std::move(one));
  }
  return found;
}

std::span<const Rule> scaling_rules() { return kScalingRules; }

}  // namespace paceline::check
