/// Makes tables of what trainers log: a row for each epoch, or each step where no epochs are named, and for
/// what a column tells apart.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "table/import/import.h"
#include "table/import/metrics_log.h"

namespace paceline::table {

namespace {

using base::ErrorKind;

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
    const auto log = keyed();
    telling_ = telling_columns(log);
    const auto places = places_of(log, telling_);
    for (std::size_t i = 0; i < log_.entries.size(); ++i) take(log_.entries[i], log.keys[i], places[i]);
    for (std::size_t i = 0; i < table_.rows.size() && run_ > 1; ++i)
      table_.rows[i].set("repeat", static_cast<double>(runs_of_rows_[i]));
    add_notes();
  }

 private:
  [[nodiscard]] bool is_filled(Column column) const {
    return std::ranges::any_of(sources_, [&](const auto& one) {
      return std::ranges::find(one.second, column, &Source::column) != one.second.end();
    });
  }

  /// The log with the keys of its entries. Its figures are loss and accuracy; if neither is known, the
  /// numbers that not every entry has, or all.
  KeyedLog keyed() {
    constexpr std::size_t kMostFigures = 64;
    KeyedLog log{.log = log_};
    for (const auto& entry : log_.entries) log.keys.push_back(key_of(entry));
    for (const auto key : {epoch_, step_})
      if (key) log.not_told.insert(*key);
    for (const auto& [name, sources] : sources_) {
      log.not_told.insert(name);
      for (const auto& source : sources)
        if (source.column == Column("loss") || source.column == Column("accuracy")) log.figures.insert(name);
    }
    if (!log.figures.empty()) return log;
    std::vector<std::size_t> numbers(log_.names.size());
    for (const auto& entry : log_.entries)
      for (const auto& cell : entry) numbers[cell.name] += read_number(bare(cell.text)) ? 1 : 0;
    std::vector<std::size_t> all, some;
    for (std::size_t at = 0; at < numbers.size() && some.size() < kMostFigures; ++at)
      if (numbers[at] > 0 && at != epoch_ && at != step_)
        (numbers[at] < log_.entries.size() ? some : all).push_back(at);
    all.resize(std::min(all.size(), kMostFigures));
    log.figures = some.empty() ? std::set(all.begin(), all.end()) : std::set(some.begin(), some.end());
    return log;
  }

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
        const bool may_be = has_any(words, {"top1", "top-1", "top_1", "acc1", "acc@1", "prec@1", "prec1"}) &&
                            !has_any(words, {"accuracy_top"});
        const bool is_open = (most > 1 && most < kSurely) || (most > 0 && most <= 1 && may_be);
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

  EntryKey key_of(const std::vector<MetricCell>& entry) {
    EntryKey key;
    for (const auto& cell : entry) {
      if (epoch_ == cell.name) key.epoch = number_of_key(cell);
      if (step_ == cell.name) key.step = number_of_key(cell);
    }
    if (!epoch_ && !step_) key.epoch = static_cast<double>(++counted_);
    return key;
  }

  void take(const std::vector<MetricCell>& entry, const EntryKey& key, const EntryPlace& place) {
    if (!key.epoch && !key.step) {
      if (++without_key_ == 1) first_without_key_ = log_.place(table_.where, entry.front());
      return;
    }
    run_ = std::max(run_, place.run);
    if (place.starts_anew && again_.empty())
      for (const auto& cell : entry)
        if (cell.name == (key.epoch ? epoch_ : step_))
          again_ = fmt::format("{} {} occurs again at {}", log_.names[cell.name], shown_line(cell.text),
                               log_.place(table_.where, cell));
    auto& row = row_for(key, place, entry.front());
    for (const auto& cell : entry)
      if (const auto found = sources_.find(cell.name); found != sources_.end())
        for (const auto& source : found->second)
          if (!place.is_late || !row.knows(source.column)) set(row, source, cell, place.is_later);
  }

  Row& row_for(const EntryKey& key, const EntryPlace& place, const MetricCell& first) {
    const auto number = key.epoch.value_or(key.step.value_or(0));
    const auto [found, is_new] =
        row_of_.try_emplace({place.told, place.run, key.epoch.has_value(), number}, table_.rows.size());
    if (is_new) {
      auto& fresh = table_.rows.emplace_back();
      runs_of_rows_.push_back(place.run);
      fresh.line = log_.counts_entries ? 0 : first.line;
      const auto text = fmt::format("{:.12g}", number);
      fresh.settings[key.epoch ? "epoch" : "step"] = text;
      fresh.set("run", fmt::format("{} {}{}", key.epoch ? "epoch" : "step", text, tell(fresh, place.told)));
    }
    auto& row = table_.rows[found->second];
    constexpr double kMostSteps = 1e15;
    if (!is_filled(Column("steps")) && key.step && *key.step >= row.value(Column("steps")).value_or(0) &&
        *key.step < kMostSteps && *key.step == std::floor(*key.step))
      row.set("steps", fmt::format("{:.0f}", *key.step));
    return row;
  }

  /// Writes what tells the row apart into it. Returns the words of its name for that.
  std::string tell(Row& row, const std::vector<std::string>& told) {
    std::string words;
    for (std::size_t i = 0; i < told.size(); ++i) {
      if (told[i].empty()) continue;
      const auto& name = log_.names[telling_[i]];
      words += " " + (read_number(told[i]) ? fmt::format("{} {}", name, told[i]) : told[i]);
      const auto column = Column::find(base::lower_case(name));
      if (column && (column->role() == ColumnRole::configuration || *column == Column("seed")) &&
          (column->kind() == ColumnKind::text || (column->kind() == ColumnKind::count && is_whole(told[i]))))
        row.set(*column, told[i]);
      else
        row.settings[name] = told[i];
      const auto part = part_of_set(told[i]);
      if (!part.empty() && part != "evaluation") row.set("quality_of", part);
    }
    return base::visible(words);
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

  [[nodiscard]] std::string note_of_telling(std::size_t at) const {
    constexpr std::size_t kMostValues = 4;
    std::set<std::string> values;
    for (const auto& [key, row] : row_of_)
      if (const auto& told = std::get<0>(key)[at]; !told.empty()) values.insert(base::visible(told));
    std::vector<std::string> shown(values.begin(), values.end());
    if (shown.size() > kMostValues) {
      shown.resize(kMostValues);
      shown.emplace_back("...");
    }
    return fmt::format("{} ({}) tells rows of one {} apart", base::visible(log_.names[telling_[at]]),
                       base::joined(shown, ", "), epoch_ ? "epoch" : "step");
  }

  void add_notes() {
    auto& notes = table_.notes;
    if (run_ > 1)
      notes.push_back(fmt::format("{}: the log holds {} runs, which 'repeat' tells apart", again_, run_));
    for (std::size_t i = 0; i < telling_.size(); ++i) notes.push_back(note_of_telling(i));
    if (replaced_ > 0)
      notes.push_back(
          fmt::format("{}, with another value ({} cells): the last one counts; if several runs or ranks are "
                      "mixed in the log, import each by itself",
                      first_replaced_, replaced_));
    if (not_finite_ > 0)
      notes.push_back(fmt::format("{}: the training diverged there; {} unknown", first_not_finite_,
                                  base::counted(not_finite_, "such cell stays", "such cells stay")));
    if (without_key_ > 0)
      notes.push_back(fmt::format("{} without an epoch or a step left out, the first at {}",
                                  base::counted(without_key_, "entry", "entries"), first_without_key_));
    if (counted_ > 0)
      notes.emplace_back("no column names epochs or steps: each entry counts as an epoch, from 1 on");
    if (!is_filled("loss") && !is_filled("accuracy")) {
      const auto names = base::joined(log_.names | std::views::take(kMostNames), ", ",
                                      [](const std::string& name) { return base::visible(name); });
      notes.push_back(fmt::format(
          "neither loss nor accuracy is known: give --set loss=COLUMN and --set accuracy=COLUMN, where COLUMN is one of "
          "{}{}",
          names, log_.names.size() > kMostNames ? ", ..." : ""));
    }
    const bool is_known_of =
        std::ranges::all_of(table_.rows, [](const Row& row) { return row.knows(Column("quality_of")); });
    notes.push_back(fmt::format(
        "epochs and steps are as the trainer counts them, which may begin with 0{}",
        is_known_of ? ""
                    : "; it is not known of which set the figures are: --set quality_of=validation says it"));
  }

  static constexpr std::size_t kMostNames = 40;

  const MetricLog& log_;
  Table& table_;
  Sources sources_;
  std::optional<std::size_t> epoch_, step_;  ///< the names of the keys
  std::vector<std::size_t> telling_;         ///< columns that tell rows apart
  std::size_t run_ = 1, counted_ = 0;
  std::vector<std::size_t> runs_of_rows_;
  /// By what tells the row apart, its run, whether it is an epoch, and its number.
  std::map<std::tuple<std::vector<std::string>, std::size_t, bool, double>, std::size_t> row_of_;
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
