#pragma once

/// GpuRecord is the part of a record about one GPU during the measured window: load, power, energy, clocks,
/// errors, other processes. The values come from the driver's library NVML.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/gpu_reading.h"

namespace paceline::measure {

/// A process that is not of the run and computed on one of its GPUs.
struct GpuProcessRecord {
  std::int64_t pid = 0;                      ///< the driver's process id; 0: unknown
  std::string name;                          ///< empty: unknown
  std::optional<std::int64_t> memory_bytes;  ///< maximum over the window
  double share = 0;                          ///< share of the readings in which it was present
};

/// Readings over time, in columns. In long windows a row is the mean of several readings. A missing value is
/// NaN (null in JSON); a column without any value is empty.
struct GpuCourseRecord {
  std::int64_t readings_each = 1;  ///< readings in each row; the last row may have fewer
  std::vector<double> at_s;        ///< time of the row's first reading since the window began
  std::vector<double> utilisation, memory_utilisation;
  std::vector<double> memory_bytes;  ///< in use; maximum of the row
  std::vector<double> watts, sm_mhz, memory_mhz;
  std::vector<double> celsius;  ///< maximum of the row
};

/// One GPU over the measured window.
struct GpuRecord {
  int index = 0;           ///< the driver's index
  std::vector<int> ranks;  ///< the ranks that computed on it
  std::string name;
  std::optional<std::string> uuid, bus_id;
  std::optional<std::string> host;  ///< if several processes ran
  std::int64_t readings = 0;
  double seconds = 0;              ///< from the first reading to the last; energy_j covers these
  std::optional<double> energy_j;  ///< energy used by the whole GPU
  /// "counter": read from the GPU's energy counter; "power": the integral of its power readings (trapezoids).
  std::optional<std::string> energy_by;
  std::optional<double> watts_limit;
  std::optional<std::int64_t> memory_bytes;  ///< total
  std::optional<int> sm_mhz_most, memory_mhz_most;
  std::optional<base::PcieLink> pcie;  ///< the fastest seen, since an idle GPU slows its link to save power
  std::optional<base::PcieLink> pcie_most;  ///< the fastest that GPU and slot support
  std::optional<int> nvlinks;               ///< active links
  /// Why its clocks were lowered: for each reason the share of readings. None: unknown.
  std::optional<std::map<std::string, double>> held_back;
  /// Numbers of the driver's Xid errors (GPU error reports) until the end of the window, also those before
  /// it, since a GPU that has failed may compute differently. None: there were none.
  std::optional<std::vector<int>> xids;
  std::optional<std::vector<GpuProcessRecord>> others;  ///< none: the driver does not list processes
  GpuCourseRecord course;
};

}  // namespace paceline::measure
