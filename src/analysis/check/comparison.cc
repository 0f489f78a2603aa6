/// Rows against each other: settings inside one ratio, one configuration with two figures, epochs that
/// differ.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/check/ratios.h"
#include "analysis/check/rule.h"

namespace paceline::analysis::rules {
namespace {

void check_settings(const Study& study, Findings& findings) {
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    const auto printed =
        row.knows("claimed_speedup") ? row.number("claimed_speedup") : row.number("claimed_efficiency");
    if (!printed || study.baselines(i).empty()) continue;
    const auto k = study.baselines(i).front();
    const auto differs = differing_settings(row, study.row(k));
    if (differs.empty() || follows_own(study, i, *printed, !row.knows("claimed_speedup"))) continue;
    std::string values;
    for (const auto& name : differs) {
      const auto column = Column::find(name);
      const auto text = [&](const Row& of) { return column ? of.text(*column) : of.settings.at(name); };
      values += fmt::format("{}{} ({} against {})", values.empty() ? "" : ", ", name, text(row),
                            text(study.row(k)));
    }
    findings.add(
        Severity::error, {{i, k}, printed->text},
        fmt::format(
            "printed {} against {}, which differs in more than workers: {}; the ratio measures that too, so "
            "none is made.",
            printed->text, study.row(k).name(), values));
  }
}

/// Figures of which one configuration has one value.
constexpr Column kFigures[] = {Column("time_s"),          Column("rate_per_s"), Column("compute_s"),
                               Column("communication_s"), Column("accuracy"),   Column("loss"),
                               Column("updates")};

double tolerance_of(Column column, const Row& a, const Row& b) {
  if (column == Column("updates")) return 0;
  if (column == Column("accuracy") || column == Column("loss")) return 0.02;
  return std::hypot(noise(a), noise(b));
}

/// Rows that say which repeat or seed they are, or how the figure was taken, are no conflict.
bool is_told_apart(const Row& a, const Row& b) {
  for (const Column column :
       {Column("repeat"), Column("seed"), Column("statistic"), Column("communication_is")})
    if (a.text(column) != b.text(column)) return true;
  return false;
}

void check_conflict(const Study& study, Findings& findings) {
  constexpr std::size_t kCompared =
      50;  // of a group, each with the first: a table of repeats has no conflicts anyway
  for (const auto& group : study.same_configuration()) {
    for (std::size_t k = 1; k < std::min(group.size(), kCompared); ++k) {
      const auto& a = study.row(group.front());
      const auto& b = study.row(group[k]);
      if (is_told_apart(a, b)) continue;
      for (const auto column : kFigures) {
        const auto x = a.number(column), y = b.number(column);
        if (!x || !y) continue;
        const double rounding = x->half_unit + y->half_unit;
        const double apart = std::abs(x->value - y->value);
        if (apart <= rounding + tolerance_of(column, a, b) * std::max(x->value, y->value)) continue;
        findings.add(
            Severity::error, {{group[k], group.front()}, y->text},
            fmt::format(
                "{} is {} here and {} in {}, of the same configuration and without a repeat or seed: say "
                "what differs.",
                column.name(), y->text, x->text, a.name()));
        break;
      }
    }
  }
}

/// Epochs that the time of a run and that of an epoch imply, of one number of workers.
struct ImpliedEpochs {
  std::size_t run, epoch;
  double value;
};

void check_epochs(const Study& study, Findings& findings) {
  constexpr double kApartEpochs = 1.15;
  std::map<std::string, std::size_t> epoch_of;
  const std::vector<Column> but{Column("time_of"), Column("epochs"), Column("covers"), Column("excludes")};
  for (std::size_t i = 0; i < study.size(); ++i)
    if (study.row(i).text("time_of") == "epoch" && study.row(i).value("time_s").value_or(0) > 0)
      epoch_of.try_emplace(configuration(study.row(i), but), i);
  std::map<std::string, std::vector<ImpliedEpochs>> compared;
  const std::vector<Column> but_workers{Column("time_of"),      Column("epochs"),      Column("covers"),
                                        Column("excludes"),     Column("workers"),     Column("nodes"),
                                        Column("device"),       Column("local_batch"), Column("global_batch"),
                                        Column("learning_rate")};
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    if (row.text("time_of") != "run" || row.value("time_s").value_or(0) <= 0) continue;
    const auto found = epoch_of.find(configuration(row, but));
    if (found == epoch_of.end()) continue;
    compared[configuration(row, but_workers)].push_back(
        {i, found->second, *row.value("time_s") / *study.row(found->second).value("time_s")});
  }
  for (const auto& [key, all] : compared) {
    for (std::size_t k = 1; k < all.size(); ++k) {
      const double more = std::max(all[k].value, all[0].value), fewer = std::min(all[k].value, all[0].value);
      if (more < kApartEpochs * fewer) continue;
      const auto& row = study.row(all[k].run);
      const auto& first = study.row(all[0].run);
      findings.add(
          Severity::warning,
          {{all[k].run, all[0].run}, row.text("time_s"), Figure{all[k].value, all[k].value, all[k].value}},
          fmt::format(
              "{} s of a run over {} s an epoch are {:.1f} epochs, and {} s over {} s of {} are {:.1f}: the runs "
              "have not done the same work, so their times are no speedup.",
              row.text("time_s"), study.row(all[k].epoch).text("time_s"), all[k].value, first.text("time_s"),
              study.row(all[0].epoch).text("time_s"), first.name(), all[0].value));
    }
  }
}

constexpr Rule kComparisonRules[] = {
    {"compare.settings", Severity::error, "claimed_speedup|claimed_efficiency workers",
     "settings that differ inside one ratio", check_settings},
    {"compare.conflict", Severity::error, "time_s|rate_per_s|accuracy|loss|compute_s|communication_s",
     "one configuration, two figures", check_conflict},
    {"compare.epochs", Severity::warning, "time_s time_of",
     "runs of other numbers of epochs in one comparison", check_epochs},
};

}  // namespace

std::span<const Rule> comparison_rules() { return kComparisonRules; }

}  // namespace paceline::analysis::rules
