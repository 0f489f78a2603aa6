#pragma once

/// GpuWatch reads the GPUs of a run periodically on its own thread, for the GPU part of the record
/// (gpu_record.h).

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/gpu_reading.h"
#include "measure/gpu_record.h"

namespace paceline::measure {

// GpuCourse collects the readings of one GPU over a measured window, and makes the GPU's part of the record:
// energy, rows over time, reasons for lowered clocks, errors, other processes.

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

/// The readings of one process about the GPUs of its workers.
struct GpuReport {
  std::vector<int> pids;  ///< ids of the process and of the other processes of the run on its host
  /// Here GpuRecord::others contains all processes that were seen; join() removes those of the run.
  std::vector<GpuRecord> gpus;
  std::vector<std::string> failures;  ///< each failed call once
};

/// Joins the reports of all processes: each GPU once (by host and PCI bus id), ordered by host and index,
/// with the ranks of all processes that share it. Removes processes of the run from `others`; if the driver's
/// process ids differ from the processes' own (in containers), it removes as many processes as the run has on
/// that GPU.
[[nodiscard]] std::vector<GpuRecord> join(std::span<const GpuReport> reports);

/// Opens the GPUs; called on the watch's thread.
///
/// Errors   base::Error that says what is missing
using OpenGpus = std::function<std::unique_ptr<base::GpuSource>()>;

/// Its thread reads each GPU every `period`, and also when a window begins or ends. Failures are listed in
/// the report and do not affect the run. If a call to the driver hangs, end() and the destructor wait
/// kPatience, then abandon the thread.
///
/// Cost     a reading takes about twelve calls of NVML for each GPU, some milliseconds: less than a hundredth
///          of a core. Memory: 64 bytes a row, at most kMostRows rows
/// Threads  begin() and end() from any thread, one at a time
class GpuWatch {
 public:
  static constexpr std::chrono::milliseconds kPeriod{500};
  static constexpr std::chrono::milliseconds kPatience{2000};
  static constexpr std::size_t kMostRows = 512;  ///< rows of one GPU; then rows are joined in pairs

  /// Starts the thread. If the system refuses a thread, the report of end() says so. `neighbours`: ids of the
  /// run's other processes on this host, also of idle ones, since they may hold memory of its GPUs.
  explicit GpuWatch(OpenGpus open, std::chrono::milliseconds period = kPeriod,
                    std::vector<int> neighbours = {});
  /// Ends the thread. Blocks while it is in a call, for at most kPatience.
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  /// Begins a window: discards earlier readings, except their Xid errors. Returns at once.
  void begin();
  /// Returns the window so far, after a last reading for which it waits at most kPatience. `first_rank`: the
  /// first rank of this process.
  [[nodiscard]] GpuReport end(int first_rank);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  ///< shared with the thread, which may outlive this object
};

}  // namespace paceline::measure
