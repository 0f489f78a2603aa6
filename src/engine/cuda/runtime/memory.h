#pragma once

/// DeviceMemory implements base::Memory (allocate, copy, add flat arrays) for one CUDA engine. All work runs
/// on the engine's compute stream, in order.

#include <cstddef>
#include <memory>
#include <string>

#include "base/buffer.h"
#include "engine/cuda/runtime/runtime.h"

namespace paceline::engine::cuda {

class DeviceMemory final : public base::Memory {
 public:
  /// `name`: for messages. Its memory is freed with `runtime`, not before.
  ///
  /// Requires  `runtime` outlives this object
  DeviceMemory(Runtime& runtime, Stream compute, std::string name);

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] bool is_host() const override { return false; }
  [[nodiscard]] base::OwnedArray allocate(std::size_t size) const override;
  void fill(base::Array dst, float value) const override;
  void copy(base::Array src, base::Array dst) const override;
  void add(base::Array left, base::Array right, base::Array dst) const override;
  void mix(base::Array src, double keep, base::Array dst) const override;
  void read(base::Array src, std::span<float> dst) const override;
  void write(std::span<const float> src, base::Array dst) const override;
  [[nodiscard]] std::unique_ptr<base::SideStream> make_side_stream() const override {
    return runtime_.make_side_stream(compute_);
  }

  /// Copies any bytes to the device; `src` may be overwritten when this returns.
  void upload(void* dst, const void* src, std::size_t bytes) const;
  /// Call it after the host has waited for the compute stream, so that the next copy need not wait.
  void has_settled() const { staging_is_free_ = true; }

  /// Size of the pinned memory through which read(), write() and upload() copy, piece by piece.
  static constexpr std::size_t kStagingBytes = std::size_t{1} << 20;

 private:
  void wait_for_staging() const;

  Runtime& runtime_;
  const Stream compute_;
  const std::string name_;
  std::byte* const staging_;
  mutable bool staging_is_free_ = true;
};

/// A DeviceMemory without an engine, which owns `runtime` and a stream.
[[nodiscard]] std::shared_ptr<const base::Memory> open_memory(std::unique_ptr<Runtime> runtime,
                                                              const std::string& name);

}  // namespace paceline::engine::cuda
