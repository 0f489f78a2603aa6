#include "engine/cuda/runtime/host_side_stream.h"

#include <fmt/format.h>
#include <unistd.h>

#include "engine/cuda/runtime/host_runtime.h"
#include "engine/cuda/runtime/tree_sum.h"

namespace paceline::engine::cuda {

std::unique_ptr<base::SideStream> HostRuntime::make_side_stream(Stream engine) {
  return std::make_unique<HostSideStream>(*this, engine);
}

HostSideStream::HostSideStream(HostRuntime& runtime, Stream engine)
    : here_{.runtime = runtime, .stream = runtime.make_stream()},
      engine_(engine),
      engine_came_(runtime.make_event()) {}

std::string HostSideStream::device() const {
  return fmt::format("host runtime {} of process {}", fmt::ptr(&here_.runtime), ::getpid());
}

void HostSideStream::follow_engine() {
  here_.runtime.record(engine_came_, engine_);
  here_.runtime.wait(here_.stream, engine_came_);
}

void HostSideStream::engine_follows(int mark) {
  here_.runtime.wait(engine_, marks_[static_cast<std::size_t>(mark)]->event);
}

void HostSideStream::tree_sum(float* first, int parts, std::size_t stride, std::size_t count, float* dst) {
  for_each_tree_level(first, parts, stride, count, dst,
                      [&](const ArrayTreeLevel& level) { here_.runtime.launch(here_.stream, level); });
}

int HostSideStream::make_mark() {
  marks_.push_back(std::make_shared<Mark>());
  marks_.back()->event = here_.runtime.make_event();
  return static_cast<int>(marks_.size()) - 1;
}

void HostSideStream::set(int mark) {
  const auto& one = marks_[static_cast<std::size_t>(mark)];
  one->is_done = false;
  here_.runtime.post(here_.stream, "a mark", [one] {
    one->at = base::Clock::now();
    one->is_done.store(true, std::memory_order_release);
  });
  here_.runtime.record(one->event, here_.stream);
}

bool HostSideStream::is_done(int mark) const {
  return marks_[static_cast<std::size_t>(mark)]->is_done.load(std::memory_order_acquire);
}

void HostSideStream::wait(int mark) {
  if (!is_done(mark)) here_.runtime.synchronize(marks_[static_cast<std::size_t>(mark)]->event);
}

base::TimePoint HostSideStream::done_at(int mark) { return marks_[static_cast<std::size_t>(mark)]->at; }

}  // namespace paceline::engine::cuda
