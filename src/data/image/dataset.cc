#include "data/image/dataset.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace paceline::data {
namespace {

constexpr int kBits = 14;
constexpr int kOne = 1 << kBits;
constexpr int kHalf = kOne / 2;

std::uint8_t to_byte(std::int32_t sum) { return static_cast<std::uint8_t>((sum + kHalf) >> kBits); }

void add_row(const std::uint8_t* __restrict src, std::int16_t weight, std::size_t count,
             std::int32_t* __restrict sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += static_cast<std::int16_t>(src[i]) * weight;
}

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

// Resizer: the vertical pass comes first, one output row at a time. It runs over whole rows, which compilers
// vectorise, and leaves only the output rows to the horizontal pass.

void Resizer::Taps::set(double begin, double length, int inputs, int outputs) {
  const double scale = length / outputs;  // input pixels per output pixel
  const double reach = std::max(scale, 1.0);
  most = std::min(inputs, static_cast<int>(std::ceil(2 * reach)) + 2);
  const auto places = static_cast<std::size_t>(outputs), stride = static_cast<std::size_t>(most);
  first.resize(places);
  count.resize(places);
  weights.assign(places * stride, 0);
  std::vector<double> exact(stride);
  for (std::size_t out = 0; out < places; ++out) {
    const double centre = begin + (static_cast<double>(out) + 0.5) * scale;
    const int from = std::clamp(static_cast<int>(std::floor(centre - reach + 0.5)), 0, inputs - 1);
    const int to = std::clamp(static_cast<int>(std::floor(centre + reach + 0.5)), from + 1,
                              std::min(inputs, from + most));
    double total = 0;
    for (int in = from; in < to; ++in) {
      auto& weight = exact[static_cast<std::size_t>(in - from)];
      weight = std::max(0.0, 1 - std::abs((in + 0.5 - centre) / reach));
      total += weight;
    }
    if (total <= 0) {  // between two pixels at the edge: take the nearest
      exact[0] = total = 1;
      std::fill(exact.begin() + 1, exact.begin() + (to - from), 0.0);
    }
    int left = kOne;
    std::int16_t* const whole = weights.data() + out * stride;
    for (int i = 0; i < to - from; ++i) {
      whole[i] = static_cast<std::int16_t>(std::lround(exact[static_cast<std::size_t>(i)] / total * kOne));
      left -= whole[i];
    }
    *std::max_element(whole, whole + (to - from)) +=
        static_cast<std::int16_t>(left);  // corrects the rounding, so that the sum is 1 again
    first[out] = from;
    count[out] = to - from;
  }
}

void Resizer::resize(const RgbImage& src, const Box& box, int height, int width,
                     std::span<std::uint8_t> dst) {
  base::expects(dst.size() == 3 * static_cast<std::size_t>(height) * static_cast<std::size_t>(width),
                "dst holds [height][width][3]");
  base::expects(box.height > 0 && box.width > 0 && src.height > 0 && src.width > 0, "the part is not empty");
  rows_.set(box.top, box.height, src.height, height);
  columns_.set(box.left, box.width, src.width, width);

  const int left = columns_.first.front();
  const int right = columns_.first.back() + columns_.count.back();
  const auto row_bytes = 3 * static_cast<std::size_t>(right - left);
  const auto src_stride = 3 * static_cast<std::size_t>(src.width);
  sums_.resize(row_bytes);
  row_.resize(row_bytes);
  std::uint8_t* out = dst.data();
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    std::fill(sums_.begin(), sums_.end(), 0);
    const std::int16_t* row_weights = rows_.weights.data() + y * static_cast<std::size_t>(rows_.most);
    for (int i = 0; i < rows_.count[y]; ++i)
      add_row(src.pixels.data() + static_cast<std::size_t>(rows_.first[y] + i) * src_stride +
                  3 * static_cast<std::size_t>(left),
              row_weights[i], row_bytes, sums_.data());
    for (std::size_t i = 0; i < row_bytes; ++i) row_[i] = to_byte(sums_[i]);

    for (std::size_t x = 0; x < static_cast<std::size_t>(width); ++x) {
      const std::uint8_t* in = row_.data() + 3 * static_cast<std::size_t>(columns_.first[x] - left);
      const std::int16_t* weights = columns_.weights.data() + x * static_cast<std::size_t>(columns_.most);
      std::int32_t red = 0, green = 0, blue = 0;
      for (int i = 0; i < columns_.count[x]; ++i, in += 3) {
        red += in[0] * weights[i];
        green += in[1] * weights[i];
        blue += in[2] * weights[i];
      }
      *out++ = to_byte(red);
      *out++ = to_byte(green);
      *out++ = to_byte(blue);
    }
  }
}

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

ImageDataset::ImageDataset(std::shared_ptr<const ImageStore> store, LabelledImages part, ImageFormat format,
                           int eval_resize, std::optional<Seen> evaluated)
    : store_(std::move(store)),
      samples_(std::move(part)),
      format_(format),
      eval_resize_(eval_resize),
      evaluated_(evaluated) {
  base::expects(samples_.images.size() == samples_.labels.size(), "every image has a label");
  base::expects(format.channels == 3, "images are read as RGB");
  base::expects(eval_resize == 0 || eval_resize >= std::max(format.height, format.width),
                "a crop lies inside the resized image");
}

ImageDataset::~ImageDataset() = default;

std::unique_ptr<Dataset> ImageDataset::as_evaluated() const {
  if (!evaluated_) return nullptr;
  return std::make_unique<ImageDataset>(store_, samples_, evaluated_->format, evaluated_->eval_resize);
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

std::string ImageDataset::list_entry(std::int64_t index) const {
  return store_->path_below(samples_.images[at(index)]) + '\0' + std::to_string(stored_bytes(index));
}

std::int64_t ImageDataset::stored_bytes(std::int64_t index) const {
  return store_->stored_bytes(samples_.images[at(index)]);
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
    return evaluated_box(format_, eval_resize_, height, width);
  };
  show_part(index, choose, eval_resize_ > 0, pixels);
}

void ImageDataset::show_part(std::int64_t index, const ChooseBox& choose, bool is_whole,
                             std::span<std::uint8_t> pixels) const {
  base::expects(static_cast<std::int64_t>(pixels.size()) == format_.bytes(), "pixels hold one image");
  const auto scratch = scratch_.acquire();
  const auto bytes = encoded(index, scratch->encoded);
  const ImageHeader header = scratch->decoder.read_header(bytes);
  const Box box = choose(header.height, header.width);
  const double scale = is_whole ? 1 : std::max(format_.height / box.height, format_.width / box.width);
  scratch->decoder.decode(bytes, header, scale, scratch->decoded);
  scratch->resizer.resize(scratch->decoded, reduced(box, header, scratch->decoded), format_.height,
                          format_.width, pixels);
}

void ImageDataset::fail_broken(std::int64_t index, const BrokenImage& broken) const {
  base::fail(base::ErrorKind::data,
             "{}: the image cannot be decoded: {}; --bad-images skip trains without such images, and "
             "'paceline data verify' lists them all",
             name(index), broken.what());
}

}  // namespace paceline::data
