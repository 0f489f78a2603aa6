#pragma once

/// StepReports keeps, for the steps in a device's queue, what each step reports to the host (loss sums,
/// votes) and when the device reached the step's marks.
///
/// Each step has a pinned copy of its report and timed events; both are reused after the step is collected.
/// Event times are converted to the host's clock by an anchor: an event, and the host's time when it was
/// reached. The anchor is renewed whenever the queue was empty. Later steps are placed by the time from the
/// end of the step before to their events.

#include <array>
#include <vector>

#include "base/clock.h"
#include "engine/cuda/kernels/step_report.h"
#include "engine/cuda/runtime/runtime.h"
#include "engine/engine.h"

namespace paceline::engine::cuda {

class StepReports {
 public:
  static constexpr int kLag = 2;  ///< StepQueue::lag()

  StepReports(Runtime& runtime, Stream compute);

  /// On the device: the report of the open step, which kernels write, and whether updates are halted.
  [[nodiscard]] StepReport* on_device() const { return on_device_; }
  [[nodiscard]] std::int32_t* is_halted() const { return is_halted_; }

  [[nodiscard]] bool is_open() const { return is_open_; }
  /// Whether no step is open or waits to be collected.
  [[nodiscard]] bool is_empty() const { return !is_open_ && closed_ == 0; }

  /// Begins a step. Waits for the device if the queue was empty.
  ///
  /// Requires  no step is open, and at most kLag are closed
  void open();
  /// Records a mark of the open step.
  ///
  /// Requires  a step is open
  void mark(Stage until);
  /// Ends the open step: call it when all of its work is enqueued.
  void close();
  /// Returns the oldest closed step, and waits for its end. The caller fills in `local.samples`.
  [[nodiscard]] QueuedStep collect();

  [[nodiscard]] static std::int64_t device_bytes() { return sizeof(StepReport) + sizeof(std::int32_t); }
  [[nodiscard]] static std::int64_t pinned_bytes() { return kSlots * sizeof(StepReport); }

 private:
  /// One step is open, kLag wait to be collected, and the times of the oldest are measured from the end of
  /// the step collected before it.
  static constexpr int kSlots = kLag + 2;
  struct Slot {
    StepReport* pinned = nullptr;
    std::vector<Event> events;  ///< made at their first use
    std::vector<Stage> stages;  ///< of the first stages.size() events of the step
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
