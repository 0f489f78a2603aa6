// Convolution as one matrix product for each (output pixel, tap): the images of one pixel, all samples, are a
// matrix [samples][channels] with a long stride, used where it lies. Taps outside the image are skipped: on
// 4x4 images with a 3x3 kernel that is 31 % of the work.
//
// It needs many samples (rows of the matrices) and many channels. For 512 channels at 4x4 and 64 samples, one
// core of a Cascade Lake, fp32, GFLOP/s of the work that a full kernel would have: forward 160 (oneDNN 2.6.3
// channels last: 51), d_src 155 (78), d_weight 170 (45). Gathering the rows of a tap into one longer product
// was slower (70 to 90 for d_weight): its operands leave the second-level cache.
//
// Threads share items: an output pixel (forward), an input pixel (d_src), a tap and a block of channels
// (d_weight). An item is computed by one thread in one order, so any schedule gives the same bits.

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/product.h"

namespace paceline::engine::cpu {
namespace {

constexpr int kChannelBlock = 128;  // of an item of d_weight: 128 x 512 floats of sums stay in the cache
constexpr int kTile = 16;           // channels of a tile while weights are reordered

/// dst [m][n] = a [m][k] (or its transpose) * b [k][n] (or its transpose), added to dst when `adds`.
struct Matrix {
  const float* data;
  std::int64_t stride;
  bool is_transposed = false;
};
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Matrix a, Matrix b, float* dst,
              std::int64_t stride, bool adds) {
  const auto status = dnnl_sgemm(a.is_transposed ? 'T' : 'N', b.is_transposed ? 'T' : 'N', m, n, k, 1.0f,
                                 a.data, a.stride, b.data, b.stride, adds ? 1.0f : 0.0f, dst, stride);
  base::expects(status == dnnl_success, "sgemm accepts its sizes");
}

class TapProduct final : public Product {
 public:
  TapProduct(const ProductShape& shape, const ProductParts& parts, int threads)
      : s_(shape), wanted_(parts), threads_(threads) {}

  [[nodiscard]] std::int64_t packed_forward_bytes() const override { return 4 * weights(); }
  [[nodiscard]] std::int64_t packed_backward_bytes() const override { return 0; }
  [[nodiscard]] std::int64_t packed_gradient_bytes() const override {
    return wanted_.d_weight ? 4 * weights() : 0;
  }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override { return 0; }

  void bind(const ProductMemory& memory) override {
    src_ = static_cast<const float*>(memory.src);
    dst_ = static_cast<float*>(memory.dst);
    d_src_ = static_cast<float*>(memory.d_src);
    d_dst_ = static_cast<const float*>(memory.d_dst);
    packed_ = static_cast<float*>(memory.packed_forward);
    d_weight_ = memory.d_weight;
  }

  /// [out][in][tap] -> [tap][in][out], tile by tile.
  void pack(const float* weights) override {
    for_tiles([&](int out, int outs, int in, int ins) {
      for (int tap = 0; tap < taps(); ++tap)
        for (int c = in; c < in + ins; ++c)
          for (int k = out; k < out + outs; ++k)
            packed_[at(tap, c) + k] = weights[(std::int64_t{1} * k * channels() + c) * taps() + tap];
    });
  }
  void unpack_gradient(const float* packed, float* d_weights) override {
    for_tiles([&](int out, int outs, int in, int ins) {
      for (int k = out; k < out + outs; ++k)
        for (int c = in; c < in + ins; ++c)
          for (int tap = 0; tap < taps(); ++tap)
            d_weights[(std::int64_t{1} * k * channels() + c) * taps() + tap] = packed[at(tap, c) + k];
    });
  }

  void forward() override {
    for_items(s_.dst.height * s_.dst.width, [&](int pixel) {
      const int p = pixel / s_.dst.width, q = pixel % s_.dst.width;
      bool adds = false;
      for (int tap = 0; tap < taps(); ++tap) {
        const int source = source_of(p, q, tap);
        if (source < 0) continue;
        multiply(s_.samples, features(), channels(), {src_ + source * channels(), src_stride()},
                 {packed_ + at(tap, 0), features()}, dst_ + pixel * features(), dst_stride(), adds);
        adds = true;
      }
      if (!adds) clear(dst_ + pixel * features(), features(), dst_stride());
    });
  }

  void backward_d_src() override {
    for_items(s_.src.height * s_.src.width, [&](int pixel) {
      bool adds = false;
      for (int tap = 0; tap < taps(); ++tap) {
        const int target = target_of(pixel / s_.src.width, pixel % s_.src.width, tap);
        if (target < 0) continue;
        multiply(s_.samples, channels(), features(), {d_dst_ + target * features(), dst_stride()},
                 {packed_ + at(tap, 0), features(), true}, d_src_ + pixel * channels(), src_stride(), adds);
        adds = true;
      }
      if (!adds) clear(d_src_ + pixel * channels(), channels(), src_stride());
    });
  }

  void backward_d_weight() override {
    const int blocks = (channels() + kChannelBlock - 1) / kChannelBlock;
    for_items(taps() * blocks, [&](int item) {
      const int tap = item / blocks, first = item % blocks * kChannelBlock;
      const int count = std::min(kChannelBlock, channels() - first);
      float* sums = d_weight_ + at(tap, first);
      bool adds = false;
      for (int pixel = 0; pixel < s_.dst.height * s_.dst.width; ++pixel) {
        const int source = source_of(pixel / s_.dst.width, pixel % s_.dst.width, tap);
        if (source < 0) continue;
        multiply(count, features(), s_.samples, {src_ + source * channels() + first, src_stride(), true},
                 {d_dst_ + pixel * features(), dst_stride()}, sums, features(), adds);
        adds = true;
      }
      if (!adds) std::fill_n(sums, std::int64_t{1} * count * features(), 0.0f);
    });
  }

  [[nodiscard]] bool is_by_taps() const override { return true; }
  [[nodiscard]] std::string forward_name() const override { return kName; }
  [[nodiscard]] std::string d_src_name() const override { return kName; }
  [[nodiscard]] std::string d_weight_name() const override { return kName; }

 private:
  static constexpr const char* kName = "own tap products (onednn sgemm)";

  [[nodiscard]] int taps() const { return s_.kernel * s_.kernel; }
  [[nodiscard]] int channels() const { return s_.src.channels; }
  [[nodiscard]] int features() const { return s_.dst.channels; }
  [[nodiscard]] std::int64_t weights() const { return std::int64_t{1} * taps() * channels() * features(); }
  [[nodiscard]] std::int64_t src_stride() const { return s_.src.elements(); }
  [[nodiscard]] std::int64_t dst_stride() const { return s_.dst.elements(); }
  /// Of the packed weights [tap][in][out].
  [[nodiscard]] std::int64_t at(int tap, int channel) const {
    return (std::int64_t{1} * tap * channels() + channel) * features();
  }

  /// The input pixel under `tap` of the window at output (p, q); -1 outside the image.
  [[nodiscard]] int source_of(int p, int q, int tap) const {
    const int y = p * s_.stride - s_.padding + tap / s_.kernel;
    const int x = q * s_.stride - s_.padding + tap % s_.kernel;
    return y >= 0 && y < s_.src.height && x >= 0 && x < s_.src.width ? y * s_.src.width + x : -1;
  }
  /// The output pixel whose window has input (y, x) under `tap`; -1 if there is none.
  [[nodiscard]] int target_of(int y, int x, int tap) const {
    const int up = y + s_.padding - tap / s_.kernel, left = x + s_.padding - tap % s_.kernel;
    if (up < 0 || left < 0 || up % s_.stride != 0 || left % s_.stride != 0) return -1;
    const int p = up / s_.stride, q = left / s_.stride;
    return p < s_.dst.height && q < s_.dst.width ? p * s_.dst.width + q : -1;
  }

  void clear(float* rows, int count, std::int64_t stride) const {
    for (int n = 0; n < s_.samples; ++n) std::fill_n(rows + n * stride, count, 0.0f);
  }

  template <typename Work>
  void for_items(int count, const Work& work) const {
    // Called inside a parallel region, sgemm stays on its thread.
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1) if (threads_ > 1)
    for (int item = 0; item < count; ++item) work(item);
  }

  template <typename Work>
  void for_tiles(const Work& work) const {
    const int outs = (features() + kTile - 1) / kTile, ins = (channels() + kTile - 1) / kTile;
    for_items(outs, [&](int tile) {
      const int out = tile * kTile;
      for (int i = 0; i < ins; ++i)
        work(out, std::min(kTile, features() - out), i * kTile, std::min(kTile, channels() - i * kTile));
    });
  }

  const ProductShape s_;
  const ProductParts wanted_;
  const int threads_;
  const float* src_ = nullptr;
  float* dst_ = nullptr;
  float* d_src_ = nullptr;
  const float* d_dst_ = nullptr;
  float* packed_ = nullptr;
  float* d_weight_ = nullptr;
};

}  // namespace

bool can_use_taps(const ProductShape& shape) {
  return !shape.is_dense && !shape.bias && shape.type == Storage::f32 && shape.dst_type == Storage::f32;
}

bool should_use_taps(const ProductShape& shape) {
  constexpr int kPixels = 16, kChannels = 256, kSamples = 32;
  return shape.kernel > 1 && shape.dst.height * shape.dst.width <= kPixels &&
         shape.src.channels >= kChannels && shape.dst.channels >= kChannels && shape.samples >= kSamples;
}

std::unique_ptr<Product> make_tap_product(const ProductShape& shape, const ProductParts& parts, int threads) {
  return std::make_unique<TapProduct>(shape, parts, threads);
}

}  // namespace paceline::engine::cpu
