#pragma once

/// The side stream of a HostRuntime (base/side_stream.h). Tests run an imitation of a collectives library on
/// it.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/side_stream.h"
#include "engine/cuda/runtime/stream.h"

namespace paceline::engine::cuda {

class HostRuntime;

/// What native() of a HostSideStream points to. HostRuntime::post() enqueues work on it.
struct HostStream {
  HostRuntime& runtime;
  Stream stream;
};

class HostSideStream final : public base::SideStream {
 public:
  HostSideStream(HostRuntime& runtime, Stream engine);

  [[nodiscard]] std::string device() const override;
  [[nodiscard]] void* native() const override { return const_cast<HostStream*>(&here_); }
  void enter() const override {}
  void follow_engine() override;
  void engine_follows(int mark) override;
  void tree_sum(float* first, int parts, std::size_t stride, std::size_t count, float* dst) override;
  [[nodiscard]] int make_mark() override;
  void set(int mark) override;
  [[nodiscard]] bool is_done(int mark) const override;
  void wait(int mark) override;
  [[nodiscard]] base::TimePoint done_at(int mark) override;

 private:
  /// `at` is written before `is_done`, read after it.
  struct Mark {
    Event event;
    std::atomic<bool> is_done{true};
    base::TimePoint at{};
  };
  const HostStream here_;
  const Stream engine_;
  const Event engine_came_;
  std::vector<std::shared_ptr<Mark>> marks_;  ///< shared with the work that sets them
};

}  // namespace paceline::engine::cuda
