#pragma once

/// GPUs that say what a test tells them to.

#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/gpu_reading.h"

namespace paceline::measure {

class FakeGpus final : public base::GpuSource {
 public:
  using Read = std::function<base::GpuReading(std::size_t gpu)>;
  FakeGpus(std::vector<base::GpuIdentity> gpus, Read read) : gpus_(std::move(gpus)), read_(std::move(read)) {}
  [[nodiscard]] const std::vector<base::GpuIdentity>& gpus() const override { return gpus_; }
  [[nodiscard]] base::GpuReading read(std::size_t gpu) override { return read_(gpu); }

 private:
  std::vector<base::GpuIdentity> gpus_;
  Read read_;
};

}  // namespace paceline::measure
