#include "report/sections/sections.h"

#include <fmt/format.h>

#include "analysis/steps/breakdown.h"
#include "report/sections/parts.h"
#include "report/text.h"

namespace paceline::report {
namespace {

constexpr const char* kLoaderDefinition =
    "Used: images of a global batch over the mean step. Ceiling: images/s that the loader threads of all "
    "workers could have prepared in their own time. A core: images prepared per second of processor time. "
    "Ready: prepared batches that were waiting when a step asked for one, mean over steps and ranks, and "
    "the most that there can be. Steps that waited: found none ready. The loader is called the limit where "
    "steps wait more than 5 % of their time for data and the ceiling is below 1.5 times what was used, or "
    "where it has no threads (--loader-threads 0: the worker prepares each batch before its step).";

std::string verdict_on_loader(const analysis::Breakdown& ledger) {
  if (analysis::is_data_bound(ledger)) return "the limit";
  return analysis::waits_for_scheduling(ledger) ? "fast enough, scheduled late" : "fast enough";
}

/// The cells whose loader is the limit.
struct DataBound {
  int cells = 0, of = 0;                      ///< limited by the loader, and measured in all
  std::optional<analysis::Breakdown> ledger;  ///< of the one that waits most
};

DataBound find_data_bound(const Conclusions& conclusions) {
  const auto share = [](const analysis::Breakdown& one) { return one.mean.data_wait / one.mean.total(); };
  DataBound bound;
  for (const auto& cell : conclusions.cells) {
    if (!cell.is_measured()) continue;
    ++bound.of;
    auto ledger = analysis::breakdown(cell);
    if (!analysis::is_data_bound(ledger)) continue;
    ++bound.cells;
    if (!bound.ledger || share(ledger) > share(*bound.ledger)) bound.ledger = std::move(ledger);
  }
  return bound;
}

/// Advice on making such a loader faster, depending on what limits it.
std::string advice(const analysis::LoaderUse& loader, const measure::Record& record) {
  constexpr double kMostlyWaiting = 0.25;  // a thread that computes for less than this fraction of the time
  constexpr int kMostNamed = 64;           // steps of almost no time would want any number of threads
  if (record.data.images_on == "device")
    return "The images lie on the device: each worker only draws, before it computes, which of them are shown and how.";
  if (loader.threads_per_worker == 0)
    return "Each worker prepares its batches itself, before it computes (--loader-threads 0): --loader-threads 1 "
           "prepares them meanwhile.";
  const bool has_files = record.data.name == "folder";
  const std::string threads =
      loader.threads_wanted > 0 && loader.threads_wanted <= kMostNamed
          ? fmt::format("--loader-threads {} (it is {})", loader.threads_wanted, loader.threads_per_worker)
          : "More --loader-threads";
  if (loader.computing_share && *loader.computing_share < kMostlyWaiting)
    return fmt::format(
        "Its threads computed for {} of that time and waited for the disk (or for a core) in the "
        "rest: {}{} or a faster disk make it faster.",
        percent(*loader.computing_share), threads,
        has_files ? ", one file instead of many (paceline data pack)" : "");
  const char* const smaller = has_files
                                  ? "images packed as pixels (paceline data pack --decoded) or a smaller size"
                                  : "smaller images";
  const double cores =
      loader.images_per_s_a_core ? loader.wanted_images_per_s / *loader.images_per_s_a_core : 0;
  if (cores > record.environment.cores && record.environment.cores > 0)
    return fmt::format(
        "A core prepares {} images/s, so it would take {} cores, and there {}: {} make it faster; "
        "more --loader-threads do so only up to the cores that are idle.",
        number(*loader.images_per_s_a_core), number(cores),
        record.environment.cores == 1 ? "is 1" : fmt::format("are {}", record.environment.cores), smaller);
  return fmt::format("{} where cores are idle, {} make it faster.", threads, smaller);
}

}  // namespace

std::optional<Paragraph> loader_warning(const Conclusions& conclusions) {
  const DataBound bound = find_data_bound(conclusions);
  if (!bound.ledger) return std::nullopt;
  const auto& ledger = *bound.ledger;
  const auto& cell = *ledger.cell;
  const auto loader = analysis::loader_use(ledger);
  const std::string where =
      bound.of == 1 ? "" : fmt::format(" in {} of {} cells; at {}", bound.cells, bound.of, cell.name());
  return warning(fmt::format(
      "The loader is a limit{}: steps wait for data {} of their time; the loaders could give {} images/s, "
      "the steps would take {}. {}{}",
      where, percent(ledger.mean.data_wait / ledger.mean.total()),
      ledger.loader_images_per_s > 0 ? number(ledger.loader_images_per_s) : "an unknown number of",
      number(loader.wanted_images_per_s), advice(loader, cell.record()), text_about_emulation(cell)));
}

std::optional<Table> loader_table(const Conclusions& conclusions) {
  Table table{.id = "loader",
              .title = "The loader",
              .definition = kLoaderDefinition,
              .columns = {{.key = "cell", .label = "cell"},
                          in_rate("used", "used", "images/s"),
                          in_rate("ceiling", "ceiling", "images/s"),
                          in_rate("core", "a core", "images/s"),
                          {.key = "ready", .label = "ready", .format = Format::fixed2},
                          {.key = "queue", .label = "of at most", .format = Format::fixed1},
                          {.key = "waited", .label = "steps that waited", .format = Format::percent1},
                          {.key = "data_wait", .label = "data wait", .format = Format::percent1},
                          {.key = "verdict", .label = "the loader is"}}};
  Footnotes footnotes;
  for (const auto& cell : conclusions.cells) {
    if (!cell.is_measured()) continue;
    const auto ledger = analysis::breakdown(cell);
    const auto use = analysis::loader_use(ledger);
    if (!use.ready) continue;
    table.rows.push_back(
        {with_mark(words(cell.name()), marks_of(cell)), value(use.used_images_per_s),
         use.ceiling_images_per_s > 0 ? value(use.ceiling_images_per_s) : missing("no time was spent"),
         value(use.images_per_s_a_core, "no time was spent"), value(*use.ready), value(*use.queue),
         value(*use.waited_share), value(ledger.mean.data_wait / ledger.mean.total()),
         words(verdict_on_loader(ledger))});
    footnotes.explain(cell);
  }
  if (table.rows.empty()) return std::nullopt;
  table.footnotes = footnotes.take();
  return table;
}

}  // namespace paceline::report
