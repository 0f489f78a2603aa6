#include "data/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/vector_clones.h"

namespace paceline::data {
namespace {

constexpr std::size_t kChannels = 3;
constexpr int kBits = 14;     ///< of a weight of resize()
constexpr int kPilBits = 22;  ///< of PIL

constexpr std::int32_t half(int bits) { return 1 << (bits - 1); }

void add_row(const std::uint8_t* __restrict src, std::int16_t weight, std::size_t count,
             std::int32_t* __restrict sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += static_cast<std::int16_t>(src[i]) * weight;
}

/// As add_row, of a weight of 22 bits.
PACELINE_VECTOR_CLONES
void add_row_of_pil(const std::uint8_t* __restrict src, std::int32_t weight, std::size_t count,
                    std::int32_t* __restrict sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += src[i] * weight;
}

/// One output row of `outputs` pixels. The fourth lane of a pixel is the next one's red, and dropped.
///
/// Requires  a byte can be read behind the last pixel of `src`
PACELINE_VECTOR_CLONES
void narrow_row(const std::uint8_t* src, const int* first, const int* count, const std::int32_t* weights,
                std::size_t most, std::size_t outputs, std::uint8_t* __restrict dst) {
  using Pixel = std::uint8_t __attribute__((vector_size(4)));
  using Sums = std::int32_t __attribute__((vector_size(16)));
  for (std::size_t x = 0; x < outputs; ++x, weights += most) {
    const std::uint8_t* in = src + kChannels * static_cast<std::size_t>(first[x]);
    Sums sums = Sums{} + half(kPilBits);
    for (int i = 0; i < count[x]; ++i, in += kChannels) {
      Pixel pixel;
      std::memcpy(&pixel, in, sizeof pixel);
      sums += __builtin_convertvector(pixel, Sums) * weights[i];
    }
    sums >>= kPilBits;
    for (std::size_t c = 0; c < kChannels; ++c) *dst++ = static_cast<std::uint8_t>(sums[c]);
  }
}

}  // namespace

void Resizer::Taps::set(double begin, double length, int inputs, int outputs, int bits) {
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
    for (int i = 0; i < to - from; ++i)
      weights[out * stride + static_cast<std::size_t>(i)] = static_cast<std::int32_t>(
          std::lround(exact[static_cast<std::size_t>(i)] / total * (std::int64_t{1} << bits)));
    first[out] = from;
    count[out] = to - from;
  }
}

void Resizer::Taps::make_sums_one(int bits) {
  for (std::size_t out = 0; out < first.size(); ++out) {
    const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(out) * most, end = begin + count[out];
    *std::max_element(begin, end) += (1 << bits) - std::accumulate(begin, end, 0);
  }
}

// The vertical pass comes first, one output row at a time. It runs over whole rows, which compilers
// vectorise, and leaves only the output rows to the horizontal pass.
void Resizer::resize(const RgbImage& src, const Box& box, int height, int width,
                     std::span<std::uint8_t> dst) {
  base::expects(dst.size() == 3 * static_cast<std::size_t>(height) * static_cast<std::size_t>(width),
                "dst holds [height][width][3]");
  base::expects(box.height > 0 && box.width > 0 && src.height > 0 && src.width > 0, "the part is not empty");
  rows_.set(box.top, box.height, src.height, height, kBits);
  rows_.make_sums_one(kBits);
  columns_.set(box.left, box.width, src.width, width, kBits);
  columns_.make_sums_one(kBits);

  const auto to_byte = [](std::int32_t sum) {
    return static_cast<std::uint8_t>((sum + half(kBits)) >> kBits);
  };
  const int left = columns_.first.front();
  const int right = columns_.first.back() + columns_.count.back();
  const auto row_bytes = kChannels * static_cast<std::size_t>(right - left);
  const auto src_stride = kChannels * static_cast<std::size_t>(src.width);
  sums_.resize(row_bytes);
  row_.resize(row_bytes);
  std::uint8_t* out = dst.data();
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    std::fill(sums_.begin(), sums_.end(), 0);
    for (int i = 0; i < rows_.count[y]; ++i)
      add_row(src.pixels.data() + static_cast<std::size_t>(rows_.first[y] + i) * src_stride +
                  kChannels * static_cast<std::size_t>(left),
              static_cast<std::int16_t>(rows_.weights_of(y)[i]), row_bytes, sums_.data());
    for (std::size_t i = 0; i < row_bytes; ++i) row_[i] = to_byte(sums_[i]);

    for (std::size_t x = 0; x < static_cast<std::size_t>(width); ++x) {
      const std::uint8_t* in = row_.data() + kChannels * static_cast<std::size_t>(columns_.first[x] - left);
      const std::int32_t* weights = columns_.weights_of(x);
      std::int32_t red = 0, green = 0, blue = 0;
      for (int i = 0; i < columns_.count[x]; ++i, in += kChannels) {
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

void Resizer::resize_as_pil(const RgbImage& src, const Box& box, int height, int width,
                            std::span<std::uint8_t> dst) {
  base::expects(dst.size() == 3 * static_cast<std::size_t>(height) * static_cast<std::size_t>(width),
                "dst holds [height][width][3]");
  base::expects(box.height > 0 && box.width > 0 && src.height > 0 && src.width > 0, "the part is not empty");
  rows_.set(box.top, box.height, src.height, height, kPilBits);
  columns_.set(box.left, box.width, src.width, width, kPilBits);

  const auto outputs = static_cast<std::size_t>(width), row_bytes = kChannels * outputs;
  const auto src_stride = kChannels * static_cast<std::size_t>(src.width);
  const auto top = static_cast<std::size_t>(rows_.first.front()),
             bottom = static_cast<std::size_t>(rows_.first.back() + rows_.count.back());
  narrowed_.resize((bottom - top) * row_bytes);
  row_.resize(src_stride + 1);
  for (std::size_t y = top; y < bottom; ++y) {
    const std::uint8_t* row = src.pixels.data() + y * src_stride;
    if (y + 1 == static_cast<std::size_t>(src.height)) {  // nothing lies behind the last row
      std::copy_n(row, src_stride, row_.begin());
      row = row_.data();
    }
    narrow_row(row, columns_.first.data(), columns_.count.data(), columns_.weights.data(),
               static_cast<std::size_t>(columns_.most), outputs, narrowed_.data() + (y - top) * row_bytes);
  }
  sums_.resize(row_bytes);
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    std::fill(sums_.begin(), sums_.end(), half(kPilBits));
    for (int i = 0; i < rows_.count[y]; ++i)
      add_row_of_pil(narrowed_.data() + (static_cast<std::size_t>(rows_.first[y] + i) - top) * row_bytes,
                     rows_.weights_of(y)[i], row_bytes, sums_.data());
    for (std::size_t i = 0; i < row_bytes; ++i)
      dst[y * row_bytes + i] = static_cast<std::uint8_t>(sums_[i] >> kPilBits);
  }
}

}  // namespace paceline::data
