/// Rules for how something was measured: repeats, warm-up, which repeat is shown, spread, seeds.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "check/ratios.h"
#include "check/rule.h"
#include "measure/statistics.h"

namespace paceline::check {
namespace {

bool is_timed(const Row& row) { return row.knows("time_s") || row.knows("rate_per_s"); }

/// Groups of rows of one configuration that say which repeat they are. Rows that do not say it are left out.
std::vector<std::vector<std::size_t>> repeated(const Study& study) {
  std::vector<std::vector<std::size_t>> all;
  for (const auto& group : study.same_configuration()) {
    std::vector<std::size_t> rows;
    for (const auto i : group)
      if (study.row(i).knows("repeat")) rows.push_back(i);
    if (rows.size() > 1) all.push_back(rows);
  }
  return all;
}

void check_repeats(const Study& study, Findings& findings) {
  constexpr double kFewest = 3;
  std::vector<std::size_t> few;
  std::size_t configurations = 0;  // with a time; a line of averages has none
  for (const auto& group : study.same_configuration()) {
    double most = 0;
    for (const auto i : group)
      if (is_timed(study.row(i))) most = std::max(most, study.row(i).value("repeats").value_or(1));
    const auto timed =
        static_cast<double>(std::ranges::count_if(group, [&](auto i) { return is_timed(study.row(i)); }));
    configurations += timed > 0 ? 1 : 0;
    if (timed > 0 && std::max(most, timed) < kFewest) few.push_back(group.front());
  }
  if (few.empty()) return;
  findings.add(Severity::note, {.rows = few, .is_of_all = true},
               fmt::format("{} of {} configurations were timed fewer than three times: how far their times "
                           "scatter is not known, and 5 % is assumed.",
                           few.size(), configurations));
}

void check_warmup(const Study& study, Findings& findings) {
  std::vector<std::size_t> cold;
  for (const auto& [i, row] : study.rows())
    if (is_timed(row) && row.value("warmup") == 0.0) cold.push_back(i);
  if (!cold.empty())
    findings.add(
        Severity::warning, {.rows = cold, .is_of_all = true},
        "timed without warm-up: the first steps pay for memory, caches and the choice of kernels, and the row with the "
        "fewest steps pays most.");
}

void check_best(const Study& study, Findings& findings) {
  std::vector<std::size_t> rows;
  for (const auto& [i, row] : study.rows())
    if (row.text("statistic") == "best") rows.push_back(i);
  if (!rows.empty())
    findings.add(
        Severity::warning,
        {.rows = rows, .printed = study.row(rows.front()).text("time_s"), .is_of_all = true},
        "the best of several is shown: it falls with the number of tries, so two rows are comparable only with equally "
        "many; show the median.");
}

void check_spread(const Study& study, Findings& findings) {
  constexpr double kNormal = 1.96;
  constexpr std::size_t kFewest = 3;
  for (const auto& group : study.same_configuration()) {
    std::vector<double> times;
    for (const auto i : group)
      if (study.row(i).knows("repeat") && study.row(i).knows("time_s"))
        times.push_back(*study.row(i).value("time_s"));
    if (times.size() < kFewest) continue;
    findings.compared();
    const double n = static_cast<double>(times.size()), sd = measure::standard_deviation(times);
    const double right = kNormal * sd / std::sqrt(n);
    for (const auto i : group) {
      const auto spread = study.row(i).number("spread_s");
      if (study.row(i).text("spread_is") != "ci95" || !spread) continue;
      if (!meets(*spread, exactly_one(kNormal * sd), kExplains)) continue;
      findings.add(
          Severity::warning, {{i}, spread->text, Figure{right, right, right}},
          fmt::format(
              "{} s is called a 95 % interval of the mean, but it is 1.96 standard deviations of {:g} repeats ({} s), in "
              "which single runs lie; the interval of their mean is 1.96 x {} / sqrt({:g}) = {} s.",
              spread->text, n, shown(sd), shown(sd), n, shown(right)));
    }
  }
}

/// Kendall's tau between times and repeat numbers, in standard errors from zero.
double trend(const std::vector<double>& times) {
  const auto n = static_cast<double>(times.size());
  double s = 0;
  for (std::size_t a = 0; a < times.size(); ++a)
    for (std::size_t b = a + 1; b < times.size(); ++b)
      s += (times[b] > times[a] ? 1 : 0) - (times[b] < times[a] ? 1 : 0);
  return s / std::sqrt(n * (n - 1) * (2 * n + 5) / 18);
}

void check_drift(const Study& study, Findings& findings) {
  constexpr std::size_t kFewest = 5, kMost = 1000;
  std::vector<double> z;
  std::vector<std::vector<std::size_t>> groups;
  for (auto rows : repeated(study)) {
    std::ranges::sort(rows, {}, [&](auto i) { return *study.row(i).value("repeat"); });
    std::erase_if(rows, [&](auto i) { return !study.row(i).value("time_s"); });
    if (rows.size() < kFewest || rows.size() > kMost) continue;
    findings.compared();
    std::vector<double> times;
    for (const auto i : rows) times.push_back(*study.row(i).value("time_s"));
    z.push_back(std::abs(trend(times)) - 0.31);  // two-sided: half the level on each side
    groups.push_back(rows);
  }
  const auto holds = holm(z);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (!holds[g]) continue;
    const auto& first = study.row(groups[g].front());
    const auto& last = study.row(groups[g].back());
    findings.add(
        Severity::warning, {groups[g], first.text("time_s")},
        fmt::format(
            "the times drift over {} repeats, from {} to {} s: heat, a filling disk or a neighbour; their mean depends on "
            "how many were taken.",
            groups[g].size(), first.text("time_s"), last.text("time_s")));
  }
}

void check_seeds(const Study& study, Findings& findings) {
  for (const auto& rows : repeated(study)) {
    std::set<std::string> seeds;
    std::size_t with_seed = 0;
    for (const auto i : rows) {
      if (!study.row(i).knows("seed") || !study.row(i).knows("accuracy")) continue;
      ++with_seed;
      seeds.insert(study.row(i).text("seed"));
    }
    if (with_seed > 1 && seeds.size() < with_seed)
      findings.add(
          Severity::warning, {rows, study.row(rows.front()).text("seed")},
          fmt::format(
              "{} repeats have {}: what they differ in is rounding, not what another seed would change.",
              with_seed, base::counted(seeds.size(), "seed")));
  }
}

/// Finds programs that were measured one after the other instead of in turn: in the table, the rows of each
/// program are adjacent.
void check_order(const Study& study, Findings& findings) {
  std::vector<std::string> runs;  // the programs in the order of the repeats
  std::map<std::string, int> counts;
  for (const auto& [i, row] : study.rows()) {
    if (!row.knows("program") || !row.knows("repeat") || !is_timed(row)) continue;
    ++counts[row.text("program")];
    if (runs.empty() || runs.back() != row.text("program")) runs.push_back(row.text("program"));
  }
  if (counts.size() < 2 || runs.size() != counts.size()) return;
  if (std::ranges::any_of(counts, [](const auto& one) { return one.second < 3; })) return;
  findings.add(
      Severity::note, {},
      fmt::format(
          "all repeats of {} stand before those of {}: if they were measured in this order, what changed on the machine "
          "meanwhile is in the difference; interleave them.",
          runs[0], runs[1]));
}

void check_idle(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows())
    if (row.value("utilisation") == 0.0)
      findings.add(Severity::warning, {{i}, row.text("utilisation")},
                   "a utilisation of 0 is a snapshot of an idle device: it says nothing about the run.");
}

bool is_digit(char one) { return one >= '0' && one <= '9'; }

/// Whether the words hold a ratio: a number with a sign of one ("1.9x", "90 %", "3-fold"), behind a word for
/// one ("a speedup of 2"), or with a decimal point. "2 GPUs" and "batch 64" are none.
bool names_a_ratio(const std::string& words) {
  constexpr std::string_view kBehind[] = {"x", "×", "%", "per cent", "percent", "times", "-fold", "fold"};
  constexpr std::string_view kBefore[] = {
      "speedup of", "speedup is", "speedup:",      "speedup =", "speed-up of", "factor of",
      "factor",     "efficiency", "efficiency of", "speedup",   "by"};
  for (std::size_t at = 0; at < words.size(); ++at) {
    if (!is_digit(words[at])) continue;
    const auto end = std::min(words.find_first_not_of("0123456789.,", at), words.size());
    const auto number = std::string_view(words).substr(at, end - at);
    auto behind = table::trimmed(std::string_view(words).substr(end));
    const auto before = table::trimmed(std::string_view(words).substr(0, at));
    const bool is_decimal = number.find('.') != std::string_view::npos && is_digit(number.back());
    const bool is_marked = std::ranges::any_of(kBehind, [&](std::string_view sign) {
      return behind.starts_with(sign) &&
             (sign != "x" || behind.size() == 1 || !std::isalnum(static_cast<unsigned char>(behind[1])));
    });
    if (is_decimal || is_marked ||
        std::ranges::any_of(kBefore, [&](std::string_view word) { return before.ends_with(word); }))
      return true;
    at = end;
  }
  return false;
}

/// "; the times give 1.93 over n1", if they do.
std::string measured_beside(const Study& study, std::size_t i) {
  if (study.baselines(i).empty()) return "";
  const auto k = study.baselines(i).front();
  const auto ratios = speedups(study.row(i), study.row(k));
  if (ratios.size() != 1) return "";
  return fmt::format("; the {} give {} = {} over {}", ratios.front().images > 0 ? "times" : "rates",
                     ratios.front().how, shown(ratios.front().value), study.row(k).name());
}

void check_no_figure(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    const auto& claim = row.text("claim");
    const std::string words = base::lower_case(claim);
    if (claim.empty() || claimed_ratio(row) || row.knows("claimed_bandwidth")) continue;
    const bool is_of_ratios =
        has_any(words, {"linear", "scal", "fast", "speed", "doubl", "tripl", "halv", "twice", "efficien",
                        "bottleneck", "quick", "slow", "no gain", "better performance"});
    if (names_a_ratio(words) || !is_of_ratios) continue;
    findings.add(Severity::note, {{i}, claim},
                 fmt::format("'{}' is claimed without a ratio, so that it cannot be checked against the "
                             "times{}.",
                             claim, measured_beside(study, i)));
  }
}

constexpr Rule kProtocolRules[] = {
    {"protocol.repeats", Severity::note, "time_s|rate_per_s", "fewer than three repeats", check_repeats},
    {"protocol.warmup", Severity::warning, "warmup", "no warm-up", check_warmup},
    {"protocol.best", Severity::warning, "statistic", "the best of several", check_best},
    {"protocol.spread", Severity::warning, "repeat spread_s spread_is",
     "a spread called an interval of the mean", check_spread, "", "three repeats of one configuration"},
    {"protocol.drift", Severity::warning, "repeat time_s", "times that drift", check_drift, "",
     "five repeats of one configuration"},
    {"protocol.seeds", Severity::warning, "repeat seed accuracy", "repeats of one seed", check_seeds},
    {"protocol.order", Severity::note, "program repeat", "rivals not interleaved", check_order},
    {"protocol.idle", Severity::warning, "utilisation", "a snapshot of an idle device", check_idle},
    {"protocol.no-figure", Severity::note, "claim", "a claim without a ratio", check_no_figure},
};

}  // namespace

std::span<const Rule> protocol_rules() { return kProtocolRules; }

}  // namespace paceline::check
