#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <tuple>

#include "analysis/compare/interval.h"
#include "analysis/steps/bandwidth.h"
#include "analysis/steps/breakdown.h"
#include "base/text.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/terminal_text.h"
#include "report/text.h"

// One table of all cells: their measurements, in groups of columns.

namespace paceline::report {
namespace {

using analysis::Cell;

constexpr const char* kWhy = "not measured";

/// Whether other programs worked.
std::string word_of_others(measure::Disturbance disturbance) {
  return std::string(word_of<measure::Disturbance::disturbed>(disturbance, {"no", "unknown", "yes"}));
}

std::vector<Column> cell_columns() {
  const auto part = [](const char* key, const char* label) {
    return Column{.key = key, .label = label, .format = Format::percent1, .group = "parts of a step"};
  };
  return {{.key = "cell", .label = "cell"},
          {.key = "way", .label = "way"},
          {.key = "local_batch", .label = "local batch", .format = Format::integer},
          {.key = "global_batch", .label = "global batch", .format = Format::integer},
          {.key = "rate", .label = "throughput", .unit = "images/s", .format = Format::rate},
          {.key = "step", .label = "step", .unit = "s", .format = Format::milliseconds, .group = "time"},
          {.key = "epoch", .label = "epoch", .unit = "s", .format = Format::seconds, .group = "time"},
          part("compute", "compute"),
          part("transfer", "transfer"),
          part("wait", "wait"),
          part("data", "data"),
          {.key = "busbw", .label = "busbw", .unit = "GB/s", .format = Format::rate, .group = "network"},
          {.key = "sent", .label = "sent a step", .unit = "B", .format = Format::bytes, .group = "network"},
          {.key = "plan", .label = "plan", .unit = "B", .format = Format::bytes, .group = "memory"},
          {.key = "peak", .label = "peak", .unit = "B", .format = Format::bytes, .group = "memory"},
          {.key = "repeats", .label = "repeats", .format = Format::integer, .group = "measured"},
          {.key = "steps", .label = "steps", .format = Format::integer, .group = "measured"},
          {.key = "others", .label = "others at work", .group = "measured"},
          {.key = "status", .label = "status", .group = "measured"},
          {.key = "records", .label = "records", .group = "records"}};
}

TableCell bytes_or_missing(std::optional<std::int64_t> bytes) {
  return bytes && *bytes > 0 ? value(*bytes) : missing(kWhy);
}

/// The cell in words, without its way: "sweep, batch 16", "strong scaling, global batch 32", "baseline".
std::string name_in_table(const Cell& cell) {
  if (!cell.variant.empty()) return cell.variant;
  if (cell.scaling == "strong") return fmt::format("strong scaling, global batch {}", cell.global_batch);
  return fmt::format("{}, batch {}", cell.scaling == "weak" ? "weak scaling" : cell.kind, cell.local_batch);
}

/// The way of a cell that was not run does not say its threads: it is that of its like, which was.
std::string way_in_table(const Cell& cell, const std::vector<Cell>& cells) {
  const auto is_like = [&](const Cell& other) {
    return other.is_measured() && other.kind == cell.kind && other.workers == cell.workers &&
           is_on_cpu(other) == is_on_cpu(cell);
  };
  const auto found = cell.is_measured() ? cells.end() : std::ranges::find_if(cells, is_like);
  return way_of(found == cells.end() ? cell : *found);
}

std::vector<TableCell> row_of_cell(const Cell& cell, const std::vector<Cell>& cells, bool are_estimates) {
  std::vector<TableCell> row{words(name_in_table(cell)),
                             with_mark(words(way_in_table(cell, cells)), marks_of(cell)),
                             value(cell.local_batch), value(cell.global_batch)};
  const auto& record = cell.record();
  if (cell.is_measured()) {
    const auto parts = analysis::breakdown(cell).mean;
    row.push_back(figure(cell.images_per_s));
    row.push_back(figure(cell.step_s));
    row.push_back(with_mark(figure(cell.epoch_s), cell.epoch_measured || are_estimates ? "" : "est."));
    for (const double seconds :
         {parts.compute(), parts.exposed_transfer, parts.exposed_wait, parts.data_wait})
      row.push_back(value(seconds / parts.total()));
    const auto network = analysis::bandwidth(cell);
    row.push_back(network ? figure(network->busbw) : missing("one worker sends nothing"));
    row.push_back(network ? value(network->sent_per_step) : missing("one worker sends nothing"));
  } else {
    row.insert(row.end(), 9, missing(cell.why_not_measured()));
  }
  const auto [plan, peak] = memory_of(record);
  row.push_back(bytes_or_missing(plan));
  row.push_back(bytes_or_missing(peak));
  row.push_back(value(cell.is_measured() ? cell.records.size() : 0));
  row.push_back(value(cell.steps_measured));
  row.push_back(cell.is_measured() ? words(word_of_others(cell.disturbance)) : missing(kWhy));
  row.push_back(words(cell.status));
  const auto ids = base::texts_of(cell.records, &measure::Record::id);
  row.push_back(words(fmt::format("{}", fmt::join(ids, " "))));
  return row;
}

/// Every planned set-up, one row each, with column groups.
Table cells_table(const Conclusions& conclusions) {
  Table table{.id = "every-cell",
              .title = "Every cell",
              .definition =
                  "A row is a configuration with all its repeats. Times are medians with 95 % intervals, "
                  "parts of a step are means. est., estimated: all images over the images/s of some steps.",
              .columns = cell_columns()};
  Footnotes footnotes;
  // Ways of using the machine in the order of the records, each sorted by batch. Cells that were planned but
  // not run, such as a batch too large for the memory, come last.
  std::vector<const Cell*> cells;
  std::vector<std::string> ways;
  std::map<const Cell*, std::tuple<bool, std::ptrdiff_t, std::int64_t>> places;
  for (const Cell& cell : conclusions.cells) {
    cells.push_back(&cell);
    const std::string way = way_in_table(cell, conclusions.cells);
    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
    places[&cell] = {!cell.is_measured(), std::ranges::find(ways, way) - ways.begin(), cell.global_batch};
  }
  std::ranges::stable_sort(cells, {}, [&](const Cell* cell) { return places[cell]; });
  // What holds for every row is said once, in the head.
  const bool are_estimates = std::ranges::none_of(
      cells, [](const Cell* cell) { return cell->is_measured() && cell->epoch_measured; });
  if (are_estimates) std::ranges::find(table.columns, "epoch", &Column::key)->label = "epoch, estimated";
  for (const Cell* cell : cells) {
    table.rows.push_back(row_of_cell(*cell, conclusions.cells, are_estimates));
    footnotes.explain(*cell);
  }
  insert_setup_columns(table, 2, cells);
  table.footnotes = footnotes.take();
  return table;
}

/// The row of scaling that a cell is, with ratios to a baseline of fewer workers.
void find_row(Subject& subject) {
  for (const auto& [group, row] : subject.conclusions.rows_of_scaling())
    if (row->cell == subject.best() && row->has_ratios && !row->is_baseline) {
      subject.group = group;
      subject.row = row;
      return;
    }
}

Section answer_section_of(const Subject& subject) {
  Section section{.id = kAnswerSection, .title = "Answer"};
  if (!subject.cells.name.empty()) section.title += ": " + subject.cells.name;
  auto& blocks = section.blocks;
  if (is_of_one_training(subject)) {
    blocks.emplace_back(training_answer(subject));
    blocks.emplace_back(limit_answer(subject));
    if (subject.cells.cells.front()->workers > 1) blocks.emplace_back(network_answer(subject));
    blocks.emplace_back(accuracy_answer(subject));
    add_block(blocks, training_figure(subject));
    blocks.emplace_back(steps_after_training(subject));
    return section;
  }
  for (auto* const answer :
       {best_answer, batch_answer, workers_answer, limit_answer, network_answer, accuracy_answer})
    blocks.emplace_back(answer(subject));
  add_block(blocks, hero_figure(subject));
  blocks.emplace_back(next_steps(subject));
  return section;
}

Section evidence_of(const Subject& subject) {
  Section section{.id = "evidence", .title = "Evidence"};
  if (!subject.cells.name.empty()) section.title += ": " + subject.cells.name;
  add_block(section.blocks, batch_figure(subject));
  add_block(section.blocks, workers_figure(subject));
  add_block(section.blocks, step_waterfall(subject));
  for (Timeline& timeline : step_timelines(subject)) section.blocks.emplace_back(std::move(timeline));
  add_block(section.blocks, network_figure(subject));
  add_block(section.blocks, accuracy_figure(subject));
  add_block(section.blocks, step_strip(subject));
  return section;
}

}  // namespace

const PredictedWorkers* Subject::prediction() const {
  const auto place = static_cast<std::size_t>(&cells - conclusions.subjects.data());
  if (place >= conclusions.predictions.size() || !conclusions.predictions[place]) return nullptr;
  return &*conclusions.predictions[place];
}

Subject subject_of(const Conclusions& conclusions, const analysis::CellGroup& cells) {
  Subject subject{conclusions, cells, analysis::operating_point(cells.cells)};
  if (subject.best() != nullptr) find_row(subject);
  return subject;
}

std::vector<Section> answer_sections(const Conclusions& conclusions) {
  std::vector<Section> sections, evidence;
  for (const auto& cells : conclusions.subjects) {
    const Subject subject = subject_of(conclusions, cells);
    sections.push_back(answer_section_of(subject));
    evidence.push_back(evidence_of(subject));
    if (sections.size() == 1) continue;
    for (Section* section : {&sections.back(), &evidence.back()})
      section->id += fmt::format("-{}", sections.size());
  }
  for (Section& section : evidence)
    if (!section.blocks.empty()) sections.push_back(std::move(section));
  for (Section& section : prediction_sections(conclusions)) sections.push_back(std::move(section));
  if (!conclusions.cells.empty())
    sections.push_back({.id = "every-cell", .title = "Every cell", .blocks = {cells_table(conclusions)}});
  return sections;
}

std::vector<Section> sections_of_own_answers(const Conclusions& conclusions) {
  std::vector<Section> sections;
  auto search = search_section(conclusions);
  auto evaluation = evaluation_section(conclusions);
  const auto searches = analysis::searches(conclusions.records);
  const auto& records = conclusions.records;
  const auto is_figure = [](const Block& block) { return std::holds_alternative<Figure>(block); };
  if (searches.size() == 1 && searches.front().best != nullptr) {
    sections.push_back(answer_of_search(searches.front(), *search));
  } else if (searches.empty() && records.size() == 1 &&
             analysis::evaluation(*records.front().evaluation).contradiction.empty()) {
    sections.push_back(answer_of_evaluation(records.front(), *evaluation));
    Section evidence{.id = "evidence", .title = "Which classes?"};
    std::ranges::copy_if(evaluation->blocks, std::back_inserter(evidence.blocks), is_figure);
    std::erase_if(evaluation->blocks, is_figure);
    evaluation->title = "Tables: all classes and confusions";
    evaluation->is_folded = true;
    sections.push_back(std::move(evidence));
  }
  for (auto* details : {&search, &evaluation})
    if (*details && !(*details)->blocks.empty()) sections.push_back(std::move(**details));
  return sections;
}

}  // namespace paceline::report
