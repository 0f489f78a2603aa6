#pragma once

/// Small data sets for the tests of what stands on a Dataset.

#include <atomic>
#include <cstdint>
#include <functional>

#include "data/augment.h"
#include "data/dataset.h"

namespace paceline::data {

/// Sample i has the label i, and pixels that tell i apart from every other sample. `on_read`, if set, is
/// called first with the index: it may block, throw or count.
class NumberedDataset final : public Dataset {
 public:
  explicit NumberedDataset(std::int64_t size, ImageFormat format = {.height = 4, .width = 5, .channels = 3})
      : size_(size), format_(format) {}

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] ImageFormat format() const override { return format_; }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    if (on_read) on_read(index);
    reads.fetch_add(1);
    for (std::size_t i = 0; i < pixels.size(); ++i)
      pixels[i] = static_cast<std::uint8_t>(static_cast<std::size_t>(index) * 31 + i * 7 + i * i);
    return static_cast<std::int32_t>(index);
  }

  std::function<void(std::int64_t)> on_read;
  mutable std::atomic<std::int64_t> reads{0};

 private:
  std::int64_t size_;
  ImageFormat format_;
};

/// Crop, flip and normalisation for images of `format`.
inline Augment full_augment(const ImageFormat& format, std::uint64_t seed = 0) {
  const auto channels = static_cast<std::size_t>(format.channels);
  return {format,
          {.crop_padding = 2,
           .flip = Flip::random,
           .mean = std::vector<float>(channels, 0.4f),
           .stddev = std::vector<float>(channels, 0.25f),
           .seed = seed}};
}

}  // namespace paceline::data
