/// Compares rows with each other: ratios of rows with different settings, one configuration with two
/// different figures, different numbers of epochs.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>

#include "check/ratios.h"
#include "check/rule.h"

namespace paceline::check {
namespace {

/// The row to which a claim of row `i` refers. It may have other settings, if the claim follows from that row
/// and not from the row's own baseline.
std::optional<std::size_t> compared_with(const Study& study, std::size_t i, const table::Number& printed,
                                         bool is_efficiency) {
  const auto& own = study.baselines(i);
  if (!own.empty() && (study.row(i).knows("baseline") || study.of_other_settings(i).empty()))
    return own.front();
  if (own.empty() && printed.value == 1) return std::nullopt;  // a baseline itself
  if (baseline_of(study, i, own, printed, is_efficiency)) return std::nullopt;
  return baseline_of(study, i, study.of_other_settings(i), printed, is_efficiency);
}

void check_settings(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    const auto printed = claimed_ratio(row);
    if (!printed) continue;
    const auto k = compared_with(study, i, *printed, !row.knows("claimed_speedup"));
    if (!k) continue;
    const auto& base = study.row(*k);
    if (!speedups(row, base).empty()) findings.compared();
    const auto differs = differing_settings(row, base);
    // With the same number of workers the ratio measures what differs. If that is one thing, the comparison
    // is sound; if it is several, the cause is unknown.
    const bool is_comparison = workers(row) == workers(base);
    if (differs.empty() || (is_comparison && differs.size() == 1)) continue;
    const bool is_serial = differs == std::vector<std::string>{"program"};
    std::string values;
    for (const auto& name : differs) {
      const auto column = Column::find(name);
      const auto text = [&](const Row& of) { return column ? of.text(*column) : of.settings.at(name); };
      values += fmt::format("{}{} ({} against {})", values.empty() ? "" : ", ", name, text(row), text(base));
    }
    findings.add(
        is_comparison || is_serial ? Severity::warning : Severity::error, {{i, *k}, printed->text},
        fmt::format(
            "printed a ratio of {} over {}, which differs in more than {}: {}; the ratio also measures "
            "that{}.",
            printed->text, base.name(), is_comparison ? "one thing" : "workers", values,
            is_comparison ? ", and it cannot be told which of them caused it"
            : is_serial
                ? ": say that it is over the other program, and give the ratio over this one beside it"
                : ", so none is made"));
  }
}

/// Figures that have one value for one configuration.
constexpr Column kFigures[] = {Column("time_s"),          Column("rate_per_s"), Column("compute_s"),
                               Column("communication_s"), Column("accuracy"),   Column("loss"),
                               Column("updates")};

double tolerance_of(Column column, const Row& a, const Row& b) {
  if (column == Column("updates")) return 0;
  if (column == Column("accuracy") || column == Column("loss")) return 0.02;
  return std::hypot(noise(a), noise(b));
}

/// Rows that say which repeat or seed they are, or how the figure was taken, do not conflict.
bool is_told_apart(const Row& a, const Row& b) {
  const auto told = [](const Row& row) {
    return texts_of(row, {"repeat", "seed", "statistic", "communication_is"});
  };
  return told(a) != told(b);
}

std::string place_of_row(const Row& row) { return fmt::format("line {}", row.line); }

/// Whether the rows say anything of what was run; otherwise their names may be all that differs.
bool says_what_was_run(const Row& row) {
  return knows_any(row, {"workers", "nodes", "local_batch", "global_batch", "batch", "epochs",
                         "learning_rate", "message_bytes"});
}

/// One row said twice with two accuracies: closer to each other than two trainings, but not one figure.
bool is_one_run_twice(Column column, const Row& a, const Row& b) {
  return (column == Column("accuracy") || column == Column("loss")) && a.text("run") == b.text("run") &&
         a.text("statistic").empty() && !a.knows("seeds");
}

void check_conflict(const Study& study, Findings& findings) {
  // Rows of a group that are compared with its first: a table of repeats has no conflicts anyway.
  constexpr std::size_t kCompared = 50;
  for (const auto& group : study.same_configuration()) {
    for (std::size_t k = 1; k < std::min(group.size(), kCompared); ++k) {
      const auto& a = study.row(group.front());
      const auto& b = study.row(group[k]);
      if (is_told_apart(a, b)) continue;
      if (a.text("run") != b.text("run") && !says_what_was_run(a)) continue;
      for (const auto column : kFigures) {
        const auto x = a.number(column), y = b.number(column);
        if (!x || !y) continue;
        const double rounding = is_one_run_twice(column, a, b) ? 1.01 * std::max(x->half_unit, y->half_unit)
                                                               : x->half_unit + y->half_unit;
        const double apart = std::abs(x->value - y->value);
        findings.compared();
        const bool is_small = apart <= rounding + tolerance_of(column, a, b) * std::max(x->value, y->value);
        if (is_small && (apart <= rounding || !is_one_run_twice(column, a, b))) continue;
        if (is_small) {
          findings.add(Severity::warning,
                       {.rows = {group[k], group.front()}, .printed = y->text, .cause = "one run"},
                       fmt::format("one run has two figures: {} is {} here and {} in {}; if these are two "
                                   "trainings, give their seeds.",
                                   column.name(), y->text, x->text, place_of_row(study.row(group.front()))));
          break;
        }
        findings.add(
            Severity::error,
            {.rows = {group[k], group.front()}, .printed = y->text, .cause = std::string(column.name())},
            fmt::format(
                "{} is {} here and {} in {}, of the same configuration and without a repeat or seed: say "
                "what differs.",
                column.name(), y->text, x->text,
                a.text("run") == b.text("run") ? place_of_row(a) : a.name()));
        break;
      }
    }
  }
}

/// The number of epochs implied by the time of a run and the time of an epoch, for one number of workers.
struct ImpliedEpochs {
  std::size_t run, epoch;
  double value;
};

void check_equal_epochs(const Study& study, Findings& findings) {
  constexpr double kApartEpochs = 1.15;
  std::map<std::string, std::size_t> epoch_of;
  // Rows of an epoch and rows of a run know different columns. Only columns that say what was trained, and on
  // what data, are compared.
  const auto study_of = [](const Row& row) {
    return texts_of(row, {Column("program"), Column("model"), Column("train_samples")});
  };
  const auto cell_of = [&](const Row& row) {
    auto text = study_of(row) + texts_of(row, {Column("device"), Column("workers"), Column("repeat")});
    for (const auto batch : {local_batch(row), global_batch(row)})
      text += fmt::format("{} ", batch.value_or(0));
    for (const auto& [name, value] : row.settings) text += name + '=' + value + '\x1f';
    return text;
  };
  for (const auto& [i, row] : study.rows())
    if (row.text("time_of") == "epoch" && row.value("time_s").value_or(0) > 0)
      epoch_of.try_emplace(cell_of(row), i);
  std::map<std::string, std::vector<ImpliedEpochs>> compared;
  for (const auto& [i, row] : study.rows()) {
    if (row.text("time_of") != "run" || row.value("time_s").value_or(0) <= 0) continue;
    const auto found = epoch_of.find(cell_of(row));
    if (found == epoch_of.end()) continue;
    compared[study_of(row)].push_back(
        {i, found->second, *row.value("time_s") / *study.row(found->second).value("time_s")});
  }
  for (const auto& [key, all] : compared) {
    findings.compared(all.size() - 1);
    for (std::size_t k = 1; k < all.size(); ++k) {
      const double more = std::max(all[k].value, all[0].value), fewer = std::min(all[k].value, all[0].value);
      if (more < kApartEpochs * fewer) continue;
      const auto& row = study.row(all[k].run);
      const auto& first = study.row(all[0].run);
      // A stated difference in the number of epochs is fine: all ratios take it into account.
      if (row.knows("epochs") && first.knows("epochs") && row.text("epochs") != first.text("epochs"))
        continue;
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
     "settings that differ inside one ratio", check_settings, "run device"},
    {"compare.conflict", Severity::error, "time_s|rate_per_s|accuracy|loss|compute_s|communication_s",
     "one configuration, two figures", check_conflict, "time_s", "two rows of one configuration"},
    {"compare.epochs", Severity::warning, "time_s time_of",
     "runs of other numbers of epochs in one comparison", check_equal_epochs, "",
     "times of runs and of epochs of two numbers of workers"},
};

/// Whether what both rows say of what was run is the same, and they say the workers and no batch or the same.
bool is_same_as_far_as_known(const Row& a, const Row& b) {
  if (workers(a) != workers(b) || !workers(a) || a.text("time_of") != b.text("time_of")) return false;
  const bool has_batch = local_batch(a) || global_batch(a) || a.knows("batch"),
             is_same_batch = local_batch(a) == local_batch(b) && a.text("batch") == b.text("batch");
  if (has_batch != (local_batch(b) || global_batch(b) || b.knows("batch")) || !is_same_batch) return false;
  for (const auto column : Column::all())
    if (column.role() == table::ColumnRole::configuration && a.knows(column) && b.knows(column) &&
        a.text(column) != b.text(column))
      return false;
  return differing_settings(a, b).empty() && !is_told_apart(a, b);
}

/// The figure in which two rows of one configuration differ by more than digits and noise.
std::optional<Column> conflict_of(const Row& a, const Row& b) {
  for (const auto column : kFigures) {
    const auto x = a.number(column), y = b.number(column);
    if (!x || !y) continue;
    const double apart = std::abs(x->value - y->value);
    if (apart > x->half_unit + y->half_unit + tolerance_of(column, a, b) * std::max(x->value, y->value))
      return column;
  }
  return std::nullopt;
}

/// Residuals whose share stands in another table: found only in all tables together.
void add_residuals_between(std::span<const table::Table> tables, std::vector<Finding>& found) {
  table::Table all{.where = tables.front().where};
  std::map<std::string, int> names;
  for (const auto& table : tables) {
    if (table.where != all.where) return;
    all.rows.insert(all.rows.end(), table.rows.begin(), table.rows.end());
    const Study own(table);
    for (std::size_t i = 0; i < own.size(); ++i)
      if (is_residual(own, i)) return;  // the table itself says so
  }
  const Study study(all);
  Findings findings("parts.residual", study, found);
  for (const auto& rule : time_rules())
    if (rule.name == "parts.residual") rule.run(study, findings);
}

}  // namespace

std::vector<Finding> check_between(std::span<const table::Table> tables) {
  constexpr std::size_t kMost = 300;  // rows of a table that are compared with those of the others
  std::vector<Finding> found;
  if (tables.size() < 2) return found;
  for (std::size_t t = 1; t < tables.size(); ++t)
    for (const auto& row : tables[t].rows | std::views::take(kMost)) {
      bool is_found = false;
      for (std::size_t before = 0; before < t && !is_found; ++before)
        for (const auto& other : tables[before].rows | std::views::take(kMost)) {
          if (!is_same_as_far_as_known(row, other)) continue;
          const auto column = conflict_of(row, other);
          if (!column) continue;
          is_found = true;
          found.push_back(
              {.rule = "compare.conflict",
               .severity = Severity::warning,
               .cause = "between tables",
               .rows = {row.name()},
               .printed = row.text(*column),
               .corrected = std::nullopt,
               .sentence = fmt::format(
                   "{}: {} is {} here and {} in {}:{}, for what both tables call one configuration: if "
                   "the text between them says what differs, give it a column (setting.NAME).",
                   row.name(), column->name(), row.text(*column), other.text(*column), tables[before].where,
                   other.line),
               .where = tables[t].where,
               .line = row.line});
          break;
        }
    }
  add_residuals_between(tables, found);
  return found;
}

std::span<const Rule> comparison_rules() { return kComparisonRules; }

}  // namespace paceline::check
