#include "data/image/dataset.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/image/decode.h"
#include "data/image/resize.h"

namespace paceline::data {
namespace {

/// Converts `box` from pixels of the whole image to pixels of its reduced form.
Box reduced(const Box& box, const ImageHeader& header, const RgbImage& image) {
  const double down = static_cast<double>(image.height) / header.height;
  const double across = static_cast<double>(image.width) / header.width;
  return {.top = box.top * down,
          .left = box.left * across,
          .height = box.height * down,
          .width = box.width * across};
}

}  // namespace

struct ImageDataset::Scratch {
  std::vector<std::uint8_t> encoded;
  ImageDecoder decoder;
  RgbImage decoded;
  Resizer resizer;
};

Box centred_box(const ImageFormat& format, int height, int width) {
  const double scale =
      std::min(static_cast<double>(height) / format.height, static_cast<double>(width) / format.width);
  const double box_height = format.height * scale, box_width = format.width * scale;
  return {.top = (height - box_height) / 2,
          .left = (width - box_width) / 2,
          .height = box_height,
          .width = box_width};
}

ImageDataset::ImageDataset(std::shared_ptr<const ImageStore> store, LabelledImages part, ImageFormat format)
    : store_(std::move(store)), samples_(std::move(part)), format_(format) {
  base::expects(samples_.images.size() == samples_.labels.size(), "every image has a label");
  base::expects(format.channels == 3, "images are read as RGB");
}

ImageDataset::~ImageDataset() = default;

std::size_t ImageDataset::at(std::int64_t index) const {
  base::expects(index >= 0 && index < size(), "0 <= index < size");
  return static_cast<std::size_t>(index);
}

std::int32_t ImageDataset::label(std::int64_t index) const { return samples_.labels[at(index)]; }
std::string ImageDataset::name(std::int64_t index) const { return store_->name(samples_.images[at(index)]); }
std::span<const std::uint8_t> ImageDataset::encoded(std::int64_t index,
                                                    std::vector<std::uint8_t>& buffer) const {
  return store_->bytes(samples_.images[at(index)], buffer);
}

std::int64_t ImageDataset::stored_bytes(std::int64_t index) const {
  return store_->stored_bytes(samples_.images[at(index)]);
}

std::int32_t ImageDataset::read(std::int64_t index, std::span<std::uint8_t> pixels) const {
  return read_part(
      index, [this](int height, int width) { return centred_box(format_, height, width); }, pixels);
}

std::int32_t ImageDataset::read_part(std::int64_t index, const ChooseBox& choose,
                                     std::span<std::uint8_t> pixels) const {
  base::expects(static_cast<std::int64_t>(pixels.size()) == format_.bytes(), "pixels hold one image");
  const auto scratch = scratch_.acquire();
  const auto bytes = encoded(index, scratch->encoded);
  try {
    const ImageHeader header = scratch->decoder.read_header(bytes);
    const Box box = choose(header.height, header.width);
    const double scale = std::max(format_.height / box.height, format_.width / box.width);
    scratch->decoder.decode(bytes, header, scale, scratch->decoded);
    scratch->resizer.resize(scratch->decoded, reduced(box, header, scratch->decoded), format_.height,
                            format_.width, pixels);
  } catch (const BrokenImage& broken) {
    base::fail(base::ErrorKind::data,
               "{}: the image cannot be decoded: {}; --bad-images skip trains without such images, and "
               "'paceline data verify' lists them all",
               name(index), broken.what());
  }
  return label(index);
}

}  // namespace paceline::data
