#include "data/image/dataset.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "data/image/resize.h"

namespace paceline::data {
namespace {

/// Converts `box` from pixels of the whole image to pixels of its reduced form.
Box reduced(const Box& box, const ImageHeader& header, const PartOf& image) {
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

Box evaluated_box(const ImageFormat& format, int eval_resize, int height, int width) {
  if (eval_resize > 0) {
    const int shorter = std::min(height, width);
    // Of the whole image, resized: the longer side is rounded down. A crop begins at a whole pixel of it, of
    // two equally near ones at the even one.
    const auto resized = [&](int side) {
      return static_cast<double>(std::int64_t{eval_resize} * side / shorter);
    };
    const auto begin = [](double side, int kept) { return std::nearbyint((side - kept) / 2); };
    const double tall = resized(height), wide = resized(width);
    return {.top = begin(tall, format.height) * height / tall,
            .left = begin(wide, format.width) * width / wide,
            .height = format.height * height / tall,
            .width = format.width * width / wide};
  }
  const double scale =
      std::min(static_cast<double>(height) / format.height, static_cast<double>(width) / format.width);
  const double box_height = format.height * scale, box_width = format.width * scale;
  return {.top = (height - box_height) / 2,
          .left = (width - box_width) / 2,
          .height = box_height,
          .width = box_width};
}

ImageDataset::ImageDataset(std::shared_ptr<const ImageStore> store, ArrangedPart part, Seen seen,
                           std::optional<Seen> evaluated)
    : store_(std::move(store)), samples_(std::move(part)), seen_(seen), evaluated_(evaluated) {
  base::expects(samples_.images.size() == samples_.labels.size(), "every image has a label");
  base::expects(seen.format.channels == 3, "images are read as RGB");
  base::expects(seen.eval_resize == 0 || seen.eval_resize >= std::max(seen.format.height, seen.format.width),
                "a crop lies inside the resized image");
}

ImageDataset::~ImageDataset() = default;

std::unique_ptr<Dataset> ImageDataset::as_evaluated() const {
  if (!evaluated_) return nullptr;
  return std::make_unique<ImageDataset>(store_, samples_, *evaluated_);
}

std::size_t ImageDataset::at(std::int64_t index) const {
  base::expects(index >= 0 && index < size(), "0 <= index < size");
  return static_cast<std::size_t>(index);
}

std::int32_t ImageDataset::read(std::int64_t index, std::span<std::uint8_t> pixels) const {
  try {
    show(index, pixels);
  } catch (const BrokenImage& broken) {
    fail_broken(index, broken);
  }
  return label(index);
}

std::int32_t ImageDataset::read_part(std::int64_t index, const ChooseBox& choose,
                                     std::span<std::uint8_t> pixels) const {
  try {
    show_part(index, choose, false, pixels);
  } catch (const BrokenImage& broken) {
    fail_broken(index, broken);
  }
  return label(index);
}

void ImageDataset::show(std::int64_t index, std::span<std::uint8_t> pixels) const {
  const auto choose = [this](int height, int width) {
    return evaluated_box(seen_.format, seen_.eval_resize, height, width);
  };
  show_part(index, choose, true, pixels);
}

void ImageDataset::show_part(std::int64_t index, const ChooseBox& choose, bool is_evaluated,
                             std::span<std::uint8_t> pixels) const {
  base::expects(static_cast<std::int64_t>(pixels.size()) == seen_.format.bytes(), "pixels hold one image");
  const auto scratch = scratch_.acquire();
  const auto bytes = encoded(index, scratch->encoded);
  const ImageHeader header = scratch->decoder.read_header(bytes);
  const Box box = choose(header.height, header.width);
  if (is_evaluated) {
    scratch->decoder.decode(bytes, header, 1, scratch->decoded, seen_.range);
    scratch->resizer.resize_as_pil(scratch->decoded, box, seen_.format.height, seen_.format.width, pixels);
    return;
  }
  const double scale = std::max(seen_.format.height / box.height, seen_.format.width / box.width);
  const auto part = scratch->decoder.decode_part(
      bytes, header, scale, with_surroundings(box, seen_.format.height, seen_.format.width), scratch->decoded,
      seen_.range);
  scratch->resizer.resize(scratch->decoded, part, reduced(box, header, part), seen_.format.height,
                          seen_.format.width, pixels);
}

void ImageDataset::fail_broken(std::int64_t index, const BrokenImage& broken) const {
  base::fail(base::ErrorKind::data,
             "{}: the image cannot be decoded: {}; --bad-images skip trains without such images, and "
             "'paceline data verify' lists them all",
             sample_name(index), broken.what());
}

}  // namespace paceline::data
