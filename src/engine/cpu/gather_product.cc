// Convolutions as matrix products over gathered pixels, for AVX-512 and any stride: what Winograd's filtering
// cannot compute. For a block of pixels that are written, the pixels that some taps read are copied side by
// side, [pixel][tap][channel], and multiplied by these taps' weights; each copied value serves as many
// multiply-adds as there are channels, so that copying costs little.
//
// d_src of a stride s: the pixels of one residue class (y mod s, x mod s) are read through the same taps; the
// classes are computed one after the other, and share the taps between them.
// d_weight: the gathered pixels, transposed, times the output's gradient; parts are some taps and some
// channels.
//
// Legend: C channels that come in, K that go out (d_src: the other way round), P pixels of a block.
//   a [P][taps of a chunk][C], lines one vector longer · packed [panel of 32 of K][tap][C][32], taps by class

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/cpu/kernels/multiply.h"
#include "engine/cpu/memory.h"
#include "engine/cpu/product.h"
#include "engine/cpu/tap_order.h"

namespace paceline::engine::cpu {
namespace {

constexpr int kLanes = 16;
constexpr int kInner = 384;                ///< channels of all taps of a chunk, about
constexpr std::int64_t kBlock = 64 << 10;  ///< floats of `a`: a quarter of the second-level cache
constexpr int kPartChannels = 256;         ///< of a part of d_weight

struct Tap {
  int number = 0;
  int down = 0, across = 0;  ///< pixel (i, j) of the class reads (i * stride + down, j * stride + across);
                             ///< of d_src (i + down, j + across)
};

/// Pixels that are written, and read through the same taps: (first_y + i step, first_x + j step).
struct Class {
  int first_y = 0, first_x = 0, step = 1;
  int rows = 0, columns = 0;
  std::vector<Tap> taps;
  int first_tap = 0;  ///< its place among the packed taps
};

class GatherKernel final : public ProductKernel {
 public:
  GatherKernel(const ProductShape& shape, Direction direction)
      : s_(shape),
        direction_(direction),
        from_(direction == Direction::d_src ? shape.dst : shape.src),
        to_(direction == Direction::d_src ? shape.src : shape.dst),
        classes_(classes()) {
    int most = 1;
    for (const Class& one : classes_) most = std::max(most, static_cast<int>(one.taps.size()));
    const int chunks = (most * from_.channels + kInner - 1) / kInner;
    chunk_ = std::clamp((most + chunks - 1) / chunks, 1, most);
    a_stride_ = chunk_ * from_.channels + kLanes;
    block_ = static_cast<int>(std::max<std::int64_t>(kBlock / a_stride_, kMultiplyRows)) / kMultiplyRows *
             kMultiplyRows;
  }

  [[nodiscard]] std::int64_t packed_bytes() const override {
    if (direction_ == Direction::d_weight) return 4 * s_.weights();
    return std::int64_t{4} * panels() * panel_floats();
  }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override {
    const std::int64_t a = whole_lines(4 * a_stride_ * block_);
    if (direction_ == Direction::d_weight) return a + 4 * block_ * rounded(part_width());
    return a + (scatters() ? std::int64_t{4} * block_ * to_.channels : 0);
  }

  void pack(const float* weights, void* packed) const override {
    auto* to = static_cast<float*>(packed);
    const int taps = s_.kernel * s_.kernel;
    // Of output channel k and input channel c: (k * C + c) * taps.
    const std::int64_t of_from =
        direction_ == Direction::d_src ? std::int64_t{1} * taps * s_.src.channels : taps;
    const std::int64_t of_to =
        direction_ == Direction::d_src ? taps : std::int64_t{1} * taps * s_.src.channels;
    for (int panel = 0; panel < panels(); ++panel) {
      const int width = std::min(kPanel, to_.channels - panel * kPanel);
      float* lines = to + panel * panel_floats();
      for (int c = 0; c < from_.channels; ++c)
        for (const Class& one : classes_)
          for (std::size_t tap = 0; tap < one.taps.size(); ++tap) {
            float* line =
                lines + ((one.first_tap + static_cast<std::int64_t>(tap)) * from_.channels + c) * kPanel;
            const float* first = weights + c * of_from + panel * kPanel * of_to + one.taps[tap].number;
            for (int k = 0; k < width; ++k) line[k] = first[k * of_to];
            std::fill(line + width, line + kPanel, 0.0f);
          }
    }
  }
  void unpack(base::ThreadPool& pool, const float* packed, float* d_weights) const override {
    from_tap_order(s_, pool, packed, d_weights);
  }

  [[nodiscard]] int parts() const override {
    return direction_ == Direction::d_weight ? tap_parts() * channel_parts() : 1;
  }

  void run(const Operands& o, int part) const override {
    if (direction_ == Direction::d_weight) return sum_gradient(o, part % tap_parts(), part / tap_parts());
    const bool is_forward = direction_ == Direction::forward;
    for (const Class& one : classes_)
      convolve(one, static_cast<const float*>(is_forward ? o.src : o.d_dst),
               static_cast<float*>(is_forward ? o.dst : o.d_src), o);
  }

  [[nodiscard]] std::string name() const override { return "own gathered products avx512"; }

 private:
  static int rounded(int channels) { return (channels + kPanel - 1) / kPanel * kPanel; }
  [[nodiscard]] int panels() const { return rounded(to_.channels) / kPanel; }
  [[nodiscard]] std::int64_t panel_floats() const {
    return std::int64_t{kPanel} * s_.kernel * s_.kernel * from_.channels;
  }
  [[nodiscard]] bool scatters() const { return direction_ == Direction::d_src && s_.stride > 1; }

  [[nodiscard]] std::vector<Class> classes() const {
    std::vector<Class> result;
    const int step = direction_ == Direction::d_src ? s_.stride : 1;
    int taps = 0;
    for (int y = 0; y < std::min(step, to_.height); ++y)
      for (int x = 0; x < std::min(step, to_.width); ++x) {
        Class& one = result.emplace_back(Class{.first_y = y,
                                               .first_x = x,
                                               .step = step,
                                               .rows = (to_.height - y + step - 1) / step,
                                               .columns = (to_.width - x + step - 1) / step,
                                               .taps = {},
                                               .first_tap = taps});
        for (int tap = 0; tap < s_.kernel * s_.kernel; ++tap) {
          int down = tap / s_.kernel - s_.padding, across = tap % s_.kernel - s_.padding;
          if (direction_ == Direction::d_src) {  // the way back, for those that lead to a pixel
            down = y - down;
            across = x - across;
            if (down % step != 0 || across % step != 0) continue;
            down /= step;
            across /= step;
          }
          one.taps.push_back({tap, down, across});
        }
        taps += static_cast<int>(one.taps.size());
      }
    return result;
  }

  /// Copies what `taps` taps of the class from number `first_tap` on read for `count` of its pixels from
  /// `pixel` on (counted over all samples), outside pixels being zero.
  void gather(const Class& one, int first_tap, int taps, int pixel, int count, const float* from,
              float* a) const {
    const int of_sample = one.rows * one.columns, stride = direction_ == Direction::d_src ? 1 : s_.stride;
    const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(from_.channels);
    int sample = pixel / of_sample, i = pixel % of_sample / one.columns, j = pixel % one.columns;
    for (int p = 0; p < count; ++p, a += a_stride_) {
      const float* image = from + sample * from_.elements();
      float* to = a;
      for (int t = first_tap; t < first_tap + taps; ++t, to += from_.channels) {
        const Tap& tap = one.taps[static_cast<std::size_t>(t)];
        const int y = i * stride + tap.down, x = j * stride + tap.across;
        if (y >= 0 && y < from_.height && x >= 0 && x < from_.width)
          std::memcpy(to, image + (std::int64_t{1} * y * from_.width + x) * from_.channels, bytes);
        else
          std::memset(to, 0, bytes);
      }
      if (++j < one.columns) continue;
      j = 0;
      if (++i < one.rows) continue;
      i = 0;
      ++sample;
    }
  }

  void convolve(const Class& one, const float* from, float* to, const Operands& o) const {
    auto* a = static_cast<float*>(o.scratchpad);
    float* rows = a + whole_lines(4 * a_stride_ * block_) / 4;
    const int pixels = s_.samples * one.rows * one.columns, taps = static_cast<int>(one.taps.size());
    const auto* weights =
        static_cast<const float*>(o.packed) + std::int64_t{kPanel} * one.first_tap * from_.channels;
    for (int first = 0; first < pixels; first += block_) {
      const int count = std::min(block_, pixels - first);
      float* c = scatters() ? rows : to + std::int64_t{1} * first * to_.channels;
      for (int tap = 0; tap < taps; tap += chunk_) {
        const int chunk = std::min(chunk_, taps - tap);
        gather(one, tap, chunk, first, count, from, a);
        multiply({.rows = count,
                  .columns = to_.channels,
                  .inner = chunk * from_.channels,
                  .a = a,
                  .a_row = a_stride_,
                  .a_inner = 1,
                  .b = weights + std::int64_t{kPanel} * tap * from_.channels,
                  .b_inner = kPanel,
                  .b_panel = panel_floats(),
                  .c = c,
                  .c_row = to_.channels,
                  .adds = tap > 0});
      }
      if (scatters()) scatter(one, first, count, taps > 0 ? rows : nullptr, to);
    }
  }

  /// Rows to where the class's pixels lie; null: zeros, where no tap reaches.
  void scatter(const Class& one, int pixel, int count, const float* rows, float* to) const {
    const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(to_.channels);
    const int of_sample = one.rows * one.columns;
    for (int p = pixel; p < pixel + count; ++p) {
      const int y = one.first_y + p % of_sample / one.columns * one.step;
      const int x = one.first_x + p % one.columns * one.step;
      float* at = to + p / of_sample * to_.elements() + (std::int64_t{1} * y * to_.width + x) * to_.channels;
      if (rows == nullptr) {
        std::memset(at, 0, bytes);
      } else {
        std::memcpy(at, rows, bytes);
        rows += to_.channels;
      }
    }
  }

  // ---- d_weight

  [[nodiscard]] int tap_parts() const { return (s_.kernel * s_.kernel + chunk_ - 1) / chunk_; }
  [[nodiscard]] int channel_parts() const { return (to_.channels + kPartChannels - 1) / kPartChannels; }
  [[nodiscard]] int part_width() const { return std::min(kPartChannels, to_.channels); }

  void sum_gradient(const Operands& o, int tap_part, int channel_part) const {
    auto* a = static_cast<float*>(o.scratchpad);
    float* d = a + whole_lines(4 * a_stride_ * block_) / 4;
    const Class& all = classes_.front();
    const int tap = tap_part * chunk_, taps = std::min(chunk_, s_.kernel * s_.kernel - tap);
    const int channel = channel_part * kPartChannels, width = std::min(kPartChannels, to_.channels - channel);
    const auto pixels = static_cast<int>(s_.samples * s_.dst_pixels());
    const auto* d_dst = static_cast<const float*>(o.d_dst) + channel;
    for (int first = 0; first < pixels; first += block_) {
      const int count = std::min(block_, pixels - first);
      gather(all, tap, taps, first, count, static_cast<const float*>(o.src), a);
      for (int panel = 0; panel < width; panel += kPanel)  // a long stride would share few sets of the cache
        for (int p = 0; p < count; ++p)
          std::memcpy(d + std::int64_t{1} * panel * block_ + p * kPanel,
                      d_dst + std::int64_t{1} * (first + p) * to_.channels + panel,
                      sizeof(float) * static_cast<std::size_t>(std::min(kPanel, width - panel)));
      multiply({.rows = taps * from_.channels,
                .columns = width,
                .inner = count,
                .a = a,
                .a_row = 1,
                .a_inner = a_stride_,
                .b = d,
                .b_inner = kPanel,
                .b_panel = std::int64_t{kPanel} * block_,
                .c = o.d_weight + std::int64_t{1} * tap * from_.channels * to_.channels + channel,
                .c_row = to_.channels,
                .adds = first > 0});
    }
  }

  const ProductShape s_;
  const Direction direction_;
  const graph::Shape from_, to_;  ///< read and written; of d_weight: the input and the output
  const std::vector<Class> classes_;
  int chunk_ = 1;  ///< taps that are gathered at a time
  std::int64_t a_stride_ = 0;
  int block_ = 0;  ///< pixels
};

}  // namespace

std::unique_ptr<ProductKernel> make_gather_kernel(const ProductShape& shape, Direction direction) {
  return std::make_unique<GatherKernel>(shape, direction);
}

}  // namespace paceline::engine::cpu
