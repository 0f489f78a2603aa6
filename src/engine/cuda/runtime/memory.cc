#include "engine/cuda/runtime/memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

DeviceMemory::DeviceMemory(Runtime& runtime, Stream compute, std::string name)
    : runtime_(runtime),
      compute_(compute),
      name_(std::move(name)),
      staging_(runtime.allocate_pinned(kStagingBytes)) {}

base::OwnedArray DeviceMemory::allocate(std::size_t size) const {
  const std::size_t bytes = size * sizeof(float);
  auto* data = reinterpret_cast<float*>(runtime_.allocate(bytes));
  if (bytes > 0) runtime_.fill_bytes(compute_, data, 0, bytes);
  return {.data = std::shared_ptr<float>(data, [](float*) {}), .size = size, .memory = this};
}

void DeviceMemory::fill(base::Array dst, float value) const {
  if (dst.size == 0) return;
  runtime_.launch(compute_,
                  ArrayFill{.dst = dst.data, .count = static_cast<std::int64_t>(dst.size), .value = value});
}

void DeviceMemory::copy(base::Array src, base::Array dst) const {
  base::expects(src.size == dst.size, "arrays that are copied have the same size");
  if (dst.size > 0) runtime_.copy_on_device(compute_, dst.data, src.data, dst.bytes());
}

void DeviceMemory::add(base::Array left, base::Array right, base::Array dst) const {
  base::expects(left.size == dst.size && right.size == dst.size, "arrays that are added have the same size");
  if (dst.size == 0) return;
  runtime_.launch(compute_, ArrayAdd{.left = left.data,
                                     .right = right.data,
                                     .dst = dst.data,
                                     .count = static_cast<std::int64_t>(dst.size)});
}

void DeviceMemory::mix(base::Array src, double keep, base::Array dst) const {
  base::expects(src.size == dst.size, "arrays that are mixed have the same size");
  if (dst.size == 0) return;
  runtime_.launch(compute_, ArrayMix{.src = src.data,
                                     .dst = dst.data,
                                     .count = static_cast<std::int64_t>(dst.size),
                                     .keep = static_cast<float>(keep),
                                     .rest = static_cast<float>(1 - keep)});
}

void DeviceMemory::wait_for_staging() const {
  if (!staging_is_free_) runtime_.synchronize(compute_);
  staging_is_free_ = true;
}

void DeviceMemory::read(base::Array src, std::span<float> dst) const {
  base::expects(src.size == dst.size(), "arrays that are read have the size of what they are read into");
  const auto* from = reinterpret_cast<const std::byte*>(src.data);
  auto* to = reinterpret_cast<std::byte*>(dst.data());
  for (std::size_t done = 0; done < src.bytes(); done += kStagingBytes) {
    const std::size_t count = std::min(kStagingBytes, src.bytes() - done);
    runtime_.copy_to_host(compute_, staging_, from + done, count);
    runtime_.synchronize(compute_);
    staging_is_free_ = true;
    std::memcpy(to + done, staging_, count);
  }
}

void DeviceMemory::write(std::span<const float> src, base::Array dst) const {
  base::expects(src.size() == dst.size, "arrays that are written have the size of what is written");
  upload(dst.data, src.data(), src.size_bytes());
}

void DeviceMemory::upload(void* dst, const void* src, std::size_t bytes) const {
  for (std::size_t done = 0; done < bytes; done += kStagingBytes) {
    const std::size_t count = std::min(kStagingBytes, bytes - done);
    wait_for_staging();
    std::memcpy(staging_, static_cast<const std::byte*>(src) + done, count);
    runtime_.copy_to_device(compute_, static_cast<std::byte*>(dst) + done, staging_, count);
    staging_is_free_ = false;
  }
}

std::shared_ptr<const base::Memory> open_memory(std::unique_ptr<Runtime> runtime, const std::string& name) {
  struct Opened {
    explicit Opened(std::unique_ptr<Runtime> owned, const std::string& name)
        : runtime(std::move(owned)), memory(*runtime, runtime->make_stream(), name) {}
    const std::unique_ptr<Runtime> runtime;
    const DeviceMemory memory;
  };
  const auto opened = std::make_shared<Opened>(std::move(runtime), name);
  return {opened, &opened->memory};
}

}  // namespace paceline::engine::cuda
