#include "analysis/steps/ways.h"

#include <fmt/format.h>

#include <vector>

#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Way;
using analysis::WaysOfOne;

constexpr const char* kWaysDefinition =
    "The same training on the same number of workers, joined in several ways. All-reduce (where nothing else is "
    "said): every worker has data, weights and optimizer, and gradients are summed among all. Data-parallel: worker "
    "0 has them; each step it hands out inputs and weights, takes outputs and gradients, and updates alone, as "
    "torch.nn.DataParallel does. Sent and received: bytes of one step, counted, by worker 0 and by all workers "
    "together (between processes: of what leaves a process). Memory: the most that each process held at once, all "
    "processes together. Times: median over all steps.";

TableCell bytes_cell(const std::optional<double>& bytes) {
  return bytes ? value(*bytes) : missing("the record was written before this was counted");
}

Paragraph verdict_on_ways(const WaysOfOne& one) {
  const Way& best = one.ways[one.fastest];
  std::string others;
  bool is_decided = false;
  std::vector<const analysis::Cell*> cells;
  for (const Way& way : one.ways) cells.push_back(way.cell);
  for (std::size_t i = 0; i < one.ways.size(); ++i) {
    if (i == one.fastest) continue;
    const Way& way = one.ways[i];
    others += fmt::format("{}{} {} times as long{}", others.empty() ? "" : ", ", way.name,
                          with_interval(way.longer, Format::fixed2), way.is_slower() ? "" : " (not decided)");
    is_decided = is_decided || way.is_slower();
  }
  const std::string text =
      fmt::format("{}: {} is the fastest, {} a step; {}{}.", one.label, best.name,
                  duration(best.step_s.median), others, in_brackets(fewest_repeats(cells)));
  return is_decided ? finding(text) : plain(text);
}

}  // namespace

std::optional<Section> ways_section(const Conclusions& conclusions) {
  const auto all = analysis::ways(conclusions.cells);
  if (all.empty()) return std::nullopt;
  const auto bytes_column = [](std::string key, std::string label) {
    return Column{.key = std::move(key), .label = std::move(label), .format = Format::bytes};
  };
  Table table{.id = "ways",
              .title = "The same workers joined in several ways",
              .definition = kWaysDefinition,
              .columns = {{.key = "cell", .label = "cell"},
                          {.key = "way", .label = "joined as"},
                          {.key = "step", .label = "step", .unit = "s", .format = Format::milliseconds},
                          {.key = "rate", .label = "throughput", .unit = "images/s", .format = Format::rate},
                          bytes_column("sent", "worker 0 sends"),
                          bytes_column("received", "worker 0 receives"),
                          bytes_column("sent_by_all", "all send"),
                          bytes_column("memory", "memory")}};
  Section section{.id = "ways", .title = "Threads, processes, or one worker for all?"};
  for (const auto& one : all)
    for (const Way& way : one.ways)
      table.rows.push_back({words(one.label), words(way.name), figure(way.step_s), figure(way.images_per_s),
                            bytes_cell(way.sent), bytes_cell(way.received), bytes_cell(way.sent_by_all),
                            way.peak_bytes ? value(static_cast<double>(*way.peak_bytes))
                                           : missing("memory of all processes was not kept")});
  section.blocks.push_back(std::move(table));
  for (const auto& one : all) section.blocks.push_back(verdict_on_ways(one));
  return section;
}

}  // namespace paceline::report
