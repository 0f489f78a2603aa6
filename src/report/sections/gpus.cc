#include "analysis/steps/gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "measure/disturbance.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::GpuUse;
using analysis::GpuUses;

constexpr const char* kGpusDefinition =
    "A row a GPU, means over the readings of all repeats (one each half second, by NVML). Utilisation, as NVIDIA "
    "defines it: the part of the time in which at least one kernel ran. Busy: the part of the steps that forward, "
    "backward and update take between events on the device, by the ledger. They differ: utilisation counts any "
    "kernel, however little of the GPU it uses, those of other processes, of evaluations and of collectives that "
    "wait for a peer too, while busy counts the short gaps between a step's kernels in. Memory: the most in use, by "
    "all processes. Images per joule: images trained over the energy of the whole GPU in the window, evaluations in "
    "it included, the host not. Held back: why its clocks were below what they could be, part of the readings.";

const std::string kUntold = "NVML does not report it for this GPU";

TableCell told_of(const std::optional<double>& number, const std::optional<double>& most, const char* unit) {
  auto cell = value(number, kUntold);
  if (number && most) cell.note = fmt::format("of {} {}", integer(*most), unit);
  return cell;
}

/// "power cap 35.0 %, thermal (driver) 2.0 %"; "-" if clocks were never lowered.
TableCell held_back(const GpuUse& use) {
  if (!use.held_back) return missing(kUntold);
  std::vector<std::string> texts;
  for (const auto& [reason, part] : largest_first(*use.held_back))
    if (part > 0) texts.push_back(fmt::format("{} {}", reason, percent(part)));
  return words(texts.empty() ? "never" : fmt::format("{}", fmt::join(texts, ", ")));
}

std::string name_of_gpu(const GpuUse& use) {
  return fmt::format("GPU {}{}", use.index, use.host.empty() ? "" : " of " + use.host);
}

std::vector<TableCell> row_of_gpu(const GpuUses& uses, const GpuUse& use, Footnotes& footnotes) {
  auto energy =
      value(use.images_per_j, "no images were trained, or NVML reports neither energy nor power of this GPU");
  if (use.images_per_j && !use.is_energy_counted) {
    energy.mark = "by power";
    footnotes.add(
        "by power: the GPU has no counter of energy; its power was read twice a second and added up.");
  }
  return {with_mark(words(uses.name), uses.cell == nullptr ? "" : marks_of(*uses.cell)),
          words(fmt::format("{}", fmt::join(use.ranks, ", "))),
          with_mark(words(name_of_gpu(use)), ""),
          value(use.utilisation, kUntold),
          value(use.busy, use.ranks.size() > 1 ? "several workers share the GPU, and their steps overlap"
                                               : "there are no steps of a training"),
          told_of(use.used_bytes, std::nullopt, ""),
          told_of(use.watts, use.watts_limit, "W"),
          std::move(energy),
          told_of(use.sm_mhz, use.sm_mhz_most, "MHz"),
          value(use.celsius, kUntold),
          held_back(use)};
}

/// Adds problems of the GPUs of a cell, one sentence each.
void add_findings(Section& section, const GpuUses& uses) {
  for (const auto& use : uses.gpus)
    if (!use.link.empty())
      section.blocks.emplace_back(finding(
          fmt::format("{}: the link of {} to the host was {}: another slot, or its cable or riser, holds "
                      "copies back.",
                      uses.name, name_of_gpu(use), use.link)));
  for (const measure::Record* record : uses.records)
    for (const auto& gpu : record->gpus.value_or(std::vector<measure::GpuRecord>()))
      if (gpu.xids)
        section.blocks.emplace_back(warning(fmt::format(
            "{}, repeat {}: the driver reported Xid {} of GPU {} (NVIDIA's list of Xid errors says what each means).",
            uses.name, record->repeat, fmt::join(*gpu.xids, ", "), gpu.index)));
  for (const measure::Record* record : uses.records)
    if (const auto others = measure::text_about_disturbance_of_gpus(*record); !others.empty())
      section.blocks.emplace_back(warning(fmt::format("{}, repeat {}: {}: that work is part of the times.",
                                                      uses.name, record->repeat, others)));
}

}  // namespace

std::optional<Section> gpus_section(const Conclusions& conclusions) {
  const auto cells = analysis::gpu_uses(conclusions.cells, conclusions.records);
  if (cells.empty()) return std::nullopt;
  Table table{.id = "gpus",
              .title = "Each GPU over the window",
              .definition = kGpusDefinition,
              .columns = {{.key = "cell", .label = "cell"},
                          {.key = "ranks", .label = "ranks"},
                          {.key = "gpu", .label = "GPU"},
                          {.key = "utilisation", .label = "utilisation", .format = Format::percent1},
                          {.key = "busy", .label = "busy", .format = Format::percent1},
                          {.key = "memory", .label = "memory", .format = Format::bytes},
                          {.key = "power", .label = "power", .unit = "W", .format = Format::rate},
                          {.key = "images_per_joule", .label = "images per joule", .format = Format::rate},
                          {.key = "sm_clock", .label = "SM clock", .unit = "MHz", .format = Format::integer},
                          {.key = "hottest", .label = "hottest", .unit = "°C", .format = Format::integer},
                          {.key = "held_back", .label = "held back"}}};
  Footnotes footnotes;
  for (const auto& uses : cells) {
    for (const auto& use : uses.gpus) table.rows.push_back(row_of_gpu(uses, use, footnotes));
    if (uses.cell != nullptr) footnotes.explain_marks(*uses.cell);
  }
  table.footnotes = footnotes.take();
  Section section{.id = "gpus", .title = "What did the GPUs do?"};
  section.blocks.emplace_back(std::move(table));
  for (const auto& uses : cells) {
    if (uses.gpus.size() > 1 && uses.images_per_j)
      section.blocks.emplace_back(plain(
          fmt::format("{}: {} images per joule, all GPUs together.", uses.name, number(*uses.images_per_j))));
    add_findings(section, uses);
  }
  return section;
}

}  // namespace paceline::report
