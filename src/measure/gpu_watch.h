#pragma once

/// GpuWatch reads the GPUs of a run periodically on its own thread, for the GPU part of the record
/// (gpu_record.h).

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/gpu_reading.h"
#include "measure/gpu_record.h"

namespace paceline::measure {

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

/// Convert reports for messages between the processes of a run.
///
/// Errors   Error(data), like record_from_json()
[[nodiscard]] std::string to_json(const GpuReport& report);
[[nodiscard]] GpuReport gpu_report_from_json(const std::string& text);

}  // namespace paceline::measure
