/// Makes tables of what trainers log: a row for each epoch, or each step where no epochs are named.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "table/import/import.h"
#include "table/import/metrics_log.h"
#include "table/own_cells.h"
#include "table/table.h"

namespace paceline::table {

namespace {

using base::ErrorKind;

/// A column of the table, and what fills it.
struct Source {
  Column column;
  std::string asked;   ///< as the user wrote it after --set; "" if it was not asked for
  std::string unit;    ///< the user's; "": none
  OwnHeading heading;  ///< how to read its cells
};
using Sources = std::map<std::size_t, std::vector<Source>>;  ///< by the number of the name in the log

constexpr Column kMapped[] = {Column("loss"),   Column("accuracy"),      Column("updates"),   Column("steps"),
                              Column("time_s"), Column("learning_rate"), Column("rate_per_s")};

/// The column that the user names: its number, and the unit in "top1%" or "time[min]".
std::pair<std::size_t, std::string> named_source(const MetricLog& log, std::string_view column,
                                                 const std::string& asked, const std::string& where) {
  const auto find = [&](std::string_view name) {
    auto found = std::ranges::find(log.names, name);
    if (found == log.names.end())
      found = std::ranges::find_if(log.names, [&](const std::string& one) {
        return base::lower_case(one) == base::lower_case(std::string(name));
      });
    return static_cast<std::size_t>(found - log.names.begin());
  };
  if (const auto at = find(asked); at < log.names.size()) return {at, ""};
  const auto open = asked.rfind('[');
  if (asked.ends_with('%')) {
    if (const auto at = find(trimmed(std::string_view(asked).substr(0, asked.size() - 1)));
        at < log.names.size())
      return {at, "%"};
  } else if (asked.ends_with(']') && open != std::string::npos) {
    if (const auto at = find(trimmed(std::string_view(asked).substr(0, open))); at < log.names.size())
      return {at, asked.substr(open + 1, asked.size() - open - 2)};
  }
  base::fail(ErrorKind::usage, "--set {}={}: {} has no such column{}", column, asked, where,
             base::suggestion(asked, log.names));
}

/// How cells of a column in `unit` are read.
OwnHeading heading_in(Column column, const std::string& asked, const std::string& unit,
                      bool has_decimal_commas) {
  OwnHeading heading;
  const bool is_part = column == Column("accuracy"),
             is_timed = is_time(column.name()) || column == Column("rate_per_s");
  if (!unit.empty()) {
    heading = own_heading_of(fmt::format("{} ({})",
                                         is_part    ? "accuracy"
                                         : is_timed ? column == Column("time_s") ? "time" : "throughput"
                                                    : "",
                                         unit));
    const bool is_known =
        is_part ? unit == "%" || unit == "1" : is_timed && !heading.is_unknown && heading.factor > 0;
    if (!is_known)
      base::fail(ErrorKind::usage, "--set {}={}: the unit must be {}, got '{}'", column.name(), asked,
                 is_part                      ? "% or 1"
                 : column == Column("time_s") ? "s, ms, min or h"
                 : is_timed                   ? "images/s or images/min"
                                              : "left out, because the column has none",
                 unit);
  }
  heading.ours = std::string(column.name());
  heading.has_decimal_comma = has_decimal_commas;
  return heading;
}

/// The unit in the name of a column that is not ours: "time (ms)", "epoch_min", "acc %"; "" if there is none.
std::string unit_in(Column column, std::string_view name) {
  if (column == Column("accuracy")) return name.find('%') == std::string_view::npos ? "" : "%";
  const auto begin = name.find_last_of("([_ ");
  if (column != Column("time_s") || begin == std::string_view::npos) return "";
  auto unit = name.substr(begin + 1);
  unit = unit.substr(0, unit.find_first_of(")]"));
  const auto heading = own_heading_of(fmt::format("time ({})", unit));
  return heading.factor > 0 && !heading.is_unknown ? std::string(unit) : "";
}

Sources sources_of(const MetricLog& log, const GivenFacts& given, Table& table) {
  Sources sources;
  for (const auto column : kMapped) {
    const std::string name(column.name());
    const auto found = given.find(name);
    if (found != given.end() && !read_number(found->second)) {
      const auto& asked = found->second;
      table.taken.insert(name);
      auto [at, unit] = named_source(log, name, asked, table.where);
      if (unit.empty()) unit = unit_in(column, log.names[at]);
      sources[at].push_back({column, asked, unit, heading_in(column, asked, unit, log.has_decimal_commas)});
      continue;
    }
    for (std::size_t at = 0; at < log.names.size(); ++at)
      if (base::lower_case(log.names[at]) == name) {
        sources[at].push_back({column, "", "", heading_in(column, "", "", log.has_decimal_commas)});
        break;
      }
  }
  return sources;
}

/// "tensor(0.5, device='cuda:0')" and "np.float64(0.5)": the number inside; other texts as they are.
std::string_view bare(std::string_view text) {
  const auto open = text.find('(');
  if (open == 0 || open == std::string_view::npos || !text.ends_with(')')) return text;
  const auto begin = text.find_first_not_of("([ ", open);
  const auto inside = text.substr(std::min(begin, text.size()));
  const auto number = trimmed(inside.substr(0, inside.find_first_of(",)]")));
  return read_number(number) || base::lower_case(std::string(number)) == "nan" ? number : text;
}

bool is_not_finite(std::string_view text) {
  auto word = base::lower_case(std::string(text));
  if (word.starts_with('-') || word.starts_with('+')) word.erase(0, 1);
  return word == "nan" || word == "inf" || word == "infinity";
}

bool is_missing(std::string_view text) {
  const auto word = base::lower_case(std::string(text));
  return word.empty() || word == "null" || word == "none" || word == "na" || word == "n/a" || word == "-" ||
         word == "--";
}

/// Whether the comma of "0,50" or "1,2" separates decimals: it cannot separate thousands.
bool has_decimal_comma(std::string_view text) {
  const auto comma = text.find(',');
  if (comma == std::string_view::npos ||
      text.find_first_not_of("0123456789,+-% ") != std::string_view::npos ||
      text.find(',', comma + 1) != std::string_view::npos)
    return false;
  return !read_number(text.ends_with('%') ? text.substr(0, text.size() - 1) : text);
}

/// Reads the cells of a log into rows.
class MetricRows {
 public:
  MetricRows(const MetricLog& log, Table& table, const GivenFacts& given)
      : log_(log), table_(table), sources_(sources_of(log, given, table)) {
    for (std::size_t at = 0; at < log.names.size(); ++at)
      if (const auto key = metric_key_of(log.names[at])) {
        auto& place = *key == MetricKey::epoch ? epoch_ : step_;
        if (!place) place = at;
      }
  }

  void read() {
    look_for_commas();
    choose_percent();
    for (std::size_t i = 0; i < log_.entries.size(); ++i)
      take(log_.entries[i], std::ranges::binary_search(log_.behind_heads, i));
    for (std::size_t i = 0; i < table_.rows.size() && run_ > 1; ++i)
      table_.rows[i].set("repeat", static_cast<double>(runs_of_rows_[i]));
    add_notes();
  }

 private:
  struct Key {
    std::optional<double> epoch, step;
    const MetricCell* cell = nullptr;  ///< that names it; null: counted
  };

  void look_for_commas() {
    bool has_decimals = log_.has_decimal_commas, has_commas = false;
    const MetricCell* either = nullptr;  // "1,234" may be either
    for (const auto& entry : log_.entries)
      for (const auto& cell : entry) {
        const auto found = sources_.find(cell.name);
        if (found == sources_.end() || cell.text.find(',') == std::string::npos) continue;
        const auto text = bare(cell.text);
        if (text.find(',') == std::string_view::npos) continue;
        has_commas = true;
        has_decimals = has_decimals || has_decimal_comma(text);
        const bool is_count = found->second.front().column.kind() == ColumnKind::count;
        if (either == nullptr && !is_count && read_number(text)) either = &cell;
      }
    if (!has_decimals && either != nullptr)
      base::fail(
          ErrorKind::data,
          "{}: '{}' of {} may be a decimal comma or thousands; write it with a point, or without a comma",
          log_.place(table_.where, *either), shown_line(either->text), log_.names[either->name]);
    if (!has_decimals) return;
    for (auto& [name, sources] : sources_)
      for (auto& source : sources) source.heading.has_decimal_comma = true;
    if (has_commas) table_.notes.emplace_back("commas in figures are decimal ones");
  }

  /// Accuracies above 1 are in percent. Those of one epoch may be either.
  void choose_percent() {
    constexpr double kSurely = 1.5, kAll = 100;
    for (auto& [name, sources] : sources_)
      for (auto& source : sources) {
        if (source.column != Column("accuracy") || !source.unit.empty()) continue;
        double most = 0;
        for (const auto& entry : log_.entries)
          for (const auto& cell : entry)
            if (cell.name == name && !cell.text.ends_with('%'))
              if (const auto number = read_number(cell_of(source.heading, bare(cell.text))))
                most = std::max(most, number->value);
        const auto& called = log_.names[name];
        const auto words = base::lower_case(called);
        const bool may_be =
            words.find("top1") != std::string::npos || words.find("top-1") != std::string::npos ||
            words.find("top_1") != std::string::npos || words.find("acc1") != std::string::npos ||
            words.find("acc@1") != std::string::npos || words.find("prec@1") != std::string::npos ||
            words.find("prec1") != std::string::npos;
        const bool is_open =
            (most > 1 && most < kSurely) ||
            (most > 0 && most <= 1 && may_be && words.find("accuracy_top") == std::string::npos);
        if (is_open)
          base::fail(
              ErrorKind::usage,
              "{}: the largest figure of {} is {:g}, which may be a part of 1 or percent: say which with "
              "--set 'accuracy={}[1]' or --set 'accuracy={}%'",
              table_.where, called, most, called, called);
        if (most < kSurely || most > kAll) continue;
        source.heading.factor = 0.01;
        table_.notes.push_back(fmt::format(
            "{} reaches {:g}, so it is read as percent: --set 'accuracy={}%' says it", called, most, called));
      }
  }

  /// The number of an epoch or a step, also of "3/90".
  std::optional<double> number_of_key(const MetricCell& cell) const {
    auto text = bare(cell.text);
    if (is_missing(text)) return std::nullopt;
    if (const auto slash = text.find('/'); slash != std::string_view::npos)
      text = trimmed(text.substr(0, slash));
    const auto number = read_number(text);
    if (!number)
      base::fail(ErrorKind::data, "{}: {} is '{}', which is no number; correct or remove it",
                 log_.place(table_.where, cell), log_.names[cell.name], shown_line(cell.text));
    return number->value;
  }

  Key key_of(const std::vector<MetricCell>& entry) {
    Key key;
    for (const auto& cell : entry) {
      if (epoch_ == cell.name) key.epoch = number_of_key(cell);
      if (step_ == cell.name) key.step = number_of_key(cell);
      if ((epoch_ == cell.name && key.epoch) || (step_ == cell.name && key.cell == nullptr)) key.cell = &cell;
    }
    if (!epoch_ && !step_) key.epoch = static_cast<double>(++counted_);
    return key;
  }

  /// Whether a key lies before the last one, as where a second run was appended, or is the last one below
  /// columns that are named again. Beside epochs a step alone says nothing: some programs number evaluations
  /// so.
  [[nodiscard]] bool is_back(const Key& key, bool is_behind_heads) const {
    if (key.epoch && last_.epoch && (is_behind_heads || *key.epoch != *last_.epoch))
      return *key.epoch < *last_.epoch || (is_behind_heads && *key.epoch == *last_.epoch);
    return key.epoch.has_value() == last_.epoch.has_value() && key.step && last_.step &&
           *key.step < *last_.step;
  }

  void take(const std::vector<MetricCell>& entry, bool is_behind_heads) {
    const auto key = key_of(entry);
    if (!key.epoch && !key.step) {
      if (++without_key_ == 1) first_without_key_ = log_.place(table_.where, entry.front());
      return;
    }
    if (is_back(key, is_behind_heads)) {
      ++run_;
      if (run_ == 2 && key.cell != nullptr)
        again_ = fmt::format("{} {} occurs again at {}", log_.names[key.cell->name],
                             shown_line(key.cell->text), log_.place(table_.where, *key.cell));
      last_ = {};
      row_of_.clear();
    }
    const bool is_later = key.step && last_.step && *key.step > *last_.step;
    if (key.epoch) last_.epoch = key.epoch;
    if (key.step && (key.epoch || !last_.epoch)) last_.step = key.step;
    auto& row = row_for(key, entry.front());
    for (const auto& cell : entry)
      if (const auto found = sources_.find(cell.name); found != sources_.end())
        for (const auto& source : found->second) set(row, source, cell, is_later);
  }

  Row& row_for(const Key& key, const MetricCell& first) {
    const auto [found, is_new] = row_of_.try_emplace(
        {key.epoch.has_value(), key.epoch.value_or(key.step.value_or(0))}, table_.rows.size());
    if (is_new) {
      auto& fresh = table_.rows.emplace_back();
      runs_of_rows_.push_back(run_);
      fresh.line = log_.counts_entries ? 0 : first.line;
      const auto text = fmt::format("{:.12g}", found->first.second);
      fresh.set("run", fmt::format("{} {}", key.epoch ? "epoch" : "step", text));
      fresh.settings[key.epoch ? "epoch" : "step"] = text;
    }
    auto& row = table_.rows[found->second];
    constexpr double kMostSteps = 1e15;
    const bool has_column = std::ranges::any_of(sources_, [](const auto& one) {
      return std::ranges::find(one.second, Column("steps"), &Source::column) != one.second.end();
    });
    if (!has_column && key.step && *key.step >= 0 && *key.step < kMostSteps &&
        *key.step == std::floor(*key.step))
      row.set("steps", fmt::format("{:.0f}", *key.step));
    return row;
  }

  void set(Row& row, const Source& source, const MetricCell& cell, bool is_later) {
    const auto text = bare(cell.text);
    if (is_missing(text)) return;
    if (is_not_finite(text)) {
      if (++not_finite_ == 1)
        first_not_finite_ =
            fmt::format("{} is {} at {}", log_.names[cell.name], text, log_.place(table_.where, cell));
      return;
    }
    const auto value = cell_of(source.heading, text);
    const bool is_percent = text.ends_with('%') && source.column != Column("accuracy");
    if (!read_number(value) || is_percent)
      base::fail(ErrorKind::data, "{}: {} is '{}', which is no number; correct it, or leave the cell empty",
                 log_.place(table_.where, cell), log_.names[cell.name], shown_line(cell.text));
    if (!is_later && row.knows(source.column) && row.text(source.column) != value && ++replaced_ == 1)
      first_replaced_ = fmt::format("{} of {} again at {}", log_.names[cell.name], row.name(),
                                    log_.place(table_.where, cell));
    try {
      row.set(source.column, value);
    } catch (const base::Error& error) {
      base::fail(ErrorKind::data, "{}: {} {}", log_.place(table_.where, cell), source.column.name(),
                 error.what());
    }
  }

  void add_notes() {
    auto& notes = table_.notes;
    const auto has = [&](Column column) {
      return std::ranges::any_of(sources_, [&](const auto& one) {
        return std::ranges::find(one.second, column, &Source::column) != one.second.end();
      });
    };
    if (run_ > 1)
      notes.push_back(fmt::format("{}: the log holds {} runs, which 'repeat' tells apart", again_, run_));
    if (replaced_ > 0)
      notes.push_back(
          fmt::format("{}, with another value ({} cells): the last one counts; if several runs or ranks are "
                      "mixed in the log, import each by itself",
                      first_replaced_, replaced_));
    if (not_finite_ > 0)
      notes.push_back(fmt::format("{}: the training diverged there; {} such cell{} unknown",
                                  first_not_finite_, not_finite_, not_finite_ == 1 ? " stays" : "s stay"));
    if (without_key_ > 0)
      notes.push_back(fmt::format("{} entr{} without an epoch or a step left out, the first at {}",
                                  without_key_, without_key_ == 1 ? "y" : "ies", first_without_key_));
    if (counted_ > 0)
      notes.emplace_back("no column names epochs or steps: each entry counts as an epoch, from 1 on");
    if (!has(Column("loss")) && !has(Column("accuracy"))) {
      std::string names;
      for (std::size_t at = 0; at < std::min<std::size_t>(log_.names.size(), kMostNames); ++at)
        names += (names.empty() ? "" : ", ") + base::visible(log_.names[at]);
      notes.push_back(fmt::format(
          "neither loss nor accuracy is known: give --set loss=COLUMN and --set accuracy=COLUMN, where COLUMN is one of "
          "{}{}",
          names, log_.names.size() > kMostNames ? ", ..." : ""));
    }
    notes.emplace_back(
        "epochs and steps are as the trainer counts them, which may begin with 0; it is not known of which "
        "set the figures are: --set quality_of=validation says it");
  }

  static constexpr std::size_t kMostNames = 40;

  const MetricLog& log_;
  Table& table_;
  Sources sources_;
  std::optional<std::size_t> epoch_, step_;  ///< the names of the keys
  Key last_;
  std::size_t run_ = 1, counted_ = 0;
  std::vector<std::size_t> runs_of_rows_;
  std::map<std::pair<bool, double>, std::size_t>
      row_of_;  ///< of this run: by whether it is an epoch, and its number
  std::size_t without_key_ = 0, not_finite_ = 0, replaced_ = 0;
  std::string first_without_key_, first_not_finite_, first_replaced_, again_;
};

Table table_of(MetricLog log, const std::string& where, const GivenFacts& given) {
  Table table{.where = where, .notes = std::move(log.notes)};
  if (log.entries.empty())
    base::fail(ErrorKind::data, "{}: the file has no metrics; was the training ended early?", where);
  spread_values(log);
  MetricRows(log, table, given).read();
  if (table.rows.empty()) base::fail(ErrorKind::data, "{}: no entry of it names an epoch or a step", where);
  return table;
}

Table read_metrics_csv(std::span<const std::filesystem::path> files, const GivenFacts& given) {
  const auto where = files.front().string();
  return table_of(metrics_of_csv(plain_log(content_of(files.front())), where), where, given);
}

Table read_metrics_json(std::span<const std::filesystem::path> files, const GivenFacts& given) {
  constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  const auto where = files.front().string();
  return table_of(metrics_of_json(plain_log(content_of(files.front(), kMostBytes)), where), where, given);
}

}  // namespace

Importer metrics_csv() {
  return {.name = "a trainer's metrics in CSV",
          .is_it = has_metrics_csv,
          .read = read_metrics_csv,
          .is_in_logs = true};
}

Importer metrics_json() {
  return {.name = "a trainer's metrics in JSON",
          .is_it = has_metrics_json,
          .read = read_metrics_json,
          .is_in_logs = true};
}

}  // namespace paceline::table
