#pragma once

/// Counts how often images of a data set are read, so that a report can show how often the test set was used.

#include <atomic>
#include <cstdint>
#include <memory>

#include "data/dataset.h"

namespace paceline::data {

/// Wraps a data set and counts the images read through it. Reading labels alone does not count.
///
/// Threads  as the wrapped set; reads() from any
class CountedDataset final : public Dataset {
 public:
  explicit CountedDataset(std::unique_ptr<Dataset> set) : set_(std::move(set)) {}
  [[nodiscard]] std::int64_t size() const override { return set_->size(); }
  [[nodiscard]] ImageFormat format() const override { return set_->format(); }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    reads_.fetch_add(1, std::memory_order_relaxed);
    return set_->read(index, pixels);
  }
  std::int32_t read_part(std::int64_t index, const ChooseBox& choose,
                         std::span<std::uint8_t> pixels) const override {
    reads_.fetch_add(1, std::memory_order_relaxed);
    return set_->read_part(index, choose, pixels);
  }
  [[nodiscard]] std::int32_t label(std::int64_t index) const override { return set_->label(index); }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override {
    return set_->sample_name(index);
  }
  [[nodiscard]] std::int64_t stored_bytes(std::int64_t index) const override {
    return set_->stored_bytes(index);
  }
  [[nodiscard]] bool reads_from_memory() const override { return set_->reads_from_memory(); }
  /// Adds images that were read earlier and are used again from where they were stored.
  void count(std::int64_t images) const { reads_.fetch_add(images, std::memory_order_relaxed); }

  [[nodiscard]] std::int64_t reads() const { return reads_.load(std::memory_order_relaxed); }

 private:
  std::unique_ptr<Dataset> set_;
  mutable std::atomic<std::int64_t> reads_{0};
};

/// Wraps source.test in a CountedDataset and returns it; it lives as long as source.test.
[[nodiscard]] inline const CountedDataset& count_test_reads(Source& source) {
  auto counted = std::make_unique<CountedDataset>(std::move(source.test));
  const auto& result = *counted;
  source.test = std::move(counted);
  return result;
}

}  // namespace paceline::data
