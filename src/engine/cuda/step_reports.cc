#include "engine/cuda/step_reports.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace paceline::engine::cuda {

static_assert(kVotes == kVoteFloats);

StepReports::StepReports(Runtime& runtime, Stream compute)
    : runtime_(runtime),
      compute_(compute),
      on_device_(reinterpret_cast<StepReport*>(runtime.allocate(sizeof(StepReport) + sizeof(std::int32_t)))),
      is_halted_(reinterpret_cast<std::int32_t*>(on_device_ + 1)),
      anchor_(runtime.make_timed_event()) {
  auto* pinned = reinterpret_cast<StepReport*>(runtime.allocate_pinned(kSlots * sizeof(StepReport)));
  for (Slot& slot : slots_) slot.pinned = pinned++;
}

void StepReports::open() {
  base::expects(!is_open_ && closed_ <= kLag, "a queue of steps holds one more than its lag");
  if (closed_ == 0) {
    const auto before = base::Clock::now();
    runtime_.record(anchor_, compute_);
    runtime_.synchronize(anchor_);
    last_ = anchor_;
    last_at_ = before + (base::Clock::now() - before) / 2;
  }
  is_open_ = true;
  slot(first_ + closed_).stages.clear();
}

void StepReports::mark(Stage until) {
  base::expects(is_open_, "marks belong to a step");
  Slot& open = slot(first_ + closed_);
  if (open.stages.size() == open.events.size()) open.events.push_back(runtime_.make_timed_event());
  runtime_.record(open.events[open.stages.size()], compute_);
  open.stages.push_back(until);
}

void StepReports::close() {
  base::expects(is_open_, "a step ends that has begun");
  // On the compute stream, since the next step overwrites the report. 64 bytes take some microseconds.
  runtime_.copy_to_host(compute_, slot(first_ + closed_).pinned, on_device_, sizeof(StepReport));
  mark(Stage::update);
  is_open_ = false;
  ++closed_;
}

QueuedStep StepReports::collect() {
  base::expects(closed_ > 0, "a step is collected that is in the queue");
  const Slot& oldest = slot(first_);
  const Event end = oldest.events[oldest.stages.size() - 1];
  runtime_.synchronize(end);
  QueuedStep step{.local = {.loss = oldest.pinned->local.loss, .correct = oldest.pinned->local.correct},
                  .is_left_out = oldest.pinned->is_left_out != 0};
  std::ranges::copy(oldest.pinned->votes, step.votes.begin());
  const auto after_last = [&](Event event) {
    return last_at_ + std::chrono::duration_cast<base::Clock::duration>(
                          std::chrono::duration<double>(runtime_.seconds_between(last_, event)));
  };
  for (std::size_t i = 0; i < oldest.stages.size(); ++i)
    step.marks.push_back({oldest.stages[i], after_last(oldest.events[i])});
  last_at_ = step.marks.back().at;
  last_ = end;
  ++first_;
  --closed_;
  return step;
}

}  // namespace paceline::engine::cuda
