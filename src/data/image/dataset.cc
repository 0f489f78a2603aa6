#include "data/image/dataset.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/image/decode.h"
#include "data/image/resize.h"

namespace paceline::data {
namespace {

/// What a thread needs to read an image, kept from one to the next.
struct Workplace {
  std::vector<std::uint8_t> encoded;
  RgbImage decoded;
  Resizer resizer;
};

/// One a thread: a read is const and may come from any thread, and its buffers are worth more than a lock.
Workplace& workplace() {
  static thread_local Workplace place;
  return place;
}

/// `box` of the whole image in the pixels of its reduced form.
Box reduced(const Box& box, const ImageHeader& header, const RgbImage& image) {
  const double down = static_cast<double>(image.height) / header.height;
  const double across = static_cast<double>(image.width) / header.width;
  return {.top = box.top * down,
          .left = box.left * across,
          .height = box.height * down,
          .width = box.width * across};
}

}  // namespace

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

std::int32_t ImageDataset::read(std::int64_t index, std::span<std::uint8_t> pixels) const {
  return read_part(
      index, [this](int height, int width) { return centred_box(format_, height, width); }, pixels);
}

std::int32_t ImageDataset::read_part(std::int64_t index, const ChooseBox& choose,
                                     std::span<std::uint8_t> pixels) const {
  base::expects(static_cast<std::int64_t>(pixels.size()) == format_.bytes(), "pixels hold one image");
  Workplace& place = workplace();
  const auto bytes = encoded(index, place.encoded);
  try {
    const ImageHeader header = read_image_header(bytes);
    const Box box = choose(header.height, header.width);
    const double scale = std::max(format_.height / box.height, format_.width / box.width);
    decode_image(bytes, header, scale, place.decoded);
    place.resizer.resize(place.decoded, reduced(box, header, place.decoded), format_.height, format_.width,
                         pixels);
  } catch (const BrokenImage& broken) {
    base::fail(base::ErrorKind::data,
               "{}: the image cannot be decoded: {}; --bad-images skip trains without such images, and "
               "'paceline data verify' lists them all",
               name(index), broken.what());
  }
  return label(index);
}

}  // namespace paceline::data
