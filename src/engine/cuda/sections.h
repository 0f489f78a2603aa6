#pragma once

/// Sections captures the work of training steps and evaluations as CUDA graphs, in the warm-up
/// (Engine::warm_up()); from then on each section is replayed by one call. LogitsReader and StepReports read
/// back what a pass or a step leaves.
///
/// A section is work that the engine enqueues on the compute stream without a break: the forward pass; a part
/// of the backward pass, which ends where the caller wants to know that gradients are final, since it starts
/// collectives there; the update; the forward pass of a full batch in evaluation. What differs between steps
/// (labels, draws, step, learning rate, scale) is read from device memory, at addresses that stay the same.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/cuda/kernels/step_report.h"
#include "engine/cuda/ops/compiled_op.h"
#include "engine/cuda/program.h"
#include "engine/cuda/runtime/runtime.h"
#include "engine/engine.h"

namespace paceline::engine::cuda {

/// Copies the logits of an evaluation to the host.
class LogitsReader {
 public:
  /// Fills `logits` [count][classes] from the last pass: the mean over the views of each of `count` samples,
  /// as the loss used it.
  ///
  /// Cost     waits for the compute stream; the first call allocates pinned memory for a batch
  void read(const Program& program, const ExecContext& exec, int count, int views, std::span<double> logits);

 private:
  std::byte* pinned_ = nullptr;  ///< null until the first read(): training has none
};

// StepReports keeps, for the steps in a device's queue, what each step reports to the host (loss sums,
// votes) and when the device reached the step's marks.
//
// Each step has a report in pinned memory, which kernels write, and timed events; both are reused after the
// step is collected.
// Event times are converted to the host's clock by an anchor: an event, and the host's time when it was
// reached. The anchor is renewed whenever the queue was empty. Later steps are placed by the time from the
// end of the step before to their events.

class StepReports {
 public:
  static constexpr int kLag = 2;  ///< StepQueue::lag()

  StepReports(Runtime& runtime, Stream compute);

  /// On the device: what the passes of a step have added up, and whether updates are halted.
  [[nodiscard]] StepReport* on_device() const { return on_device_; }
  [[nodiscard]] std::int32_t* is_halted() const { return is_halted_; }
  /// On the device: to which squares of a step's gradients are added.
  [[nodiscard]] double* squares(SquaresOf of) const { return on_device_->squares + static_cast<int>(of); }

  [[nodiscard]] bool is_open() const { return is_open_; }
  /// In pinned memory: the report of the open step.
  [[nodiscard]] StepReport* of_open_step() const { return slot(first_ + closed_).pinned; }
  /// Whether no step is open or waits to be collected.
  [[nodiscard]] bool is_empty() const { return !is_open_ && closed_ == 0; }

  /// Begins a step. Waits for the device if the queue was empty.
  ///
  /// Requires  no step is open, and at most kLag are closed
  void open();
  /// Records a mark of the open step. A transfer ends once: a second mark of its end is none.
  ///
  /// Requires  a step is open
  void mark(Stage until);
  /// Ends the open step: call it when all of its work is enqueued.
  void close();
  /// Returns the oldest closed step, and waits for its end. The caller fills in `local.samples`.
  [[nodiscard]] QueuedStep collect();
  /// What a step outside of the queue has reported so far; waits for it. Valid until the next call.
  ///
  /// Requires  is_empty()
  [[nodiscard]] const StepReport& wait_for_report();

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
  [[nodiscard]] const Slot& slot(std::int64_t step) const {
    return slots_[static_cast<std::size_t>(step % kSlots)];
  }

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

/// A part of the backward pass between two points where gradients become final.
struct BackwardSection {
  /// Indices in Program::ops(): runs from first_op down to last_op, inclusive.
  int first_op = 0, last_op = 0;
  /// Gradients in [0, ready) of the flat array are final after it; 0: no more than before.
  std::int64_t ready = 0;
};

/// Cuts the backward pass after the ops that complete the gradients up to each of `ends`. If `ends` is empty:
/// after each op that makes more gradients final.
[[nodiscard]] std::vector<BackwardSection> cut_backward_pass(const Program& program,
                                                             std::span<const std::int64_t> ends);

/// Why no training step of this program can be captured: the reason of the first op that needs the host.
/// Empty if it can be captured.
[[nodiscard]] std::string why_eager(const Program& program);

enum class SectionPart { forward, backward, update, evaluation };

struct Section {
  SectionPart part = SectionPart::forward;
  int number = 0;  ///< index of the section in its part; for an evaluation, the views of each sample
  auto operator<=>(const Section&) const = default;
};

class Sections {
 public:
  /// `captures`: whether to capture at all. `why_eager`: the reason not to capture training steps, or empty.
  Sections(Runtime& runtime, Stream compute, bool captures, std::string why_eager)
      : runtime_(runtime),
        compute_(compute),
        captures_(captures),
        why_eager_(captures ? std::move(why_eager) : "switched off") {}

  [[nodiscard]] bool captures() const { return captures_; }
  /// Whether run() captures the sections that it does not know. They must have run once before: libraries
  /// load kernels and allocate memory when they first run, which a capture forbids.
  void capture_new(bool captures_new) { captures_new_ = captures_new; }
  /// Enqueues a section on the compute stream: replays it if it is captured, otherwise calls `post`, which
  /// enqueues it kernel by kernel. `post` must enqueue the same work each time. Errors of a replay give
  /// `name` in place of an op.
  ///
  /// Errors   Error(device). A section that cannot be captured is no error: it is launched kernel by kernel,
  ///          and describe() says why
  void run(const Section& section, const char* name, const std::function<void()>& post);
  /// Discards the captured sections of the backward pass. Call it if `post` will enqueue other work for them.
  void forget_backward();
  /// The row of Engine::kernels() that says how steps are launched.
  [[nodiscard]] KernelChoice describe() const;

 private:
  Runtime& runtime_;
  const Stream compute_;
  const bool captures_;
  const std::string why_eager_;
  bool captures_new_ = false;
  std::map<Section, CapturedSection> captured_;
  std::map<Section, std::string> refused_;  ///< why they cannot be captured
};

/// A step with learning rate 0, and a full batch of an evaluation, on black images. For training the caller
/// restores weights and state.
void work_on_black_images(Engine& engine, const CompileOptions& options, const WarmUp& coming);

}  // namespace paceline::engine::cuda
