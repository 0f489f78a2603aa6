#pragma once

/// GpuCourse collects the readings of one GPU over a measured window, and makes the GPU's part of the record:
/// energy, rows over time, reasons for lowered clocks, errors, other processes.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/gpu_reading.h"
#include "measure/gpu_record.h"

namespace paceline::measure {

/// Memory is bounded: when there are `most_rows` rows, neighbouring rows are joined in pairs.
///
/// Threads  one at a time
class GpuCourse {
 public:
  /// `most_rows`: the largest number of rows; even.
  GpuCourse(base::TimePoint begin, std::size_t most_rows) : begin_(begin), most_rows_(most_rows) {}

  void add(const base::GpuReading& reading, base::TimePoint at);
  /// Adds Xid errors of readings outside the window.
  void add_xids(const std::vector<int>& xids) { xids_.insert(xids_.end(), xids.begin(), xids.end()); }
  [[nodiscard]] const std::vector<int>& xids() const { return xids_; }
  /// The record of the GPU described by `identity`, without ranks and host.
  [[nodiscard]] GpuRecord record(const base::GpuIdentity& identity) const;

 private:
  /// Sums or maxima over the readings of a row.
  struct Row {
    double at_s = 0;
    int readings = 0;
    struct Mean {
      double sum = 0;
      int told = 0;
    };
    Mean utilisation, memory_utilisation, watts, sm_mhz, memory_mhz;
    std::optional<double> memory_bytes, celsius;
  };
  static void join(Row& row, const Row& next);
  void add_energy(const base::GpuReading& reading, double at_s);
  void add_processes(const std::vector<base::GpuProcessReading>& processes);

  base::TimePoint begin_;
  std::size_t most_rows_;
  std::int64_t readings_each_ = 1, readings_ = 0;
  std::vector<Row> rows_;
  std::optional<double> first_s_, last_s_;
  // Energy, by the GPU's counter and by integrating its power.
  std::optional<double> first_joules_, last_joules_, watts_, watts_at_s_;
  double first_joules_at_s_ = 0, last_joules_at_s_ = 0;
  bool has_counter_ = true;
  double trapezoids_j_ = 0, first_watts_at_s_ = 0;
  std::int64_t brakes_told_ = 0;
  std::map<std::string, std::int64_t> braked_;
  std::optional<base::PcieLink> pcie_;
  std::vector<int> xids_;
  std::int64_t processes_told_ = 0;
  struct Process {
    base::GpuProcessReading last;
    std::int64_t seen = 0;
  };
  std::map<int, Process> processes_;  ///< by number
};

}  // namespace paceline::measure
