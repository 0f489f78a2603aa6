#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "analysis/steps/process_layouts.h"
#include "analysis/steps/remedies.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::SameCores;

constexpr const char* kSameCoresDefinition =
    "The same cores and the same global batch: few workers of many threads against more workers of fewer "
    "threads. Speed: images/s of the more workers over those of the fewer; intervals joined in quadrature. "
    "Behind it what a step of the more workers takes longer (+) or shorter (-), by the ledger, mean over "
    "ranks: compute (smaller batches, but no threads that meet after every op), exposed transfer, waiting "
    "for a rank, waiting for data, copy and other. The parts add up to the difference of the mean steps.";

/// "2 workers x 1 thread", of several processes with how they are joined.
std::string form_of_cell(const analysis::Cell& cell) {
  const std::string joined = analysis::processes(cell.record()) > 1 ? analysis::joined_as(cell.record()) : "";
  return fmt::format("{} x {}{}", counted(cell.workers, "worker"), counted(cell.threads_per_worker, "thread"),
                     in_brackets(joined));
}

/// Explains why more workers are not faster: what costs them the most time.
std::string why_not_faster(const SameCores& pair) {
  std::array parts{std::pair{pair.compute_s, "slower compute"},
                   std::pair{pair.exposed_transfer_s, "transfer that nothing hides"},
                   std::pair{pair.waiting_s, "waiting for a later rank"},
                   std::pair{pair.data_wait_s, "waiting for data"}, std::pair{pair.rest_s, "copy and other"}};
  std::ranges::sort(parts, std::greater{});
  std::vector<std::string> said;
  for (const auto& [seconds, name] : parts)
    if (seconds > 0 && (said.empty() || seconds > parts.front().first / 4))
      said.push_back(fmt::format("{} (+{} a step)", name, duration(seconds)));
  return said.empty() ? "" : fmt::format("{}", fmt::join(said, ", "));
}

/// `of_model`: " of resnet8-cifar" if there are several models.
Paragraph verdict_on_pair(const SameCores& pair, const std::string& of_model) {
  const std::string who =
      fmt::format("{} against {} on {}, global batch {}{}: {} times the images/s",
                  form_of_cell(*pair.workers), form_of_cell(*pair.threads), counted(pair.cores, "core"),
                  pair.workers->global_batch, of_model, with_interval(pair.speed, Format::fixed2));
  const bool known = analysis::has_interval(pair.speed);
  const std::string doubts = doubts_about({pair.threads, pair.workers});
  const std::string emulated = text_about_emulation(*pair.workers);
  // The rate of a disturbed one is a lower bound, so that it may be no slower.
  const auto is_known_rate = [](const analysis::Cell* cell) {
    return worst_of({cell}) == measure::Disturbance::none;
  };
  if (known && pair.speed.low > 1 && is_known_rate(pair.threads))
    return finding(fmt::format("{}{}.{}", who, in_brackets(doubts), emulated));
  std::string undecided = !known                                               ? "one sample, not decided"
                          : pair.speed.high < 1 && is_known_rate(pair.workers) ? "slower"
                                                                               : "not decided";
  undecided += behind(doubts);
  const std::string why = why_not_faster(pair);
  return finding(
      fmt::format("{} ({}){}.{}", who, undecided, why.empty() ? "" : "; against them: " + why, emulated));
}

using analysis::ProcessLayout;
using analysis::TrainingLayouts;

constexpr const char* kWaysDefinition =
    "The same training on the same number of workers, joined in several ways. All-reduce (where nothing else is "
    "said): every worker has data, weights and optimizer, and gradients are summed among all. Data-parallel: worker "
    "0 has them; each step it hands out inputs and weights, takes outputs and gradients, and updates alone, as "
    "torch.nn.DataParallel does. Sent and received: bytes of one step, counted, by worker 0 and by all workers "
    "together (between processes: of what leaves a process). Memory: the most that each process held at once, all "
    "processes together. Times: median over all steps.";

Paragraph verdict_on_ways(const TrainingLayouts& one) {
  const ProcessLayout& best = one.layouts[one.fastest];
  std::vector<std::string> others;
  bool is_decided = true;
  std::vector<const analysis::Cell*> cells;
  for (const ProcessLayout& layout : one.layouts) {
    cells.push_back(layout.cell);
    if (&layout == &best) continue;
    others.push_back(fmt::format("{} {} times as long{}", layout.name,
                                 with_interval(layout.longer, Format::fixed2),
                                 layout.is_slower() ? "" : " (not decided)"));
    is_decided = is_decided && layout.is_slower();
  }
  const std::string text =
      fmt::format("{}: {} {}, {} a step; {}{}.", one.label, best.name,
                  is_decided ? "is the fastest" : "had the shortest step", duration(best.cell->step_s.median),
                  fmt::join(others, ", "), in_brackets(doubts_about(cells)));
  return is_decided ? finding(text) : plain(text);
}

using analysis::EfficiencyLoss;
using analysis::LossPart;
using analysis::Mode;

constexpr const char* kEfficiencyDefinition =
    "1 - E = L / t(N) with L = t(N) - t0, by the ledger of the typical worker (the middle one by own work); t0 = t(1) "
    "(weak) or t(1)/N (strong). Each part is a line of N workers less the same line of the baseline (over N, strong), "
    "so they add up. Points: the part over t(N). Below 0: a gain. ~: its interval holds 0, or it has none. Intervals: "
    "95 % by 1,000 draws of repeats and of blocks of 5 steps of both cells; below 3 repeats their extremes; none from "
    "one repeat of at most 5 steps. Slowest worker: of each repeat, not always the same. Saves: part of the step "
    "that the remedy alone takes away, the measured step replayed; together: its share of what all remedies save. "
    "docs/waterfall.md.";

constexpr double kShown = 0.0005;  ///< of a step: less is 0.0 points

std::string remarks_on(const EfficiencyLoss& loss) {
  std::string text;
  const auto add = [&](bool is_so, const char* sentence) {
    if (is_so) text += (text.empty() ? "" : "; ") + std::string(sentence);
  };
  add(loss.batch_is_in_sharing,
      "no cell with as many workers as the baseline shows what the smaller batch costs; it is counted under "
      "sharing");
  add(loss.jitter_is_in_other, "older records do not separate jitter from other waiting");
  add(loss.latency_is_in_transfer, "buckets of one size do not separate latency from transfer");
  return text;
}

void add_rows(Table& table, Footnotes& footnotes, const LossesOfGroup& losses, const EfficiencyLoss& loss) {
  const auto remedies = analysis::remedies(loss);
  const auto& marks = marks_of(*loss.cell);
  for (std::size_t i = 0; i < analysis::kLossParts; ++i) {
    const auto part = static_cast<LossPart>(i);
    const auto& figure = loss.parts[i];
    if (std::abs(loss.points(part)) < kShown) continue;
    TableCell points = value(loss.points(part));
    if (figure.low) points.low = *figure.low / loss.step_s, points.high = *figure.high / loss.step_s;
    if (figure.is_within_noise()) points.mark = "~";
    std::vector<TableCell> row{value(losses.group->batch),
                               with_mark(value(loss.cell->workers), marks),
                               words(name(part)),
                               std::move(points),
                               value(figure.seconds),
                               words(""),
                               words(""),
                               words("")};
    const auto remedy = std::ranges::find(remedies.list, part, &analysis::Remedy::part);
    if (remedy != remedies.list.end()) {
      row[5] = words(name_of(*remedy, *loss.cell));
      row[6] = value(remedy->alone);
      if (remedy->is_bound) row[6].mark = "at most";
      row[7] = value(remedy->share);
    }
    table.rows.push_back(std::move(row));
  }
  if (!loss.parts.front().low)
    footnotes.add(
        fmt::format("{}: too few steps for intervals; measure longer, or --repeats 3.", loss.cell->label));
  footnotes.explain_marks(*loss.cell);
  if (const auto remarks = remarks_on(loss); !remarks.empty())
    footnotes.add(fmt::format("{}: {}.", loss.cell->label, remarks));
  if (const auto few = fewest_repeats({loss.baseline, loss.cell}); !few.empty())
    footnotes.add(
        fmt::format("{} against its baseline: {}; intervals do not include the differences "
                    "between runs.",
                    loss.cell->label, few));
  for (const auto& remedy : remedies.list)
    footnotes.add(fmt::format("{}, {} ({} alone): {}", loss.cell->label, name_of(remedy, *loss.cell),
                              text_about_gain(remedy), command_of(remedy, loss)));
  if (remedies.list.size() > 1)
    footnotes.add(fmt::format("{}: all {} remedies together save {}, {} {} than each alone adds up to.",
                              loss.cell->label, remedies.list.size(), percent(remedies.all),
                              percent(std::abs(remedies.interaction())),
                              remedies.interaction() < 0 ? "less" : "more"));
}

std::optional<Table> table_of(const Conclusions& conclusions, Mode mode) {
  Table table{.id = fmt::format("scale-{}-loss", name(mode)),
              .title = fmt::format("The efficiency that is lost, {} scaling", name(mode)),
              .definition = kEfficiencyDefinition,
              .columns = {{.key = "batch",
                           .label = mode == Mode::weak ? "local batch" : "global batch",
                           .format = Format::integer},
                          {.key = "workers", .label = "workers", .format = Format::integer},
                          {.key = "part", .label = "part"},
                          {.key = "points", .label = "points of efficiency", .format = Format::percent1},
                          {.key = "time", .label = "a step", .unit = "s", .format = Format::milliseconds},
                          {.key = "remedy", .label = "remedy"},
                          {.key = "saves", .label = "saves", .format = Format::percent1},
                          {.key = "together", .label = "together", .format = Format::percent1}}};
  Footnotes footnotes;
  for (const auto& losses : conclusions.losses)
    if (losses.mode == mode)
      for (const EfficiencyLoss& loss : losses.rows) add_rows(table, footnotes, losses, loss);
  if (table.rows.empty()) return std::nullopt;
  table.footnotes = footnotes.take();
  return table;
}

}  // namespace

std::optional<Section> same_cores_section(const Conclusions& conclusions) {
  const auto pairs = analysis::same_cores(conclusions.cells);
  if (pairs.empty()) return std::nullopt;
  Table table{.id = "same-cores",
              .title = "The same cores as threads of a worker or as workers",
              .definition = kSameCoresDefinition,
              .columns = {{.key = "model", .label = "model"},
                          {.key = "global_batch", .label = "global batch", .format = Format::integer},
                          {.key = "cores", .label = "cores used", .format = Format::integer},
                          {.key = "fewer", .label = "fewer workers"},
                          in_rate("fewer_rate", "throughput", "images/s"),
                          {.key = "more", .label = "more workers"},
                          in_rate("more_rate", "throughput", "images/s"),
                          {.key = "speed", .label = "speed", .format = Format::fixed2},
                          in_ms("compute", "compute"),
                          in_ms("exposed_transfer", "exposed transfer"),
                          in_ms("wait_for_rank", "wait for a rank"),
                          in_ms("data_wait", "data wait"),
                          in_ms("other", "copy, other")}};
  Section section{.id = "same-cores", .title = "How many workers? The same cores as threads or as workers"};
  Footnotes footnotes;
  const bool several = std::ranges::any_of(pairs, [&](const SameCores& pair) {
    return pair.workers->record().model.name != pairs.front().workers->record().model.name;
  });
  for (const SameCores& pair : pairs) {
    table.rows.push_back(
        {words(pair.workers->record().model.name), value(pair.workers->global_batch), value(pair.cores),
         with_mark(words(form_of_cell(*pair.threads)), marks_of(*pair.threads)),
         figure(pair.threads->images_per_s),
         with_mark(words(form_of_cell(*pair.workers)), marks_of(*pair.workers)),
         figure(pair.workers->images_per_s), figure(pair.speed), value(pair.compute_s),
         value(pair.exposed_transfer_s), value(pair.waiting_s), value(pair.data_wait_s), value(pair.rest_s)});
    footnotes.explain_marks(*pair.threads);
    footnotes.explain_marks(*pair.workers);
    for (const std::string& remark : pair.remarks)
      footnotes.add(fmt::format("{} (here) against {} (the baseline): {}.", form_of_cell(*pair.workers),
                                form_of_cell(*pair.threads), remark));
  }
  if (!several) remove_column(table, "model");
  table.footnotes = footnotes.take();
  section.blocks.push_back(std::move(table));
  for (const SameCores& pair : pairs)
    section.blocks.push_back(
        verdict_on_pair(pair, several ? " of " + pair.workers->record().model.name : ""));
  return section;
}

std::optional<Section> ways_section(const Conclusions& conclusions) {
  const auto all = analysis::process_layouts(conclusions.cells);
  if (all.empty()) return std::nullopt;
  Table table{.id = "ways",
              .title = "The same workers joined in several ways",
              .definition = kWaysDefinition,
              .columns = {{.key = "cell", .label = "cell"},
                          {.key = "way", .label = "joined as"},
                          {.key = "step", .label = "step", .unit = "s", .format = Format::milliseconds},
                          {.key = "rate", .label = "throughput", .unit = "images/s", .format = Format::rate},
                          in_bytes("sent", "worker 0 sends"),
                          in_bytes("received", "worker 0 receives"),
                          in_bytes("sent_by_all", "all send"),
                          in_bytes("memory", "memory")}};
  Section section{.id = "ways", .title = "Threads, processes, or one worker for all?"};
  Footnotes footnotes;
  for (const auto& one : all)
    for (const ProcessLayout& layout : one.layouts) {
      footnotes.explain_marks(*layout.cell);
      constexpr const char* kUncounted = "the record was written before this was counted";
      table.rows.push_back({words(one.label), with_mark(words(layout.name), marks_of(*layout.cell)),
                            figure(layout.cell->step_s), figure(layout.cell->images_per_s),
                            value(layout.sent, kUncounted), value(layout.received, kUncounted),
                            value(layout.sent_by_all, kUncounted),
                            value(layout.peak_bytes, "memory of all processes was not kept")});
    }
  table.footnotes = footnotes.take();
  section.blocks.push_back(std::move(table));
  for (const auto& one : all) section.blocks.push_back(verdict_on_ways(one));
  return section;
}

// How efficiency is lost: one row per part, for each number of workers.

std::optional<Section> efficiency_section(const Conclusions& conclusions) {
  Section section{.id = "efficiency", .title = "Where does the efficiency go?"};
  for (const Mode mode : {Mode::weak, Mode::strong}) add_block(section.blocks, table_of(conclusions, mode));
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace paceline::report
