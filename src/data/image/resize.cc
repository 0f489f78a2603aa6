#include "data/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/error.h"
#include "base/vector_clones.h"

namespace paceline::data {
namespace {

constexpr std::size_t kChannels = 3;
constexpr int kBits = 14;     ///< of a weight of resize()
constexpr int kPilBits = 22;  ///< of PIL

constexpr std::int32_t half(int bits) { return 1 << (bits - 1); }

/// One row of `bytes`: the sum of `count` rows, each by its weight, `stride` apart.
PACELINE_VECTOR_CLONES
void add_rows(const std::uint8_t* src, std::size_t stride, const std::int32_t* weights, int count, int bits,
              std::size_t bytes, std::uint8_t* __restrict dst) {
  constexpr std::size_t kBlock = 64;  // whose sums stay in registers
  std::size_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) {
    std::int32_t sums[kBlock];
    for (auto& sum : sums) sum = half(bits);
    for (int i = 0; i < count; ++i) {
      const std::uint8_t* row = src + static_cast<std::size_t>(i) * stride + at;
      for (std::size_t k = 0; k < kBlock; ++k) sums[k] += row[k] * weights[i];
    }
    for (std::size_t k = 0; k < kBlock; ++k) dst[at + k] = static_cast<std::uint8_t>(sums[k] >> bits);
  }
  for (; at < bytes; ++at) {
    std::int32_t sum = half(bits);
    for (int i = 0; i < count; ++i) sum += src[static_cast<std::size_t>(i) * stride + at] * weights[i];
    dst[at] = static_cast<std::uint8_t>(sum >> bits);
  }
}

using Bytes = std::uint8_t __attribute__((vector_size(16)));
using Int16s = std::int16_t __attribute__((vector_size(16)));
using Pair = std::uint64_t __attribute__((vector_size(16)));
using Sums = std::int32_t __attribute__((vector_size(16)));

/// The eight bytes from `in` on, and eight of 0.
[[gnu::always_inline]] inline Bytes eight_bytes(const std::uint8_t* in) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, in, sizeof bytes);
  return reinterpret_cast<Bytes>(Pair{bytes, 0});
}

/// The lowest bytes of three sums, as a pixel. A fourth byte is written too, unless it `is_last`: the next
/// pixel's.
[[gnu::always_inline]] inline void store_pixel(Sums sums, bool is_last, std::uint8_t* dst) {
  const auto bytes = reinterpret_cast<Bytes>(sums);
  const auto lowest =
      __builtin_shufflevector(bytes, bytes, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
  const std::int32_t pixel = reinterpret_cast<Sums>(lowest)[0];
  if (is_last)
    std::memcpy(dst, &pixel, kChannels);
  else
    std::memcpy(dst, &pixel, sizeof pixel);
}

/// The sums of neighbours' products: one instruction of x86.
[[gnu::always_inline]] inline Sums add_products(Int16s a, Int16s b) {
#ifdef __SSE2__
  return reinterpret_cast<Sums>(_mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  return Sums{a[0] * b[0] + a[1] * b[1], a[2] * b[2] + a[3] * b[3], a[4] * b[4] + a[5] * b[5],
              a[6] * b[6] + a[7] * b[7]};
#endif
}

/// One output row of `outputs` pixels, each of `pairs` pairs of inputs with the `weights` [outputs][pairs] of
/// 15 bits, two in one number. All have the same number, since a loop that ends now here and now there is
/// mispredicted, which takes longer than sums of nothing.
///
/// Requires  2 * kChannels * pairs bytes can be read behind the last pixel, and eight more
PACELINE_VECTOR_CLONES
void narrow_row(const std::uint8_t* src, const int* first, const std::int32_t* weights, std::size_t pairs,
                std::size_t outputs, std::uint8_t* __restrict dst) {
  for (std::size_t x = 0; x < outputs; ++x, dst += kChannels) {
    const std::uint8_t* in = src + kChannels * static_cast<std::size_t>(first[x]);
    Sums sums = Sums{} + half(kBits);
    for (std::size_t i = 0; i < pairs; ++i, in += 2 * kChannels) {
      const auto bytes = eight_bytes(in);
      const auto wide = __builtin_shufflevector(bytes, bytes, 0, 8, 3, 8, 1, 8, 4, 8, 2, 8, 5, 8, 8, 8, 8, 8);
      sums += add_products(reinterpret_cast<Int16s>(wide), reinterpret_cast<Int16s>(Sums{} + *weights++));
    }
    store_pixel(sums >> kBits, x + 1 == outputs, dst);
  }
}

/// The same for PIL's weights of 22 bits, `weights` [outputs][most], of which `taps` are read.
///
/// Requires  kChannels * taps bytes can be read behind the last pixel, and eight more
PACELINE_VECTOR_CLONES
void narrow_row_as_pil(const std::uint8_t* src, const int* first, const std::int32_t* weights,
                       std::size_t most, std::size_t taps, std::size_t outputs,
                       std::uint8_t* __restrict dst) {
  for (std::size_t x = 0; x < outputs; ++x, weights += most, dst += kChannels) {
    const std::uint8_t* in = src + kChannels * static_cast<std::size_t>(first[x]);
    Sums sums = Sums{} + half(kPilBits);
    for (std::size_t i = 0; i < taps; ++i, in += kChannels) {
      // One instruction; __builtin_convertvector of four bytes becomes ten.
      const auto bytes = eight_bytes(in);
      const auto wide = __builtin_shufflevector(bytes, bytes, 0, 8, 8, 8, 1, 8, 8, 8, 2, 8, 8, 8, 8, 8, 8, 8);
      sums += reinterpret_cast<Sums>(wide) * weights[i];
    }
    store_pixel(sums >> kPilBits, x + 1 == outputs, dst);
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

std::size_t Resizer::Taps::pair_weights(std::vector<std::int32_t>& pairs) const {
  const std::size_t of_each = (largest_count() + 1) / 2, stride = static_cast<std::size_t>(most);
  pairs.resize(first.size() * of_each);
  const auto weight = [&](std::size_t out, std::size_t i) {
    return i < stride ? static_cast<std::uint32_t>(weights[out * stride + i]) & 0xffff : 0u;
  };
  for (std::size_t out = 0; out < first.size(); ++out)
    for (std::size_t i = 0; i < of_each; ++i)
      pairs[out * of_each + i] = static_cast<std::int32_t>(weight(out, 2 * i) | weight(out, 2 * i + 1) << 16);
  return of_each;
}

// The vertical pass comes first, one output row at a time. It runs over whole rows, which compilers
// vectorise, and leaves only the output rows to the horizontal pass.
void Resizer::resize(const RgbImage& src, const PartOf& part, const Box& box, int height, int width,
                     std::span<std::uint8_t> dst) {
  base::expects(dst.size() == 3 * static_cast<std::size_t>(height) * static_cast<std::size_t>(width),
                "dst holds [height][width][3]");
  base::expects(box.height > 0 && box.width > 0 && src.height > 0 && src.width > 0, "the part is not empty");
  rows_.set(box.top, box.height, part.height, height, kBits);
  rows_.make_sums_one(kBits);
  columns_.set(box.left, box.width, part.width, width, kBits);
  columns_.make_sums_one(kBits);
  base::expects(rows_.first.front() >= part.top && rows_.end() <= part.top + src.height &&
                    columns_.first.front() >= part.left && columns_.end() <= part.left + src.width,
                "the part has all that is averaged");

  const int left = columns_.first.front();
  const int right = columns_.end();
  for (int& first : columns_.first) first -= left;
  const auto row_bytes = kChannels * static_cast<std::size_t>(right - left),
             outputs = static_cast<std::size_t>(width);
  const auto src_stride = kChannels * static_cast<std::size_t>(src.width);
  const auto pairs = columns_.pair_weights(pairs_);
  row_.resize(row_bytes + 2 * kChannels * pairs + sizeof(std::uint64_t));
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    add_rows(src.pixels.data() + static_cast<std::size_t>(rows_.first[y] - part.top) * src_stride +
                 kChannels * static_cast<std::size_t>(left - part.left),
             src_stride, rows_.weights_of(y), rows_.count[y], kBits, row_bytes, row_.data());
    narrow_row(row_.data(), columns_.first.data(), pairs_.data(), pairs, outputs,
               dst.data() + y * kChannels * outputs);
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
             bottom = static_cast<std::size_t>(rows_.end());
  narrowed_.resize((bottom - top) * row_bytes);
  const auto taps = columns_.largest_count(), besides = kChannels * taps + sizeof(std::uint64_t);
  row_.resize(src_stride + besides);
  for (std::size_t y = top; y < bottom; ++y) {
    const std::uint8_t* row = src.pixels.data() + y * src_stride;
    if ((y + 1) * src_stride + besides > src.pixels.size()) {  // too little lies behind this row
      std::copy_n(row, src_stride, row_.begin());
      row = row_.data();
    }
    narrow_row_as_pil(row, columns_.first.data(), columns_.weights.data(),
                      static_cast<std::size_t>(columns_.most), taps, outputs,
                      narrowed_.data() + (y - top) * row_bytes);
  }
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y)
    add_rows(narrowed_.data() + (static_cast<std::size_t>(rows_.first[y]) - top) * row_bytes, row_bytes,
             rows_.weights_of(y), rows_.count[y], kPilBits, row_bytes, dst.data() + y * row_bytes);
}

}  // namespace paceline::data
