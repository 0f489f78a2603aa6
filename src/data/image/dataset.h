#pragma once

/// A data set of one image size, made from encoded images of any sizes.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/object_pool.h"
#include "data/dataset.h"
#include "data/image/store.h"

namespace paceline::data {

/// One part (training, validation, test) of the images of a store.
///
/// read() returns the largest centred part of the stored image that has the format's aspect ratio, scaled.
///
/// Cost     decoding on every read; a JPEG much larger than the format is decoded at 1/2, 1/4 or 1/8
/// Errors   read, read_part: Error(data) naming the image and its fault
class ImageDataset final : public Dataset {
 public:
  struct LabelledImages {
    std::vector<std::uint32_t> images;  ///< [samples]: index in the store
    std::vector<std::int32_t> labels;   ///< [samples]
  };

  /// All parts of one source share `store`.
  ImageDataset(std::shared_ptr<const ImageStore> store, LabelledImages part, ImageFormat format);
  ~ImageDataset() override;

  [[nodiscard]] std::int64_t size() const override {
    return static_cast<std::int64_t>(samples_.images.size());
  }
  [[nodiscard]] ImageFormat format() const override { return format_; }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override;
  std::int32_t read_part(std::int64_t index, const ChooseBox& choose,
                         std::span<std::uint8_t> pixels) const override;
  [[nodiscard]] std::int32_t label(std::int64_t index) const override;

  [[nodiscard]] std::string name(std::int64_t index) const;
  [[nodiscard]] std::string sample_name(std::int64_t index) const override { return name(index); }
  [[nodiscard]] std::int64_t stored_bytes(std::int64_t index) const override;
  [[nodiscard]] bool reads_from_memory() const override { return false; }
  /// The encoded image, as ImageStore::bytes.
  [[nodiscard]] std::span<const std::uint8_t> encoded(std::int64_t index,
                                                      std::vector<std::uint8_t>& buffer) const;

 private:
  /// What one read needs, kept for the next read: encoded bytes, decoder, pixels, resizer.
  struct Scratch;

  [[nodiscard]] std::size_t at(std::int64_t index) const;

  std::shared_ptr<const ImageStore> store_;
  LabelledImages samples_;
  ImageFormat format_;
  mutable base::ObjectPool<Scratch> scratch_;  ///< as many as reads have ever run at once
};

/// The largest centred part of a stored image that has the aspect ratio of `format`.
[[nodiscard]] Box centred_box(const ImageFormat& format, int height, int width);

}  // namespace paceline::data
