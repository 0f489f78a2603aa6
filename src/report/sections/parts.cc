#include "report/sections/parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "analysis/compare/cell_labels.h"
#include "base/error.h"
#include "report/text.h"

namespace paceline::report {
namespace {

/// After how many updates resumes took other images of `part`, ascending.
std::set<std::int64_t> cuts_of(const measure::Record& record, const std::string& part) {
  std::set<std::int64_t> cuts;
  for (const auto& change : record.changes.value_or(std::vector<measure::ChangeRecord>()))
    if (change.setting == part) cuts.insert(change.update);
  return cuts;
}

struct SetupColumn {
  const char* entry;  ///< of the set-up
  const char* key;
  bool is_number = false;
};

constexpr SetupColumn kSetupColumns[] = {{"model", "model"},           {"data set", "data_set"},
                                         {"nodes", "nodes", true},     {"processes", "processes", true},
                                         {"threads", "threads", true}, {"communicator", "communicator"},
                                         {"algorithm", "algorithm"},   {"workers by node", "workers_by_node"},
                                         {"device", "device"},         {"device name", "device_name"},
                                         {"precision", "precision"}};

/// The entries that get a column.
std::set<std::string> entries_to_show(const std::vector<const analysis::Cell*>& cells) {
  std::set<std::string> wanted = analysis::different_entries(cells);
  std::set<int> threads;
  for (const analysis::Cell* cell : cells) {
    if (!cell->is_measured()) continue;
    threads.insert(cell->threads_per_worker);
    if (analysis::processes(cell->record()) > 1)
      for (const char* entry : {"nodes", "processes", "threads"}) wanted.insert(entry);
  }
  if (threads.size() > 1) wanted.insert("threads");
  return wanted;
}

TableCell setup_cell(const analysis::Cell& cell, const SetupColumn& column) {
  const std::string text(analysis::text_of(cell.setup, column.entry));
  if (!cell.is_measured()) return missing(cell.why_not_measured());
  if (column.is_number) return value(std::stod(text));
  const bool is_of_joining = column.entry == std::string_view("communicator") ||
                             column.entry == std::string_view("algorithm") ||
                             column.entry == std::string_view("workers by node");
  if (text.empty() || text == "none")
    return missing(is_of_joining && analysis::is_alone(cell.record())
                       ? "one worker has no other to exchange data with"
                       : "there is none");
  return words(text);
}

}  // namespace

TableCell words(std::string text) { return {.text = std::move(text)}; }

TableCell value(double number) { return {.value = number}; }

TableCell figure(const analysis::Estimate& estimate) {
  TableCell cell{.value = estimate.median};
  take_interval(cell, estimate);
  return cell;
}

std::string with_interval(const analysis::Estimate& estimate, Format format) {
  return one_line(cell_text(figure(estimate), format));
}

TableCell missing(std::string reason) { return {.text = "-", .note = std::move(reason)}; }

TableCell value(const std::optional<double>& number, const std::string& reason) {
  return number ? value(*number) : missing(reason);
}

TableCell figure(const std::optional<analysis::Estimate>& estimate, const std::string& reason) {
  return estimate ? figure(*estimate) : missing(reason);
}

TableCell with_error(double number, double standard_error) {
  return {.value = number,
          .low = number - standard_error,
          .high = number + standard_error,
          .note = "interval: one standard error to either side"};
}

TableCell with_mark(TableCell cell, const std::string& mark) {
  if (mark.empty()) return cell;
  cell.mark += (cell.mark.empty() ? "" : " ") + mark;
  return cell;
}

void mark_row(std::vector<TableCell>& row, std::size_t first, const std::string& mark) {
  for (std::size_t i = first; i < row.size(); ++i)
    if (row[i].value) row[i] = with_mark(std::move(row[i]), mark);
}

void remove_column(Table& table, std::string_view key) {
  const auto column = std::ranges::find(table.columns, key, &Column::key) - table.columns.begin();
  for (auto& row : table.rows) row.erase(row.begin() + column);
  table.columns.erase(table.columns.begin() + column);
}

Column in_ms(std::string key, std::string label) {
  return {std::move(key), std::move(label), "s", Format::milliseconds};
}
Column in_bytes(std::string key, std::string label, std::string unit) {
  return {std::move(key), std::move(label), std::move(unit), Format::bytes};
}
Column in_rate(std::string key, std::string label, std::string unit) {
  return {std::move(key), std::move(label), std::move(unit), Format::rate};
}

Paragraph plain(std::string text) { return {.tone = Paragraph::Tone::plain, .text = std::move(text)}; }
Paragraph finding(std::string text) { return {.tone = Paragraph::Tone::finding, .text = std::move(text)}; }
Paragraph warning(std::string text) { return {.tone = Paragraph::Tone::warning, .text = std::move(text)}; }

std::string marks_of(const analysis::Cell& cell) {
  std::vector<std::string> marks;
  if (cell.oversubscribed) marks.emplace_back("*");
  if (cell.debug_build) marks.emplace_back("debug");
  if (!cell.emulated.empty()) marks.emplace_back("emulated");
  if (std::string mark = short_mark_of(worst_of({&cell})); !mark.empty()) marks.push_back(std::move(mark));
  if (cell.is_measured() && !analysis::has_interval(cell.step_s))
    marks.push_back(fmt::format("n={}", cell.step_s.n));
  return fmt::format("{}", fmt::join(marks, " "));
}

std::string marks_of(const analysis::ScalingRow& row) {
  std::string marks = marks_of(*row.cell);
  if (row.verdict.shares_cores) marks += marks.empty() ? "†" : " †";
  return marks;
}

std::string mark_of(measure::Disturbance disturbance) {
  return std::string(
      word_of<measure::Disturbance::disturbed>(disturbance, {"", "maybe disturbed", "disturbed"}));
}

std::string short_mark_of(measure::Disturbance disturbance) {
  return disturbance == measure::Disturbance::maybe ? "~" : mark_of(disturbance);
}

measure::Disturbance worst_of(const std::vector<const analysis::Cell*>& cells) {
  auto worst = measure::Disturbance::none;
  for (const analysis::Cell* cell : cells)
    if (cell->is_measured()) worst = std::max(worst, cell->disturbance);
  return worst;
}

std::string point_mark(const analysis::Cell& cell) {
  if (!cell.emulated.empty()) return "emulated";
  if (cell.oversubscribed) return "oversubscribed";
  if (cell.debug_build) return "debug build";
  return "";
}

Point point_of(double x, const analysis::Estimate& y, std::string mark) {
  Point point{.x = x, .y = y.median, .mark = std::move(mark), .n = y.n};
  take_interval(point, y);
  return point;
}

Point point_of(double x, const analysis::Estimate& y, const analysis::Cell& cell) {
  std::string mark = point_mark(cell);
  if (mark.empty()) mark = mark_of(cell.disturbance);
  Point point = point_of(x, y, std::move(mark));
  point.record = cell.record().id;
  return point;
}

void add_held_out(std::vector<Series>& series, const measure::Record& record, const HeldOut& shown) {
  auto cuts = cuts_of(record, shown.part);
  cuts.insert(std::numeric_limits<std::int64_t>::max());
  std::size_t next = 0;
  for (const auto cut : cuts) {
    Series piece = shown.like;
    for (; next < record.epochs.size() && record.epochs[next].updates <= cut; ++next) {
      const auto& epoch = record.epochs[next];
      if (const auto& y = epoch.*shown.figure)
        piece.points.push_back({.x = shown.x(epoch), .y = shown.factor * *y});
    }
    if (cut != *cuts.rbegin()) piece.name += fmt::format(" until update {}", cut);
    if (!piece.points.empty()) series.push_back(std::move(piece));
  }
}

bool are_of_same_images(const measure::Record& record, const std::string& part, std::int64_t earlier,
                        std::int64_t later) {
  const auto cuts = cuts_of(record, part);
  const auto cut = cuts.lower_bound(earlier);  // images changed after `earlier`, and before `later`
  return cut == cuts.end() || *cut >= later;
}

std::string text_about_emulation(const analysis::Cell& cell) {
  return cell.emulated.empty() ? "" : fmt::format(" EMULATED {}: no times of such hardware.", cell.emulated);
}

std::string workers_on_cores(const analysis::Cell& cell) {
  const std::string workers = counted(cell.workers, "worker");
  return analysis::is_of_cuda_engine(cell.record())
             ? workers
             : fmt::format("{} ({})", workers, counted(analysis::cores_used(cell.record()), "core"));
}

std::string fewest_repeats(const std::vector<const analysis::Cell*>& cells) {
  const auto [fewest, most] =
      std::ranges::minmax_element(cells, {}, [](const auto* cell) { return cell->records.size(); });
  if (fewest == cells.end()) return "";
  const std::size_t repeats = (*fewest)->records.size();
  if (repeats == 0 || repeats > 2) return "";
  return fmt::format("{}{}", repeats == 1 ? "one repeat" : "two repeats",
                     repeats == (*most)->records.size() ? "" : " at the least");
}

std::string beside_others(measure::Disturbance disturbance) {
  return std::string(word_of<measure::Disturbance::disturbed>(
      disturbance, {"", "perhaps beside other programs", "beside other programs"}));
}

std::string doubts_about(const std::vector<const analysis::Cell*>& cells) {
  std::vector<std::string> doubts{fewest_repeats(cells), beside_others(worst_of(cells))};
  std::erase(doubts, "");
  return fmt::format("{}", fmt::join(doubts, ", "));
}

std::string in_brackets(const std::string& text) { return text.empty() ? "" : fmt::format(" ({})", text); }

std::vector<std::string> text_about_single_repeats(const std::vector<const analysis::Cell*>& cells) {
  constexpr const char* kSaid[] = {
      "One repeat: the interval is of steps within one run; another run may lie outside it",
      "One repeat of few steps, without interval: another run may give another time",
      "One repeat of a single step: another run may give another time"};
  std::vector<std::string> labels_of[std::size(kSaid)];
  for (const analysis::Cell* cell : cells) {
    if (!cell->is_measured() || cell->records.size() != 1) continue;
    auto& labels = labels_of[analysis::has_interval(cell->step_s) ? 0 : cell->step_s.n > 1 ? 1 : 2];
    if (std::ranges::find(labels, cell->label) == labels.end()) labels.push_back(cell->label);
  }
  std::vector<std::string> said;
  for (std::size_t i = 0; i < std::size(kSaid); ++i)
    if (!labels_of[i].empty())
      said.push_back(fmt::format("{}: {}.", kSaid[i], fmt::join(labels_of[i], "; ")));
  return said;
}

std::string behind(const std::string& text) { return text.empty() ? "" : ", " + text; }

std::set<std::string> insert_setup_columns(Table& table, std::size_t at,
                                           const std::vector<const analysis::Cell*>& cells) {
  base::expects(table.rows.size() == cells.size() && at <= table.columns.size(), "a cell for each row");
  const auto wanted = entries_to_show(cells);
  std::set<std::string> shown;
  const auto offset = static_cast<std::ptrdiff_t>(at);
  std::ptrdiff_t added = 0;
  for (const SetupColumn& column : kSetupColumns) {
    if (!wanted.contains(column.entry)) continue;
    shown.insert(column.entry);
    table.columns.insert(table.columns.begin() + offset + added,
                         {.key = column.key,
                          .label = column.entry,
                          .format = column.is_number ? Format::integer : Format::text});
    for (std::size_t i = 0; i < cells.size(); ++i)
      table.rows[i].insert(table.rows[i].begin() + offset + added, setup_cell(*cells[i], column));
    ++added;
  }
  return shown;
}

void add_setup_columns(Table& table, std::size_t at, const std::vector<const analysis::Cell*>& cells) {
  const auto shown = insert_setup_columns(table, at, cells);
  const auto differences = analysis::differences(cells, shown);
  if (std::ranges::all_of(differences, [](const auto& text) { return text.empty(); })) return;
  table.columns.push_back({.key = "settings", .label = "differs in"});
  for (std::size_t i = 0; i < table.rows.size(); ++i) table.rows[i].push_back(words(differences[i]));
}

std::string words_for(const analysis::Cell& cell) {
  const bool is_strong = cell.record().batch_given_as == "global";
  return fmt::format("{}, {}, {} {}", cell.part(), counted(cell.workers, "worker"),
                     is_strong ? "global batch" : "batch", is_strong ? cell.global_batch : cell.local_batch);
}

void Footnotes::add(const std::string& note) {
  if (!note.empty() && std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
}

void Footnotes::explain_marks(const analysis::Cell& cell) {
  if (cell.oversubscribed)
    add(fmt::format("* {}: the time says nothing about {}.", cell.shares(), cell.needs()));
  if (cell.debug_build)
    add(fmt::format("debug: built as {}, not optimised; no figure of it is a speed.",
                    cell.record().environment.build));
  if (worst_of({&cell}) == measure::Disturbance::disturbed)
    add("disturbed: other programs worked meanwhile; the time is an upper bound, and ratios to it say little.");
  if (worst_of({&cell}) == measure::Disturbance::maybe)
    add("~ it is not known whether other programs worked meanwhile.");
  if (!cell.emulated.empty())
    add(fmt::format("emulated: {}: its times are those of a model of such hardware, not measured on it.",
                    cell.emulated));
  if (cell.step_s.n == 1)
    add("n=1: a single step was timed; no interval.");
  else if (cell.step_s.is_too_few)
    add(fmt::format("n={}: so few steps of one run have no interval; it takes {}.", cell.step_s.n,
                    measure::kFewestForInterval));
}

void Footnotes::explain(const analysis::Cell& cell) {
  explain_marks(cell);
  if (!cell.is_measured()) add(fmt::format("{}: {}: {}.", cell.label, cell.status, cell.reason));
  long disturbed = 0;
  for (const std::string& lost : cell.lost_repeats)
    if (lost.starts_with("other programs"))
      ++disturbed;
    else
      add(fmt::format("{}: a run was not used: {}.", words_for(cell), lost));
  if (disturbed == 0) return;
  disturbed_.push_back(fmt::format("{} ({} of {})", words_for(cell), disturbed,
                                   counted(cell.records.size() + cell.lost.size(), "run")));
}

std::vector<std::string> Footnotes::take() {
  if (!disturbed_.empty())
    add(fmt::format("Not used, since other programs worked meanwhile: {}.", fmt::join(disturbed_, "; ")));
  return std::move(notes_);
}

void Footnotes::explain(const analysis::ScalingRow& row) {
  explain(*row.cell);
  for (const std::string& refusal : row.verdict.refusals)
    add(fmt::format("{}: not compared with the baseline: {}.", row.cell->label, refusal));
  for (const std::string& remark : row.verdict.remarks)
    add(fmt::format("{}{}: {}.", row.verdict.shares_cores ? "† " : "", row.cell->label, remark));
}

}  // namespace paceline::report
