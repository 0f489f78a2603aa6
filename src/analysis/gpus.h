#pragma once

/// What the GPUs of a cell, or of a record that is of none, were at while it was measured, one by one.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/cell.h"

namespace paceline::analysis {

/// One GPU over all repeats. Empty: the GPU or its driver does not tell.
struct GpuUse {
  std::vector<int> ranks;
  int index = 0;  ///< the driver's number
  std::string name, host;
  std::optional<double> utilisation;  ///< as NVIDIA has it: part of the time in which any kernel ran
  /// Part of the steps in which its worker's forward, backward and update ran, by the ledger; empty where
  /// several workers share it, whose parts overlap.
  std::optional<double> busy;
  std::optional<double> used_bytes, memory_bytes;  ///< the most; all that it has
  std::optional<double> watts, watts_limit;        ///< mean over the readings; energy over time where told
  std::optional<double> images_per_j;              ///< of its ranks
  bool is_energy_counted = true;                   ///< by the GPU's own counter in all repeats
  std::optional<double> sm_mhz, sm_mhz_most;       ///< mean
  std::optional<double> celsius;                   ///< the most
  std::optional<std::map<std::string, double>> held_back;  ///< part of the readings, by reason
  std::string link;  ///< "PCIe 3 x8 of 5 x16" where its link to the host is below what it could be; else ""
};

struct GpuUses {
  std::string name;            ///< the cell's; of a record without one its id
  const Cell* cell = nullptr;  ///< none: of collectives or evaluations
  std::vector<const measure::Record*> records;
  std::vector<GpuUse> gpus;            ///< in the order of their first ranks
  std::optional<double> images_per_j;  ///< all images over the energy of all GPUs; host and network not in it
};

/// Nothing for a cell of which no record knows its GPUs.
[[nodiscard]] std::optional<GpuUses> gpu_uses(const Cell& cell);
/// Of each cell, then of each record of collectives or evaluations.
[[nodiscard]] std::vector<GpuUses> gpu_uses(const std::vector<Cell>& cells,
                                            std::span<const measure::Record> records);

}  // namespace paceline::analysis
