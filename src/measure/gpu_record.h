#pragma once

/// What a GPU was at while something was measured, as its driver's library (NVML) told it: a part of a
/// record.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace paceline::measure {

/// A process of somebody else's that computed on a GPU of the run.
struct GpuProcessRecord {
  std::int64_t pid = 0;                      ///< as the driver numbers it; 0: which it was is not told
  std::string name;                          ///< empty: not told
  std::optional<std::int64_t> memory_bytes;  ///< the most
  double share = 0;                          ///< of the readings, in which it was there
};

/// Readings over time, a column each; of long windows the means of several. A figure that one reading lacks
/// is null, a column that all lack is empty.
struct GpuCourseRecord {
  std::int64_t readings_each = 1;  ///< of each row; the last may have fewer
  std::vector<double> at_s;        ///< since the window began: of the row's first reading
  std::vector<double> utilisation, memory_utilisation;
  std::vector<double> memory_bytes;  ///< in use, the most of the row's readings
  std::vector<double> watts, sm_mhz, memory_mhz;
  std::vector<double> celsius;  ///< the most
};

struct GpuLinkRecord {
  int generation = 0, width = 0;  ///< of PCIe
};

/// One GPU over the measured window.
struct GpuRecord {
  int index = 0;           ///< the driver's number
  std::vector<int> ranks;  ///< that computed on it
  std::string name;
  std::optional<std::string> uuid, bus_id;
  std::optional<std::string> host;  ///< where several processes ran
  std::int64_t readings = 0;
  double seconds = 0;              ///< from the first reading to the last: energy_j is of these
  std::optional<double> energy_j;  ///< that the whole GPU took
  /// "counter": the GPU's own; "power": the readings of its power, by trapezoids between them.
  std::optional<std::string> energy_by;
  std::optional<double> watts_limit;
  std::optional<std::int64_t> memory_bytes;  ///< that it has
  std::optional<int> sm_mhz_most, memory_mhz_most;
  std::optional<GpuLinkRecord> pcie;       ///< the best that was seen: an idle GPU lowers it to save power
  std::optional<GpuLinkRecord> pcie_most;  ///< that GPU and slot can do
  std::optional<int> nvlinks;              ///< active ones
  /// What held its clocks back: part of the readings, by reason. None: it does not tell.
  std::optional<std::map<std::string, double>> held_back;
  /// Numbers of the driver's Xid errors until the window's end, those before it too: a GPU that failed is
  /// not what it was. None: there were none.
  std::optional<std::vector<int>> xids;
  std::optional<std::vector<GpuProcessRecord>> others;  ///< none: processes are not told
  GpuCourseRecord course;
};

}  // namespace paceline::measure
