#include "analysis/steps/same_cores.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

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
  return fmt::format("{} x {}{}", count(cell.workers, "worker"), count(cell.threads_per_worker, "thread"),
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
                  form_of_cell(*pair.workers), form_of_cell(*pair.threads), count(pair.cores, "core"),
                  pair.workers->global_batch, of_model, with_interval(pair.speed, Format::fixed2));
  const bool known = analysis::has_interval(pair.speed);
  const std::string few = fewest_repeats({pair.threads, pair.workers});
  const std::string emulated = said_of_emulation(*pair.workers);
  if (known && pair.speed.low > 1) return finding(fmt::format("{}{}.{}", who, in_brackets(few), emulated));
  std::string undecided = !known ? "one sample, not decided" : pair.speed.high < 1 ? "slower" : "not decided";
  if (!few.empty()) undecided += ", " + few;
  const std::string why = why_not_faster(pair);
  return finding(
      fmt::format("{} ({}){}.{}", who, undecided, why.empty() ? "" : "; against them: " + why, emulated));
}

}  // namespace

std::optional<Section> same_cores_section(const Conclusions& conclusions) {
  const auto pairs = analysis::same_cores(conclusions.cells);
  if (pairs.empty()) return std::nullopt;
  const auto time = [](std::string key, std::string label) {
    return Column{
        .key = std::move(key), .label = std::move(label), .unit = "s", .format = Format::milliseconds};
  };
  const Column speed{.key = "speed", .label = "speed", .format = Format::fixed2};
  const auto rate = [](std::string key, std::string label) {
    return Column{
        .key = std::move(key), .label = std::move(label), .unit = "images/s", .format = Format::rate};
  };
  Table table{.id = "same-cores",
              .title = "The same cores as threads of a worker or as workers",
              .definition = kSameCoresDefinition,
              .columns = {{.key = "global_batch", .label = "global batch", .format = Format::integer},
                          {.key = "cores", .label = "cores used", .format = Format::integer},
                          {.key = "fewer", .label = "fewer workers"},
                          rate("fewer_rate", "throughput"),
                          {.key = "more", .label = "more workers"},
                          rate("more_rate", "throughput"),
                          speed,
                          time("compute", "compute"),
                          time("exposed_transfer", "exposed transfer"),
                          time("wait_for_rank", "wait for a rank"),
                          time("data_wait", "data wait"),
                          time("other", "copy, other")}};
  Section section{.id = "same-cores", .title = "How many workers? The same cores as threads or as workers"};
  Footnotes footnotes;
  const bool several = std::any_of(pairs.begin(), pairs.end(), [&](const SameCores& pair) {
    return pair.workers->record().model.name != pairs.front().workers->record().model.name;
  });
  if (several) table.columns.insert(table.columns.begin(), {.key = "model", .label = "model"});
  for (const SameCores& pair : pairs) {
    table.rows.push_back({value(static_cast<double>(pair.workers->global_batch)), value(pair.cores),
                          with_mark(words(form_of_cell(*pair.threads)), marks_of(*pair.threads)),
                          figure(pair.threads->images_per_s),
                          with_mark(words(form_of_cell(*pair.workers)), marks_of(*pair.workers)),
                          figure(pair.workers->images_per_s), figure(pair.speed), value(pair.compute_s),
                          value(pair.exposed_transfer_s), value(pair.waiting_s), value(pair.data_wait_s),
                          value(pair.rest_s)});
    auto& row = table.rows.back();
    if (several) row.insert(row.begin(), words(pair.workers->record().model.name));
    footnotes.explain_marks(*pair.threads);
    footnotes.explain_marks(*pair.workers);
    for (const std::string& remark : pair.remarks)
      footnotes.add(fmt::format("{} (here) against {} (the baseline): {}.", form_of_cell(*pair.workers),
                                form_of_cell(*pair.threads), remark));
  }
  table.footnotes = footnotes.take();
  section.blocks.push_back(std::move(table));
  for (const SameCores& pair : pairs)
    section.blocks.push_back(
        verdict_on_pair(pair, several ? " of " + pair.workers->record().model.name : ""));
  return section;
}

}  // namespace paceline::report
