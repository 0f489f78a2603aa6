#pragma once

/// Reads GPUs over time, on a thread of its own, so that a record can say what they were at.

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/gpu_reading.h"
#include "measure/gpu_record.h"

namespace paceline::measure {

/// What one process read of the GPUs that its workers compute on.
struct GpuReport {
  std::vector<int> pids;  ///< of the process, and of others of the run on its host
  /// `others` holds all processes that were seen, those of the run too: join() takes these out.
  std::vector<GpuRecord> gpus;
  std::vector<std::string> failures;  ///< each call that failed, once
};

/// The GPUs of a run, by host and PCI bus id, each once: those that several processes share with the ranks of
/// all. Processes of the run are not `others`; where the driver numbers processes otherwise than they do
/// themselves (in containers), as many as the run has there are left out.
[[nodiscard]] std::vector<GpuRecord> join(std::span<const GpuReport> reports);

/// Opens the GPUs; called on the watch's thread. Errors   base::Error: what is missing
using OpenGpus = std::function<std::unique_ptr<base::GpuSource>()>;

/// One thread, which reads each GPU every `period` (and at once where a window begins or ends) and sleeps in
/// between. What goes wrong there is said once in the report; nothing of it reaches the run. A call of the
/// driver's that hangs is waited for kPatience and then left behind with its thread.
///
/// Cost     a reading is about twelve calls of NVML a GPU, some milliseconds, beside the run: less than a
///          hundredth of a core. 64 bytes a row, kMostRows at most
/// Threads  begin() and end() from any, one at a time
class GpuWatch {
 public:
  static constexpr std::chrono::milliseconds kPeriod{500};
  static constexpr std::chrono::milliseconds kPatience{2000};
  static constexpr std::size_t kMostRows = 512;  ///< of a course: twice as many are joined in pairs

  /// Starts the thread; where the system refuses one, end() says so. `neighbours`: other processes of the run
  /// on this host, whether they work now or not; they may hold memory of its GPUs.
  explicit GpuWatch(OpenGpus open, std::chrono::milliseconds period = kPeriod,
                    std::vector<int> neighbours = {});
  /// Ends the thread. Blocks while it is in a call, for kPatience at most.
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  /// A window begins: what was read until now is forgotten, but for Xid errors. Returns at once.
  void begin();
  /// The window so far, with a last reading: waits for that, for kPatience at most. `first_rank`: of this
  /// process.
  [[nodiscard]] GpuReport end(int first_rank);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  ///< with the thread, which may outlive this
};

/// For messages between the processes of a run. Errors   base::Error(data), as record_from_json()
[[nodiscard]] std::string to_json(const GpuReport& report);
[[nodiscard]] GpuReport gpu_report_from_json(const std::string& text);

}  // namespace paceline::measure
