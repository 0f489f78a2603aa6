#pragma once

/// The steps that a device has in its queue: what each tells the host, and when the device passed its marks.
///
/// A step has a pinned copy of its report and timed events, which are used again when it was collected. Times
/// are put on the host's clock through an anchor: an event, and the host's time when it was waited for, taken
/// anew whenever the queue was empty. From there each step is placed by the distance of its events to the end
/// of the step before.

#include <array>
#include <vector>

#include "base/clock.h"
#include "engine/cuda/kernels/step_report.h"
#include "engine/cuda/runtime.h"
#include "engine/engine.h"

namespace paceline::engine::cuda {

class StepReports {
 public:
  static constexpr int kLag = 2;  ///< StepQueue::lag()

  StepReports(Runtime& runtime, Stream compute);

  /// Where kernels write the report of the step that is open, and whether updates are halted.
  [[nodiscard]] StepReport* on_device() const { return on_device_; }
  [[nodiscard]] std::int32_t* is_halted() const { return is_halted_; }

  [[nodiscard]] bool is_open() const { return is_open_; }
  /// Neither open nor waiting to be collected.
  [[nodiscard]] bool is_empty() const { return !is_open_ && closed_ == 0; }

  /// A step begins. Requires: none is open, and at most kLag are closed. Waits for the device where the queue
  /// was empty.
  void open();
  /// Requires: a step is open.
  void mark(Stage until);
  /// The step's last work was enqueued.
  void close();
  /// The oldest closed step; waits for its end. `local.samples` is the caller's to fill in.
  [[nodiscard]] QueuedStep collect();

  [[nodiscard]] static std::int64_t device_bytes() { return sizeof(StepReport) + sizeof(std::int32_t); }
  [[nodiscard]] static std::int64_t pinned_bytes() { return kSlots * sizeof(StepReport); }

 private:
  /// While one is filled and kLag wait, the end of the one that was collected last is measured from.
  static constexpr int kSlots = kLag + 2;
  struct Slot {
    StepReport* pinned = nullptr;
    std::vector<Event> events;  ///< made when they are first wanted
    std::vector<Stage> stages;  ///< of the first so many events
  };
  [[nodiscard]] Slot& slot(std::int64_t step) { return slots_[static_cast<std::size_t>(step % kSlots)]; }

  Runtime& runtime_;
  const Stream compute_;
  StepReport* const on_device_;
  std::int32_t* const is_halted_;
  const Event anchor_;
  std::array<Slot, kSlots> slots_;
  std::int64_t first_ = 0;  ///< number of the oldest step that was not collected
  int closed_ = 0;
  bool is_open_ = false;
  Event last_;  ///< the anchor, or the end of the step that was collected last
  base::TimePoint last_at_{};
};

}  // namespace paceline::engine::cuda
