#include "analysis/steps/by_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::ByWorker;
using analysis::WorkerShare;

constexpr const char* kByWorkerDefinition =
    "Milliseconds of one training step of each worker, means over all steps of all repeats. Own work: "
    "compute, copy and waiting for its own data; in use: compute as a part of the step, the utilisation of "
    "its cores or device; wait for a rank: it had nothing to do until a later worker came; exposed "
    "transfer: until bytes had moved. A worker is called the slowest only where it works more than the next "
    "by more than the spread over repeats explains (95 %). Own work + exposed transfer + wait = step. Sent "
    "and received: of one step, counted. Memory: the most that the worker's process held at once, which all "
    "of its workers share.";

constexpr const char* kUncounted = "the record was written before this was counted";

/// "rank 1", "rank 3 (process 1 on host b)"
std::string name_of_worker(const ByWorker& cell, const WorkerShare& worker) {
  const bool is_alone = std::ranges::all_of(
      cell.workers, [&](const WorkerShare& other) { return other.process == worker.process; });
  if (is_alone) return fmt::format("rank {}", worker.rank);
  return fmt::format("rank {} (process {}{})", worker.rank, worker.process,
                     worker.host.empty() ? "" : " on host " + worker.host);
}

/// "8.1 ms [7.9, 8.3]": by how much the slowest works more than the next.
std::string lead_of(const ByWorker& cell) {
  const auto& lead = cell.lead_s;
  if (lead.n < 2) return duration(lead.median);
  const CellText text = cell_text(figure(lead), Format::milliseconds);
  return fmt::format("{} ms {}", text.figure, text.interval);
}

/// For a cell in which one worker has the most work, but by no more than the difference between repeats.
Paragraph undecided(const ByWorker& cell) {
  const WorkerShare& slowest = cell.workers[cell.slowest];
  const std::string why =
      cell.lead_s.n < 2
          ? "one repeat does not tell whether that is chance"
          : fmt::format("its lead over {} is {}, which the {} repeats cannot tell from 0",
                        name_of_worker(cell, cell.workers[cell.next]), lead_of(cell), cell.lead_s.n);
  return plain(
      fmt::format("{}: no worker is clearly the slowest; {} has the most own work, {} a step and {} more "
                  "than the mean, but {}.{}",
                  cell.cell->name(), name_of_worker(cell, slowest), duration(slowest.own_s()),
                  percent(cell.imbalance), why, text_about_emulation(*cell.cell)));
}

Paragraph verdict_on_workers(const ByWorker& cell) {
  if (!cell.is_told_apart()) return undecided(cell);
  const WorkerShare& slowest = cell.workers[cell.slowest];
  double waited = 0;
  for (const auto& worker : cell.workers)
    if (&worker != &slowest) waited += worker.waiting_s;
  waited /= static_cast<double>(cell.workers.size() - 1);
  return finding(fmt::format(
      "{}: the slowest is {}, {} of own work a step, {} more than the mean and {} more than {}; the others wait {} "
      "of a step of {} for a later rank{}.{}",
      cell.cell->name(), name_of_worker(cell, slowest), duration(slowest.own_s()), percent(cell.imbalance),
      lead_of(cell), name_of_worker(cell, cell.workers[cell.next]), duration(waited),
      duration(slowest.step_s()), in_brackets(doubts_about({cell.cell})), text_about_emulation(*cell.cell)));
}

/// For cells whose workers are equally fast: one sentence for all.
Paragraph alike(const std::vector<const ByWorker*>& cells) {
  const ByWorker& most =
      **std::ranges::max_element(cells, {}, [](const auto* cell) { return cell->imbalance; });
  return plain(
      fmt::format("In {} the workers are as fast as each other; the most above the mean, by {}, is {} of {}.",
                  counted(cells.size(), "cell"), percent(most.imbalance),
                  name_of_worker(most, most.workers[most.slowest]), most.cell->name()));
}

/// For a cell in which another worker is the slowest in each repeat.
Paragraph by_turns(const ByWorker& cell) {
  return plain(fmt::format(
      "{}: in each repeat one worker has more own work, {} above the mean, but not the same in all: over "
      "{} repeats no worker is slower than the others, and they still wait for the slowest of each.",
      cell.cell->name(), percent(cell.imbalance_of_a_repeat), cell.lead_s.n));
}

std::vector<TableCell> row_of_worker(const ByWorker& cell, const WorkerShare& worker) {
  return {
      with_mark(words(cell.cell->name()), marks_of(*cell.cell)),
      value(worker.rank),
      words(worker.host.empty() ? cell.cell->record().environment.host : worker.host),
      value(worker.process),
      value(worker.step_s()),
      value(worker.own_s()),
      value(worker.utilisation()),
      value(worker.waiting_s),
      value(worker.transfer_s),
      value(worker.bytes_sent, kUncounted),
      value(worker.bytes_received, kUncounted),
      value(worker.peak_bytes, "memory was not measured, or the record was written before this was kept")};
}

}  // namespace

std::optional<Section> by_worker_section(const Conclusions& conclusions) {
  std::vector<ByWorker> cells;
  for (const auto& cell : conclusions.cells)
    if (auto workers = analysis::by_worker(cell)) cells.push_back(std::move(*workers));
  if (cells.empty()) return std::nullopt;
  Table table{.id = "by-worker",
              .title = "Each worker by itself",
              .definition = kByWorkerDefinition,
              .columns = {{.key = "cell", .label = "cell"},
                          {.key = "rank", .label = "rank", .format = Format::integer},
                          {.key = "node", .label = "node"},
                          {.key = "process", .label = "process", .format = Format::integer},
                          in_ms("step", "step"),
                          in_ms("own_work", "own work"),
                          {.key = "in_use", .label = "in use", .format = Format::percent1},
                          in_ms("wait_for_rank", "wait for a rank"),
                          in_ms("exposed_transfer", "exposed transfer"),
                          in_bytes("sent", "sent a step"),
                          in_bytes("received", "received a step"),
                          in_bytes("memory", "memory of its process")}};
  Footnotes footnotes;
  for (const auto& cell : cells) {
    for (const auto& worker : cell.workers) table.rows.push_back(row_of_worker(cell, worker));
    footnotes.explain_marks(*cell.cell);
  }
  table.footnotes = footnotes.take();
  Section section{.id = "by-worker", .title = "How fast is each worker?"};
  section.blocks.push_back(std::move(table));
  std::vector<const ByWorker*> balanced;
  for (const auto& cell : cells)
    if (analysis::takes_turns(cell))
      section.blocks.push_back(by_turns(cell));
    else if (cell.imbalance < analysis::kBalanced)
      balanced.push_back(&cell);
    else
      section.blocks.push_back(verdict_on_workers(cell));
  if (!balanced.empty()) section.blocks.push_back(alike(balanced));
  return section;
}

}  // namespace paceline::report
