#pragma once

/// The side stream of a GPU: a second stream on which collectives run beside the engine (base/side_stream.h).

#include <string>
#include <vector>

#include "base/side_stream.h"
#include "engine/cuda/api/cuda.h"

namespace paceline::engine::cuda {

class DeviceSideStream final : public base::SideStream {
 public:
  /// `device`: its index among the visible devices; `engine`: the engine's compute stream.
  ///
  /// Requires  `api` outlives this object
  DeviceSideStream(const CudaApi& api, int device, CudaStreamHandle engine);
  ~DeviceSideStream() override;
  DeviceSideStream(const DeviceSideStream&) = delete;
  DeviceSideStream& operator=(const DeviceSideStream&) = delete;

  [[nodiscard]] std::string device() const override { return bus_id_; }
  [[nodiscard]] std::string uuid() const override { return uuid_; }
  [[nodiscard]] void* native() const override { return stream_; }
  void enter() const override;
  void follow_engine() override;
  void engine_follows(int mark) override;
  void tree_sum(float* first, int parts, std::size_t stride, std::size_t count, float* dst) override;
  [[nodiscard]] int make_mark() override;
  void set(int mark) override;
  [[nodiscard]] bool is_done(int mark) const override;
  void wait(int mark) override;
  [[nodiscard]] base::TimePoint done_at(int mark) override;

 private:
  struct Mark {
    CudaEventHandle event = nullptr;
    bool is_set = false;
    bool is_before_anchor = false;  ///< reached before the anchor was recorded
  };
  /// Throws Error(device) unless `status` is success.
  void check(CudaStatus status, const char* call) const;
  [[nodiscard]] CudaStreamHandle make_stream(int priority) const;
  [[nodiscard]] CudaEventHandle make_event(unsigned flags) const;
  void free() noexcept;
  void renew_anchor();
  [[nodiscard]] const Mark& at(int mark) const { return marks_[static_cast<std::size_t>(mark)]; }

  const CudaApi& api_;
  const int device_;
  const CudaStreamHandle engine_;
  std::string bus_id_, uuid_;
  CudaStreamHandle stream_ = nullptr;
  CudaStreamHandle idle_ = nullptr;  ///< only for the anchor, which is thus reached at once
  CudaEventHandle engine_came_ = nullptr;
  CudaEventHandle anchor_ = nullptr;  ///< an event whose time on the host's clock is known
  base::TimePoint anchor_at_{};
  std::vector<Mark> marks_;
};

}  // namespace paceline::engine::cuda
