#pragma once

/// Records of runs on GPUs, made from a few chosen numbers.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "golden/records.h"

namespace paceline::golden {

/// A GPU of `rank` that was read four times in two seconds: 90 % utilisation, 300 W by its counter.
inline measure::GpuRecord make_gpu(int rank) {
  measure::GpuRecord gpu{.index = rank,
                         .ranks = {rank},
                         .name = "NVIDIA H100 80GB HBM3",
                         .readings = 4,
                         .seconds = 2,
                         .energy_j = 600,
                         .energy_by = "counter",
                         .watts_limit = 700,
                         .memory_bytes = 80'000'000'000,
                         .sm_mhz_most = 1980,
                         .pcie = base::PcieLink{.generation = 5, .width = 16},
                         .pcie_most = base::PcieLink{.generation = 5, .width = 16},
                         .held_back = std::map<std::string, double>{},
                         .others = std::vector<measure::GpuProcessRecord>{}};
  gpu.course = {.at_s = {0, 0.5, 1, 1.5},
                .utilisation = {0.85, 0.95, 0.95, 0.85},
                .memory_bytes = {1e9, 4e9, 4e9, 3e9},
                .watts = {300, 300, 300, 300},
                .sm_mhz = {1980, 1900, 1900, 1980},
                .celsius = {50, 55, 61, 60}};
  return gpu;
}

/// make_record(), with a GPU for each rank.
inline measure::Record make_gpu_record(const Run& run) {
  auto record = make_record(run);
  record.device = "cuda";
  record.device_name = "NVIDIA H100 80GB HBM3";
  record.gpus.emplace();
  for (int rank = 0; rank < run.workers; ++rank) record.gpus->push_back(make_gpu(rank));
  return record;
}

}  // namespace paceline::golden
