#include "base/memory.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace paceline::base {
namespace {

class HostMemory final : public Memory {
 public:
  [[nodiscard]] std::string name() const override { return "host"; }
  [[nodiscard]] bool is_host() const override { return true; }

  [[nodiscard]] OwnedArray allocate(std::size_t size) const override {
    Buffer buffer(size * sizeof(float));
    buffer.fill_zero();
    return host_array(std::move(buffer));
  }

  void fill(Array dst, float value) const override { std::ranges::fill(dst.host(), value); }
  void copy(Array src, Array dst) const override { read(src, dst.host()); }
  void add(Array left, Array right, Array dst) const override {
    expects(left.size == dst.size && right.size == dst.size, "arrays that are added have one size");
    const float* const a = left.host().data();
    const float* const b = right.host().data();
    float* const sum = dst.host().data();
    for (std::size_t i = 0; i < dst.size; ++i) sum[i] = a[i] + b[i];
  }
  void read(Array src, std::span<float> dst) const override {
    expects(src.size == dst.size(), "an array is copied to one of its size");
    std::ranges::copy(src.host(), dst.begin());
  }
  void write(std::span<const float> src, Array dst) const override {
    expects(src.size() == dst.size, "an array is copied to one of its size");
    std::ranges::copy(src, dst.host().begin());
  }
};

}  // namespace

Array Array::subarray(std::size_t begin, std::size_t count) const {
  expects(begin <= size && count <= size - begin, "a part of an array lies inside it");
  return {data + begin, count, memory};
}

std::span<float> Array::host() const {
  expects(size == 0 || (memory != nullptr && memory->is_host()),
          "an array is a span where it lies on the host");
  return {data, size};
}

const Memory& host_memory() {
  static const HostMemory memory;
  return memory;
}

Array host_array(std::span<float> values) { return {values.data(), values.size(), &host_memory()}; }

OwnedArray host_array(Buffer buffer) {
  const auto owner = std::make_shared<Buffer>(std::move(buffer));
  const auto values = owner->as<float>();
  return {std::shared_ptr<float>(owner, values.data()), values.size(), &host_memory()};
}

}  // namespace paceline::base
