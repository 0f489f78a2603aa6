#pragma once

/// Computes the figures of each GPU while a cell (or a record without a cell) was measured: load, power,
/// energy, clocks, memory, link.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"

namespace paceline::analysis {

/// One GPU over all repeats. Values that GPU or driver did not give are empty.
struct GpuUse {
  std::vector<int> ranks;
  int index = 0;  ///< the driver's index
  std::string name, host;
  std::optional<double> utilisation;  ///< as NVIDIA defines it: fraction of the time in which any kernel ran
  /// Fraction of the steps in which its worker's forward, backward and update ran, by the ledger. Empty if
  /// several workers share the GPU, since their times overlap.
  std::optional<double> busy;
  std::optional<double> used_bytes, memory_bytes;  ///< maximum in use; total
  std::optional<double> watts, watts_limit;   ///< energy over time, else the mean of the readings; the limit
  std::optional<double> images_per_j;         ///< images of its ranks per joule
  bool is_energy_counted = true;              ///< whether the GPU's energy counter was used in all repeats
  std::optional<double> sm_mhz, sm_mhz_most;  ///< mean
  std::optional<double> celsius;              ///< maximum
  /// why clocks were lowered: for each reason the share of readings
  std::optional<std::map<std::string, double>> held_back;
  std::string link;  ///< "PCIe 3 x8 of 5 x16" if its link to the host was slower than possible; else ""
};

struct GpuUses {
  std::string name;            ///< the cell's name, or the record's id
  const Cell* cell = nullptr;  ///< null for records of collectives or evaluations
  std::vector<const measure::Record*> records;
  std::vector<GpuUse> gpus;            ///< in the order of their first ranks
  std::optional<double> images_per_j;  ///< all images over the energy of all GPUs, without host and network
};

/// Nothing if no record of the cell has GPUs.
[[nodiscard]] std::optional<GpuUses> gpu_uses(const Cell& cell);
/// Those of each cell, then of each record of collectives or evaluations.
[[nodiscard]] std::vector<GpuUses> gpu_uses(const std::vector<Cell>& cells,
                                            std::span<const measure::Record> records);

}  // namespace paceline::analysis
