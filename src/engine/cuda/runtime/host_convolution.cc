#include "engine/cuda/runtime/host_runtime.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/cuda/storage.h"

namespace paceline::engine::cuda {
namespace {

/// Channels are padded to multiples of 8, so every loop over channels goes by eights.
constexpr int kEight = 8;
typedef float Eight __attribute__((vector_size(4 * kEight)));

/// Pixels that are computed side by side: with 8 channels each they fill the registers.
constexpr int kPixels = 4;

/// A view of an operand as floats: of the operand itself, or of a converted copy.
class FloatView {
 public:
  FloatView(const void* data, std::int64_t elements, Precision precision) {
    if (precision == Precision::f32) {
      data_ = static_cast<const float*>(data);
      return;
    }
    copy_.resize(static_cast<std::size_t>(elements));
    with_storage(precision, [&]<typename T>(T) {
      const auto* from = static_cast<const T*>(data);
      for (std::int64_t i = 0; i < elements; ++i) copy_[static_cast<std::size_t>(i)] = load(from[i]);
    });
    data_ = copy_.data();
  }
  [[nodiscard]] const float* data() const { return data_; }

 private:
  std::vector<float> copy_;
  const float* data_ = nullptr;
};

void store_all(const float* from, std::int64_t elements, void* to, std::int64_t at, Precision precision) {
  with_storage(precision, [&]<typename T>(T) {
    auto* stored = static_cast<T*>(to) + at;
    for (std::int64_t i = 0; i < elements; ++i) store(from[i], stored[i]);
  });
}

/// One side of the convolution: an image of pixels with `channels` values each.
struct Side {
  int height, width, channels;
  [[nodiscard]] std::int64_t pixels() const { return std::int64_t{1} * height * width; }
};
Side source(const ConvProblem& p) { return {p.height_in, p.width_in, p.channels_in}; }
Side destination(const ConvProblem& p) { return {p.height_out, p.width_out, p.channels_out}; }

/// An axis of the image: rows or columns.
using Axis = int graph::Pair::*;
constexpr Axis kRows = &graph::Pair::height, kColumns = &graph::Pair::width;

/// The position of the window's tap `tap` at output `out`; outside of [0, size): padding.
int source_position(const ConvProblem& p, Axis axis, int out, int tap) {
  return out * (p.stride.*axis) - p.padding.*axis + tap * (p.dilation.*axis);
}
/// The output whose tap `tap` reads source position `in`; -1: there is none.
int output_position(const ConvProblem& p, Axis axis, int in, int tap, int size) {
  const int stride = p.stride.*axis, shifted = in + p.padding.*axis - tap * (p.dilation.*axis);
  if (shifted < 0 || shifted % stride != 0 || shifted / stride >= size) return -1;
  return shifted / stride;
}

/// The addresses of the values of each tap, for kPixels pixels: [tap][pixel]. Padding points to zeros.
using Taps = std::vector<const float*>;

/// Calls visit(i) for each i in [0, count), in the order of `loops`.
template <typename Visit>
void for_each_in(HostLoops loops, int count, const Visit& visit) {
  if (loops == HostLoops::ascending)
    for (int i = 0; i < count; ++i) visit(i);
  else
    for (int i = count - 1; i >= 0; --i) visit(i);
}

/// acc[pixel] = sum over taps and channels of value * weights, weights [tap][channel][8].
void multiply(HostLoops loops, const Taps& taps, int channels, const float* weights, float* dst,
              std::int64_t dst_stride, int pixels) {
  Eight acc[kPixels] = {};
  for (std::size_t tap = 0; tap < taps.size(); tap += kPixels, weights += std::int64_t{kEight} * channels)
    for_each_in(loops, channels, [&](int c) {
      Eight w;
      std::memcpy(&w, weights + std::int64_t{kEight} * c, sizeof w);
      for (int i = 0; i < kPixels; ++i) acc[i] += taps[tap + static_cast<std::size_t>(i)][c] * w;
    });
  for (int i = 0; i < pixels; ++i) std::memcpy(dst + i * dst_stride, &acc[i], sizeof acc[i]);
}

/// Forward and backward data use the same loop: each pixel of `to` gathers from pixels of `from`.
/// `position(axis, at, tap, size)` returns the row or column of `from`; weights are packed as [channels of to
/// / 8][tap][channels of from][8].
template <typename Position>
void gather(HostLoops loops, const ConvProblem& p, const float* from_data, Side from, void* to_data, Side to,
            const std::vector<float>& weights, const Position& position) {
  const std::vector<float> zeros(static_cast<std::size_t>(from.channels), 0.0f);
  std::vector<float> row(static_cast<std::size_t>(std::int64_t{1} * to.width * to.channels));
  Taps taps(static_cast<std::size_t>(p.kernel_height * p.kernel_width * kPixels));
  const std::int64_t block = std::int64_t{1} * p.kernel_height * p.kernel_width * from.channels * kEight;
  for (int n = 0; n < p.samples; ++n)
    for (int y = 0; y < to.height; ++y) {
      for (int x = 0; x < to.width; x += kPixels) {
        const int pixels = std::min(kPixels, to.width - x);
        auto tap = taps.begin();
        for (int r = 0; r < p.kernel_height; ++r)
          for (int s = 0; s < p.kernel_width; ++s)
            for (int i = 0; i < kPixels; ++i, ++tap) {
              const int h = position(kRows, y, r, from.height),
                        w = position(kColumns, x + std::min(i, pixels - 1), s, from.width);
              *tap = h < 0 || w < 0 ? zeros.data()
                                    : from_data + (n * from.pixels() + std::int64_t{1} * h * from.width + w) *
                                                      from.channels;
            }
        for (int k = 0; k < to.channels; k += kEight)
          multiply(loops, taps, from.channels, weights.data() + k / kEight * block,
                   row.data() + std::int64_t{1} * x * to.channels + k, to.channels, pixels);
      }
      store_all(row.data(), std::int64_t{1} * to.width * to.channels, to_data,
                (n * to.pixels() + std::int64_t{1} * y * to.width) * to.channels, p.precision);
    }
}

/// KRSC to [K / 8][RS][C][8], or, to compute backward data, to [C / 8][RS][K][8].
std::vector<float> pack(const ConvProblem& p, const float* weight) {
  const bool is_backward = p.direction == ConvDirection::backward_data;
  const int taps = p.kernel_height * p.kernel_width, from = is_backward ? p.channels_out : p.channels_in;
  std::vector<float> packed(static_cast<std::size_t>(p.weight_elements()));
  for (int k = 0; k < p.channels_out; ++k)
    for (int tap = 0; tap < taps; ++tap)
      for (int c = 0; c < p.channels_in; ++c, ++weight) {
        const int outer = is_backward ? c : k, inner = is_backward ? k : c;
        packed[static_cast<std::size_t>(
            ((std::int64_t{outer / kEight} * taps + tap) * from + inner) * kEight + outer % kEight)] =
            *weight;
      }
  return packed;
}

void forward(HostLoops loops, const ConvProblem& p, const ConvOperands& operands) {
  const FloatView src(operands.src, p.src_elements(), p.precision);
  const FloatView weight(operands.weight, p.weight_elements(), p.precision);
  gather(loops, p, src.data(), source(p), operands.dst, destination(p), pack(p, weight.data()),
         [&](Axis axis, int at, int tap, int size) {
           const int in = source_position(p, axis, at, tap);
           return in < size ? in : -1;
         });
}

void backward_data(HostLoops loops, const ConvProblem& p, const ConvOperands& operands) {
  const FloatView d_dst(operands.dst, p.dst_elements(), p.precision);
  const FloatView weight(operands.weight, p.weight_elements(), p.precision);
  gather(loops, p, d_dst.data(), destination(p), operands.src, source(p), pack(p, weight.data()),
         [&](Axis axis, int at, int tap, int size) { return output_position(p, axis, at, tap, size); });
}

/// Pixels of the batch, a chunk at a time, reordered to [channels / 8][pixel][8].
class Panels {
 public:
  static constexpr int kMost = 256;  ///< most pixels of a chunk
  explicit Panels(int channels) : channels_(channels), values_(static_cast<std::size_t>(channels) * kMost) {}
  /// Sets pixel `i` of the chunk; null: zeros.
  void set(int i, const float* pixel) {
    for (int c = 0; c < channels_; c += kEight) {
      float* to = values_.data() + (std::int64_t{1} * c * kMost + std::int64_t{1} * i * kEight);
      if (pixel == nullptr)
        std::fill_n(to, kEight, 0.0f);
      else
        std::copy_n(pixel + c, kEight, to);
    }
  }
  [[nodiscard]] const float* at(int channel) const {
    return values_.data() + std::int64_t{1} * channel * kMost;
  }

 private:
  int channels_;
  std::vector<float> values_;
};

/// d_weight[k .. k + 3][c .. c + 7] += the products over a chunk's pixels. `half`: whether k is in the first
/// or second half of its eight channels.
void accumulate(HostLoops loops, const float* d_dst, int half, const float* src, int pixels, float* d_weight,
                std::int64_t stride) {
  Eight acc[4] = {};
  for_each_in(loops, pixels, [&](int i) {
    Eight value;
    std::memcpy(&value, src + std::int64_t{kEight} * i, sizeof value);
    for (int k = 0; k < 4; ++k) acc[k] += d_dst[std::int64_t{kEight} * i + 4 * half + k] * value;
  });
  for (int k = 0; k < 4; ++k) {
    Eight sum;
    std::memcpy(&sum, d_weight + k * stride, sizeof sum);
    sum += acc[k];
    std::memcpy(d_weight + k * stride, &sum, sizeof sum);
  }
}

void backward_weights(HostLoops loops, const ConvProblem& p, const ConvOperands& operands) {
  const FloatView src(operands.src, p.src_elements(), p.precision);
  const FloatView d_dst(operands.dst, p.dst_elements(), p.precision);
  const Side in = source(p), out = destination(p);
  const int taps = p.kernel_height * p.kernel_width;
  const std::int64_t pixels = p.samples * out.pixels(), stride = std::int64_t{1} * taps * in.channels;
  std::vector<float> d_weight(static_cast<std::size_t>(p.weight_elements()), 0.0f);
  Panels d_panels(out.channels), panels(in.channels);
  for (std::int64_t first = 0; first < pixels; first += Panels::kMost) {
    const auto count = static_cast<int>(std::min<std::int64_t>(Panels::kMost, pixels - first));
    for (int i = 0; i < count; ++i) d_panels.set(i, d_dst.data() + (first + i) * out.channels);
    for (int tap = 0; tap < taps; ++tap) {
      for (int i = 0; i < count; ++i) {
        const std::int64_t pixel = first + i, sample = pixel / out.pixels(), at = pixel % out.pixels();
        const int h = source_position(p, kRows, static_cast<int>(at / out.width), tap / p.kernel_width);
        const int w = source_position(p, kColumns, static_cast<int>(at % out.width), tap % p.kernel_width);
        const bool inside = h >= 0 && h < in.height && w >= 0 && w < in.width;
        panels.set(
            i, inside ? src.data() + (sample * in.pixels() + std::int64_t{1} * h * in.width + w) * in.channels
                      : nullptr);
      }
      for (int k = 0; k < out.channels; k += 4)
        for (int c = 0; c < in.channels; c += kEight)
          accumulate(loops, d_panels.at(k / kEight * kEight), k / 4 % 2, panels.at(c), count,
                     d_weight.data() + k * stride + std::int64_t{1} * tap * in.channels + c, stride);
    }
  }
  store_all(d_weight.data(), p.weight_elements(), operands.weight, 0, p.precision);
}

/// Calls visit(element of src, of dst, of weight) for all products of a convolution with several groups.
template <typename Visit>
void for_each_product(HostLoops loops, const ConvProblem& p, const Visit& visit) {
  const Side in = source(p), out = destination(p);
  const int ins = in.channels / p.groups, outs = out.channels / p.groups;
  for (int n = 0; n < p.samples; ++n)
    for (int y = 0; y < out.height; ++y)
      for (int x = 0; x < out.width; ++x)
        for_each_in(loops, p.kernel_height * p.kernel_width, [&](int tap) {
          const int h = source_position(p, kRows, y, tap / p.kernel_width),
                    w = source_position(p, kColumns, x, tap % p.kernel_width);
          if (h < 0 || h >= in.height || w < 0 || w >= in.width) return;
          const std::int64_t from = (n * in.pixels() + std::int64_t{1} * h * in.width + w) * in.channels;
          const std::int64_t to = (n * out.pixels() + std::int64_t{1} * y * out.width + x) * out.channels;
          for (int k = 0; k < out.channels; ++k)
            for (int c = 0; c < ins; ++c)
              visit(from + k / outs * ins + c, to + k,
                    (std::int64_t{k} * p.kernel_height * p.kernel_width + tap) * ins + c);
        });
}

/// Plain loops: only tests and small networks come here.
void convolve_groups(HostLoops loops, const ConvProblem& p, const ConvOperands& operands) {
  const FloatView src(operands.src, p.src_elements(), p.precision);
  const FloatView dst(operands.dst, p.dst_elements(), p.precision);
  const FloatView weight(operands.weight, p.weight_elements(), p.precision);
  // add(sums, element of src, of dst, of weight) adds a product to one of the sums.
  const auto sum_products = [&](std::int64_t elements, void* to, const auto& add) {
    std::vector<float> sums(static_cast<std::size_t>(elements));
    for_each_product(loops, p,
                     [&](std::int64_t s, std::int64_t d, std::int64_t w) { add(sums.data(), s, d, w); });
    store_all(sums.data(), elements, to, 0, p.precision);
  };
  const float *x = src.data(), *y = dst.data(), *v = weight.data();
  switch (p.direction) {
    case ConvDirection::forward:
      return sum_products(p.dst_elements(), operands.dst,
                          [=](float* sums, auto s, auto d, auto w) { sums[d] += x[s] * v[w]; });
    case ConvDirection::backward_data:
      return sum_products(p.src_elements(), operands.src,
                          [=](float* sums, auto s, auto d, auto w) { sums[s] += y[d] * v[w]; });
    case ConvDirection::backward_weights:
      return sum_products(p.weight_elements(), operands.weight,
                          [=](float* sums, auto s, auto d, auto w) { sums[w] += x[s] * y[d]; });
  }
}

}  // namespace

void convolve_on_host(const ConvProblem& problem, const ConvOperands& operands, HostLoops loops) {
  if (problem.groups > 1) return convolve_groups(loops, problem, operands);
  switch (problem.direction) {
    case ConvDirection::forward:
      return forward(loops, problem, operands);
    case ConvDirection::backward_data:
      return backward_data(loops, problem, operands);
    case ConvDirection::backward_weights:
      return backward_weights(loops, problem, operands);
  }
}

}  // namespace paceline::engine::cuda
