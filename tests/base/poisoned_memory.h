#pragma once

/// A device's memory for tests: pages that nobody may touch stand for the device, and what they hold lies
/// elsewhere. Code that takes a device's array for the host's ends with a segmentation fault.

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"

namespace paceline::base {

/// Threads  one. Outlives its arrays.
class PoisonedMemory final : public Memory {
 public:
  [[nodiscard]] std::string name() const override { return "poisoned"; }
  [[nodiscard]] bool is_host() const override { return false; }

  [[nodiscard]] OwnedArray allocate(std::size_t size) const override {
    const std::size_t bytes = std::max<std::size_t>(1, size * sizeof(float));
    void* const pages = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expects(pages != MAP_FAILED, "mmap of pages without rights");
    auto* const begin = static_cast<float*>(pages);
    const auto known = known_;
    known->push_back({begin, std::vector<float>(size)});
    return {.data = std::shared_ptr<float>(begin,
                                           [known, bytes](float* gone) {
                                             std::erase_if(
                                                 *known, [&](const Block& one) { return one.begin == gone; });
                                             ::munmap(gone, bytes);
                                           }),
            .size = size,
            .memory = this};
  }

  void fill(Array dst, float value) const override { std::ranges::fill(values_of(dst), value); }
  void copy(Array src, Array dst) const override {
    expects(src.size == dst.size, "one size");
    std::ranges::copy(values_of(src), values_of(dst).begin());
  }
  void add(Array left, Array right, Array dst) const override {
    expects(left.size == dst.size && right.size == dst.size, "one size");
    const auto a = values_of(left), b = values_of(right), sum = values_of(dst);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i];
  }
  void mix(Array src, double keep, Array dst) const override {
    const auto from = values_of(src), to = values_of(dst);
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = static_cast<float>(keep) * to[i] + static_cast<float>(1 - keep) * from[i];
  }
  void read(Array src, std::span<float> dst) const override {
    expects(src.size == dst.size(), "one size");
    std::ranges::copy(values_of(src), dst.begin());
  }
  void write(std::span<const float> src, Array dst) const override {
    expects(src.size() == dst.size, "one size");
    std::ranges::copy(src, values_of(dst).begin());
  }

  /// Arrays that somebody still owns.
  [[nodiscard]] std::size_t live() const { return known_->size(); }
  /// The values of an array of this memory, for who plays the device.
  [[nodiscard]] std::span<float> values_of(Array array) const {
    if (array.size == 0) return {};
    expects(array.memory == this, "an array of this memory");
    for (Block& block : *known_)
      if (array.data >= block.begin && array.data + array.size <= block.begin + block.values.size())
        return std::span(block.values)
            .subspan(static_cast<std::size_t>(array.data - block.begin), array.size);
    fail(ErrorKind::device, "poisoned memory: {} floats of no live array", array.size);
  }

 private:
  struct Block {
    float* begin;
    std::vector<float> values;
  };
  std::shared_ptr<std::vector<Block>> known_ = std::make_shared<std::vector<Block>>();
};

}  // namespace paceline::base
