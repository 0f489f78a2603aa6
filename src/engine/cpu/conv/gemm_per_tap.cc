// Convolution as one matrix product for each (output pixel, tap): the images of one pixel, all samples, are a
// matrix [samples][channels] with a long stride, used in place. Taps outside the image are skipped: on 4x4
// images with a 3x3 kernel that is 31 % of the work.
//
// It pays for many samples (rows of the matrices) and many channels. For 512 channels at 4x4 and 64 samples,
// one core of a Cascade Lake, fp32, GFLOP/s counted for the full kernel: forward 160 (oneDNN 2.6.3 channels
// last: 51), d_src 155 (78), d_weight 170 (45). Gathering the rows of a tap into one longer product was
// slower (70 to 90 for d_weight): its operands leave the second-level cache.
//
// A part is an output pixel (forward), an input pixel (d_src), or a tap and a block of channels (d_weight).

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "base/error.h"
#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/onednn.h"
#include "engine/cpu/conv/transpose.h"

namespace paceline::engine::cpu {
namespace {

constexpr int kChannelBlock = 128;  // of an item of d_weight: 128 x 512 floats of sums stay in the cache

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

constexpr const char* kName = "own tap products (onednn sgemm)";

/// Computes the addresses of the products' operands.
class TapGeometry {
 protected:
  explicit TapGeometry(const ConvShape& shape) : s_(shape) { generate_matrix_product(); }

  [[nodiscard]] int taps() const { return s_.kernel * s_.kernel; }
  [[nodiscard]] int channels() const { return s_.src.channels; }
  [[nodiscard]] int features() const { return s_.dst.channels; }
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

  const ConvShape s_;
};

class GemmPerTapReader final : public WeightReader, private TapGeometry {
 public:
  GemmPerTapReader(const ConvShape& shape, Direction direction)
      : TapGeometry(shape), is_forward_(direction == Direction::forward) {}

  [[nodiscard]] std::int64_t packed_bytes() const override { return 4 * s_.weights(); }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override { return 0; }
  [[nodiscard]] std::string name() const override { return kName; }

  void pack(const float* weights, void* packed) const override {
    to_tap_order(s_, weights, static_cast<float*>(packed));
  }
  /// Forward and d_src read the same packed order; one of them transposes it.
  [[nodiscard]] bool packs_like(const WeightReader& other) const override {
    return dynamic_cast<const GemmPerTapReader*>(&other) != nullptr;
  }

  [[nodiscard]] int parts() const override {
    return is_forward_ ? s_.dst.height * s_.dst.width : s_.src.height * s_.src.width;
  }
  void run(const Operands& o, int part) const override {
    is_forward_ ? forward(o, part) : backward_d_src(o, part);
  }

 private:
  void forward(const Operands& o, int pixel) const {
    const auto* src = static_cast<const float*>(o.src);
    const auto* packed = static_cast<const float*>(o.packed);
    float* dst = static_cast<float*>(o.dst) + pixel * features();
    bool adds = false;
    for (int tap = 0; tap < taps(); ++tap) {
      const int source = source_of(pixel / s_.dst.width, pixel % s_.dst.width, tap);
      if (source < 0) continue;
      multiply(s_.samples, features(), channels(), {src + source * channels(), src_stride()},
               {packed + at(tap, 0), features()}, dst, dst_stride(), adds);
      adds = true;
    }
    if (!adds) clear(dst, features(), dst_stride());
  }

  void backward_d_src(const Operands& o, int pixel) const {
    const auto* d_dst = static_cast<const float*>(o.d_dst);
    const auto* packed = static_cast<const float*>(o.packed);
    float* d_src = static_cast<float*>(o.d_src) + pixel * channels();
    bool adds = false;
    for (int tap = 0; tap < taps(); ++tap) {
      const int target = target_of(pixel / s_.src.width, pixel % s_.src.width, tap);
      if (target < 0) continue;
      multiply(s_.samples, channels(), features(), {d_dst + target * features(), dst_stride()},
               {packed + at(tap, 0), features(), true}, d_src, src_stride(), adds);
      adds = true;
    }
    if (!adds) clear(d_src, channels(), src_stride());
  }

  void clear(float* rows, int count, std::int64_t stride) const {
    for (int n = 0; n < s_.samples; ++n) std::fill_n(rows + n * stride, count, 0.0f);
  }

  const bool is_forward_;
};

class GemmPerTapWgrad final : public WgradKernel, private TapGeometry {
 public:
  explicit GemmPerTapWgrad(const ConvShape& shape) : TapGeometry(shape) {}

  [[nodiscard]] std::int64_t packed_bytes() const override { return 4 * s_.weights(); }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override { return 0; }
  [[nodiscard]] std::string name() const override { return kName; }

  void unpack(base::ThreadPool& pool, const float* packed, float* d_weights) const override {
    from_tap_order(s_, pool, packed, d_weights);
  }

  [[nodiscard]] int parts() const override { return taps() * blocks(); }
  void run(const Operands& o, int part) const override {
    const auto* src = static_cast<const float*>(o.src);
    const auto* d_dst = static_cast<const float*>(o.d_dst);
    const int tap = part / blocks(), first = part % blocks() * kChannelBlock;
    const int count = std::min(kChannelBlock, channels() - first);
    float* sums = o.d_weight + at(tap, first);
    bool adds = false;
    for (int pixel = 0; pixel < s_.dst.height * s_.dst.width; ++pixel) {
      const int source = source_of(pixel / s_.dst.width, pixel % s_.dst.width, tap);
      if (source < 0) continue;
      multiply(count, features(), s_.samples, {src + source * channels() + first, src_stride(), true},
               {d_dst + pixel * features(), dst_stride()}, sums, features(), adds);
      adds = true;
    }
    if (!adds) std::fill_n(sums, std::int64_t{1} * count * features(), 0.0f);
  }

 private:
  [[nodiscard]] int blocks() const { return (channels() + kChannelBlock - 1) / kChannelBlock; }
};

std::optional<std::string> refusal(const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  if (s.is_dense) return "is for convolutions";
  if (s.bias) return "adds no bias";
  if (s.type != Storage::f32 || s.dst_type != Storage::f32) return "is for fp32";
  return std::nullopt;
}

/// Where one product for each tap and pixel is faster than oneDNN: few pixels, many channels, and enough
/// samples to fill the rows.
bool prefers(const ConvProblem& problem) {
  constexpr int kPixels = 16, kChannels = 256, kSamples = 32;
  const ConvShape& s = problem.shape;
  return s.kernel > 1 && s.dst_pixels() <= kPixels && s.src.channels >= kChannels &&
         s.dst.channels >= kChannels && s.samples >= kSamples;
}

}  // namespace

ConvAlgorithm gemm_per_tap_algorithm() {
  return {
      .name = "gemm-per-tap",
      .refusal = refusal,
      .prefers = prefers,
      .preference =
          [](const ConvProblem&) {
            return "is preferred for many channels and samples, and few "
                   "pixels";
          },
      .chunk = [](const ConvShape& batch, Direction) { return batch.samples; },  // parts share the batch
      .make_reader = [](const ConvShape& chunk, Direction direction,
                        const WeightReader*) { return std::make_unique<GemmPerTapReader>(chunk, direction); },
      .make_wgrad = [](const ConvShape& chunk,
                       const WgradKernel*) { return std::make_unique<GemmPerTapWgrad>(chunk); },
      // For a large image all samples of a pixel are too much data at a time.
      .is_hopeless =
          [](const ConvShape& s) {
            return s.dst_pixels() > 16 || std::min(s.src.channels, s.dst.channels) < 128;
          }};
}

}  // namespace paceline::engine::cpu
