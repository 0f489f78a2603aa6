#pragma once

/// An OrderedRuntime that counts waits, allocations, captures, replays and launches, and that leaves out what
/// a test names: so a test shows that each wait is needed, and what the engine does where a section cannot be
/// captured.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/cuda/ordered_runtime.h"

namespace paceline::engine::cuda {

class ObservedRuntime : public OrderedRuntime {
 public:
  using OrderedRuntime::OrderedRuntime;

  void wait(Stream stream, Event event) override {
    if (!is_dropped()) HostRuntime::wait(stream, event);
  }
  void synchronize(Stream stream) override {
    ++stream_synchronizations_;
    if (!is_dropped()) HostRuntime::synchronize(stream);
  }
  void synchronize(Event event) override {
    ++event_synchronizations_;
    if (!is_dropped()) HostRuntime::synchronize(event);
  }
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override {
    ++allocations_;
    return OrderedRuntime::allocate(bytes);
  }
  [[nodiscard]] std::byte* allocate_pinned(std::size_t bytes) override {
    ++allocations_;
    return OrderedRuntime::allocate_pinned(bytes);
  }
  void copy_to_device(Stream stream, void* dst, const void* pinned_src, std::size_t bytes) override {
    ++host_copies_[stream.index];
    HostRuntime::copy_to_device(stream, dst, pinned_src, bytes);
  }
  void copy_to_host(Stream stream, void* pinned_dst, const void* src, std::size_t bytes) override {
    ++host_copies_[stream.index];
    HostRuntime::copy_to_host(stream, pinned_dst, src, bytes);
  }
  using HostRuntime::launch;
  void launch(Stream stream, int kernel, const void* arguments, std::size_t bytes,
              const Grid& grid) override {
    ++launches_;
    HostRuntime::launch(stream, kernel, arguments, bytes, grid);
  }
  [[nodiscard]] CapturedSection capture(Stream stream, const std::function<void()>& post) override {
    if (!refusal_.empty()) throw CannotCapture(refusal_);
    const int launches = launches_;
    const CapturedSection section = HostRuntime::capture(stream, post);
    launches_ = launches;
    ++captures_;
    return section;
  }
  void replay(Stream stream, CapturedSection section) override {
    HostRuntime::replay(stream, section);
    ++replays_;
  }

  /// The number of calls that made a stream wait for an event, or the host for a stream or an event.
  [[nodiscard]] int waits() const { return waits_; }
  /// How often the host waited for a stream, and for an event.
  [[nodiscard]] int stream_synchronizations() const { return stream_synchronizations_; }
  [[nodiscard]] int event_synchronizations() const { return event_synchronizations_; }
  /// Copies between host and device on a stream; streams count from 0, in the order in which they were made.
  [[nodiscard]] int host_copies(int stream) const {
    const auto found = host_copies_.find(stream);
    return found == host_copies_.end() ? 0 : found->second;
  }
  /// Makes the wait with this number do nothing; numbers count as waits() does, from 0.
  void drop_wait(std::optional<int> number) { dropped_wait_ = number; }

  [[nodiscard]] int captures() const { return captures_; }
  [[nodiscard]] int replays() const { return replays_; }
  [[nodiscard]] int allocations() const { return allocations_; }
  /// Kernels that were launched outside of a capture.
  [[nodiscard]] int launches() const { return launches_; }
  /// Makes capture() throw CannotCapture with this text; empty: it works again.
  void refuse_captures(std::string why) { refusal_ = std::move(why); }

 private:
  /// Counts a wait. Returns whether it is the one that drop_wait() named.
  [[nodiscard]] bool is_dropped() { return dropped_wait_ == waits_++; }

  int waits_ = 0, stream_synchronizations_ = 0, event_synchronizations_ = 0, captures_ = 0, replays_ = 0;
  int allocations_ = 0, launches_ = 0;
  std::map<int, int> host_copies_;
  std::optional<int> dropped_wait_;
  std::string refusal_;
};

}  // namespace paceline::engine::cuda
