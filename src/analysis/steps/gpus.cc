#include "analysis/steps/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace paceline::analysis {
namespace {

using measure::GpuRecord;
using measure::Record;

/// A mean, weighted by time or readings.
struct GpuMean {
  double sum = 0, weight = 0;
  void add(double value, double by) {
    sum += value * by;
    weight += by;
  }
  [[nodiscard]] std::optional<double> value() const {
    return weight > 0 ? std::optional(sum / weight) : std::nullopt;
  }
};

/// Sums for one GPU over repeats.
struct GpuSums {
  GpuMean utilisation, busy, watts, sm_mhz;
  std::map<std::string, GpuMean> held_back;
  double images = 0, joules = 0, readings_with_reasons = 0;
  bool has_energy = true, is_held_back_told = false;
};

std::optional<double> most(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

template <typename Told>
std::optional<double> as_double(const std::optional<Told>& told) {
  return told ? std::optional(static_cast<double>(*told)) : std::nullopt;
}

/// Adds the rows of a column of `gpu`'s course that have a number. Each is weighted by the number of readings
/// in its mean, which is the same for all rows but the last.
void add_column(GpuMean& mean, const GpuRecord& gpu, const std::vector<double>& column) {
  for (std::size_t i = 0; i < column.size(); ++i) {
    const auto before = static_cast<std::int64_t>(i) * gpu.course.readings_each;
    const auto readings = std::clamp<std::int64_t>(gpu.readings - before, 1, gpu.course.readings_each);
    if (!std::isnan(column[i])) mean.add(column[i], static_cast<double>(readings));
  }
}

std::optional<double> most_of(const std::vector<double>& column) {
  std::optional<double> found;
  for (const double one : column)
    if (!std::isnan(one)) found = most(found, one);
  return found;
}

/// "PCIe 3 x8 of 5 x16"; "" if the link has its full speed and width, or if they are unknown.
std::string weak_link(const GpuRecord& gpu) {
  if (!gpu.pcie || !gpu.pcie_most) return "";
  if (gpu.pcie->generation >= gpu.pcie_most->generation && gpu.pcie->width >= gpu.pcie_most->width) return "";
  return fmt::format("PCIe {} x{} of {} x{}", gpu.pcie->generation, gpu.pcie->width,
                     gpu.pcie_most->generation, gpu.pcie_most->width);
}

/// Adds the fraction of its steps during which a rank computes.
void add_busy(GpuMean& busy, const Record& record, int rank) {
  if (rank < 0 || rank >= static_cast<int>(record.ranks.size())) return;
  using enum measure::Phase;
  const auto& of_rank = record.ranks[static_cast<std::size_t>(rank)];
  const double all = std::accumulate(of_rank.phases.begin(), of_rank.phases.end(), 0.0);
  const double steps_s = all - seconds_in(of_rank, evaluation) - seconds_in(of_rank, checkpoint);
  if (steps_s > 0) busy.add(seconds_in(of_rank, {forward, backward, update}) / steps_s, steps_s);
}

void add_gpu(GpuUse& use, GpuSums& sums, const GpuRecord& gpu, const Record& record) {
  add_column(sums.utilisation, gpu, gpu.course.utilisation);
  add_column(sums.sm_mhz, gpu, gpu.course.sm_mhz);
  if (gpu.ranks.size() == 1) add_busy(sums.busy, record, gpu.ranks.front());
  use.used_bytes = most(use.used_bytes, most_of(gpu.course.memory_bytes));
  use.celsius = most(use.celsius, most_of(gpu.course.celsius));
  // Collectives and evaluations have no window of steps.
  const double wall_s = record.window.wall_s > 0 ? record.window.wall_s : gpu.seconds;
  if (gpu.energy_j && gpu.seconds > 0) {
    sums.watts.add(*gpu.energy_j / gpu.seconds, wall_s);
    sums.joules += *gpu.energy_j / gpu.seconds * wall_s;
    use.is_energy_counted = use.is_energy_counted && gpu.energy_by == "counter";
  } else {
    sums.has_energy = false;
    add_column(sums.watts, gpu, gpu.course.watts);
  }
  sums.images += static_cast<double>(record.window.samples) * static_cast<double>(gpu.ranks.size()) /
                 static_cast<double>(std::max(1, record.workers));
  if (gpu.held_back) {
    sums.is_held_back_told = true;
    sums.readings_with_reasons += static_cast<double>(gpu.readings);
    for (const auto& [reason, part] : *gpu.held_back)
      sums.held_back[reason].add(part, static_cast<double>(gpu.readings));
  }
  if (const auto link = weak_link(gpu); !link.empty()) use.link = link;
}

GpuUse begin_use(const GpuRecord& gpu) {
  return {.ranks = gpu.ranks,
          .index = gpu.index,
          .name = gpu.name,
          .host = gpu.host.value_or(""),
          .memory_bytes = as_double(gpu.memory_bytes),
          .watts_limit = gpu.watts_limit,
          .sm_mhz_most = as_double(gpu.sm_mhz_most)};
}

void finish_use(GpuUse& use, const GpuSums& sums) {
  use.utilisation = sums.utilisation.value();
  use.busy = sums.busy.value();
  use.watts = sums.watts.value();
  use.sm_mhz = sums.sm_mhz.value();
  if (sums.has_energy && sums.images > 0 && sums.joules > 0) use.images_per_j = sums.images / sums.joules;
  if (!sums.is_held_back_told) return;
  use.held_back.emplace();
  for (const auto& [reason, mean] : sums.held_back)
    // A repeat that was never slowed down counts too; one without this information does not.
    (*use.held_back)[reason] = sums.readings_with_reasons > 0 ? mean.sum / sums.readings_with_reasons : 0;
}

/// Combines what `records`, repeats of one set-up, know about their GPUs.
std::optional<GpuUses> uses_of(std::vector<const Record*> records, std::string name, const Cell* cell) {
  GpuUses uses{.name = std::move(name), .cell = cell, .records = std::move(records), .gpus = {}};
  std::vector<GpuSums> sums;
  for (const Record* record : uses.records) {
    if (!record->gpus) continue;
    for (const auto& gpu : *record->gpus) {
      const auto known = std::ranges::find_if(uses.gpus, [&](const GpuUse& use) {
        return use.ranks == gpu.ranks && use.host == gpu.host.value_or("");
      });
      const auto at = static_cast<std::size_t>(known - uses.gpus.begin());
      if (known == uses.gpus.end()) {
        uses.gpus.push_back(begin_use(gpu));
        sums.emplace_back();
      }
      add_gpu(uses.gpus[at], sums[at], gpu, *record);
    }
  }
  if (uses.gpus.empty()) return std::nullopt;
  double images = 0, joules = 0;
  bool has_energy = true;
  for (std::size_t i = 0; i < uses.gpus.size(); ++i) {
    finish_use(uses.gpus[i], sums[i]);
    images += sums[i].images;
    joules += sums[i].joules;
    has_energy = has_energy && sums[i].has_energy;
  }
  if (has_energy && images > 0 && joules > 0) uses.images_per_j = images / joules;
  std::ranges::stable_sort(uses.gpus, {}, &GpuUse::ranks);
  return uses;
}

}  // namespace

std::optional<GpuUses> gpu_uses(const Cell& cell) { return uses_of(cell.records, cell.name(), &cell); }

std::vector<GpuUses> gpu_uses(const std::vector<Cell>& cells, std::span<const Record> records) {
  std::vector<GpuUses> all;
  for (const auto& cell : cells)
    if (auto uses = gpu_uses(cell)) all.push_back(std::move(*uses));
  for (const Record& record : records)
    if (record.kind == "comm" || record.kind == "evaluate")
      if (auto uses = uses_of({&record}, record.id, nullptr)) all.push_back(std::move(*uses));
  return all;
}

}  // namespace paceline::analysis
