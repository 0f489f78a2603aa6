// 3x3 convolutions by Winograd's minimal filtering (kernels/winograd/winograd.h): blocks of tiles are
// transformed, multiplied at each of P positions, and transformed back, all of it in the cache. P is 36, or
// 81 with a stride of 2, where up to 16 positions share one of the 36 matrices of weights. Images may be
// bf16; between the two transforms they are float.
//
// Legend: C channels that come in, K that go out (d_src: the other way round), T tiles of a block.
//   v [P][T][C] the tiles · u [36][panel][C][32] the weights · m [P][T][K] their products
//
// Rounding: docs/decisions/winograd.md.

#include "engine/cpu/conv/winograd_kernel.h"

#include <algorithm>

#include "base/dtype.h"
#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/conv/winograd_tiles.h"
#include "engine/cpu/kernels/kernels.h"
#include "engine/cpu/kernels/transpose/transpose.h"

namespace paceline::engine::cpu {
namespace {

using namespace winograd;

constexpr std::int64_t kNearBytes =
    1 << 20;  ///< of weights: they stay in the second-level cache from block to block

class WinogradReader final : public WeightReader, private WinogradTiles {
 public:
  WinogradReader(const ConvShape& shape, Direction direction, const WinogradKernels& kernels)
      : WinogradTiles(shape, direction,
                      direction == Direction::forward ? shape.dst.channels : shape.src.channels, kernels),
        is_forward_(direction == Direction::forward) {}

  [[nodiscard]] std::int64_t packed_bytes() const override { return 4 * kMatrices * u_stride(); }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override {
    return 4 * positions() * (v_stride() + m_stride());
  }
  [[nodiscard]] std::string name() const override { return WinogradTiles::name(); }

  [[nodiscard]] bool packs_plainly() const override { return false; }
  void pack(const float* weights, void* packed) const override {
    auto* u = static_cast<float*>(packed);
    // Weights are rounded before the transform; the transformed ones are not rounded.
    const bool rounds = s_.type == Storage::bf16 || s_.in_blocks;
    const bool rotates = !is_forward_;
    // A filter's taps: of output channel k and input channel c at (k * C + c) * 9.
    const std::int64_t of_in = rotates ? std::int64_t{9} * s_.src.channels : 9;
    const std::int64_t of_out = rotates ? 9 : std::int64_t{9} * s_.src.channels;
    const auto pack_filters = [&](int out, int in) {
      float* at = u + (std::int64_t{1} * (out / kPanel) * from_.channels + in) * kPanel + out % kPanel;
      if (out < to_.channels) {
        transforms_.transform_filters(weights + out * of_out + in * of_in, of_out, rotates, rounds, at,
                                      u_stride());
      } else {
        for (int p = 0; p < kMatrices; ++p) std::fill_n(at + p * u_stride(), kFilters, 0.0f);
      }
    };
    // Reads the weights in memory order, with prefetching; the writes need none.
    if (rotates) {
      for (int in = 0; in < from_.channels; ++in)
        for (int out = 0; out < panels() * kPanel; out += kFilters) pack_filters(out, in);
    } else {
      for (int out = 0; out < panels() * kPanel; out += kFilters)
        for (int in = 0; in < from_.channels; ++in) pack_filters(out, in);
    }
    end_streams();
  }

  void run(const Operands& o, int) const override {
    is_forward_ ? convolve(o.src, o.dst, o) : convolve(o.d_dst, o.d_src, o);
  }
  [[nodiscard]] bool has_epilogue() const override { return true; }

 private:
  [[nodiscard]] int panels() const { return (to_.channels + kPanel - 1) / kPanel; }
  [[nodiscard]] std::int64_t u_stride() const {
    return std::int64_t{1} * panels() * kPanel * from_.channels + kGap;
  }

  [[nodiscard]] Arrays arrays_of(const Operands& o) const {
    Arrays arrays;
    arrays.add(is_forward_ ? o.src : o.d_dst, from_, side_.read_step);
    const auto add = [&](const void* at) { arrays.add(at, to_, side_.written_step); };
    if (o.epilogue == nullptr || o.epilogue->what == Epilogue::Sums::moments) {
      add(is_forward_ ? o.dst : o.d_src);
    } else {
      const NormBackward& g = o.epilogue->gradient;
      add(g.d_masked);
      add(g.src);
      if (g.mask == Mask::from_dst) add(g.dst);
    }
    return arrays;
  }

  void convolve(const void* src, void* dst, const Operands& o) const {
    auto* v = static_cast<float*>(o.scratchpad);
    float* m = v + positions() * v_stride();
    const auto* u = static_cast<const float*>(o.packed);
    const Arrays arrays = arrays_of(o);
    const bool fetches_weights = kMatrices * u_stride() * 4 > kNearBytes;
    for (int first = 0; first < tiles(); first += block_) {
      const int count = std::min(block_, tiles() - first);
      transform_tiles(src, first, count, v);
      for (const Position& p : order_)
        kernels_.multiply({.rows = count,
                           .columns = to_.channels,
                           .inner = from_.channels,
                           .a = v + p.number * v_stride(),
                           .a_row = from_.channels,
                           .a_inner = 1,
                           .b = u + p.matrix * u_stride(),
                           .b_inner = kPanel,
                           .b_panel = std::int64_t{kPanel} * from_.channels,
                           .c = m + p.number * m_stride(),
                           .c_row = to_.channels,
                           .ahead = {fetches_weights ? next_matrix(u, u_stride(), p) : FetchAhead{},
                                     next_block(arrays, first, p.number)}});
      if (first == 0 && o.epilogue != nullptr) begin_sums(*o.epilogue, m, bias(o), dst);
      for (int t = 0; t < count; ++t) {
        const Tile at = tile(first + t);
        side_.transform_output(m + std::int64_t{1} * t * to_.channels, m_stride(), bias(o), dst, to_,
                               at.sample, at.row * side_.written_step, at.column * side_.written_step,
                               o.epilogue);
      }
    }
    if (o.epilogue != nullptr)
      make_plain(*o.epilogue, std::int64_t{1} * s_.samples * to_.height * to_.width, to_.channels);
  }

  /// Moments are taken around the mean of the first tile, which is close enough to avoid cancellation.
  void begin_sums(const Epilogue& e, const float* m, const float* bias, void* dst) const {
    std::fill_n(e.sums, 2 * to_.channels, 0.0);
    if (e.what != Epilogue::Sums::moments) return;
    side_.transform_output(m, m_stride(), bias, dst, to_, 0, 0, 0, nullptr);
    std::fill_n(e.shift, to_.channels, 0.0f);
    const int rows = std::min(side_.written_step, to_.height);
    const int columns = std::min(side_.written_step, to_.width);
    const auto add = [&](const auto* pixels, const auto& to_float) {
      for (int y = 0; y < rows; ++y)
        for (int x = 0; x < columns; ++x)
          for (int c = 0; c < to_.channels; ++c)
            e.shift[c] += to_float(pixels[(std::int64_t{1} * y * to_.width + x) * to_.channels + c]);
    };
    if (s_.type == Storage::bf16) {
      add(static_cast<const base::BFloat16*>(dst),
          [](base::BFloat16 value) { return base::to_float(value); });
    } else {
      add(static_cast<const float*>(dst), [](float value) { return value; });
    }
    for (int c = 0; c < to_.channels; ++c) e.shift[c] /= static_cast<float>(rows * columns);
  }

  /// The bias that the forward pass adds.
  [[nodiscard]] const float* bias(const Operands& o) const {
    return s_.bias && is_forward_ ? o.bias : nullptr;
  }

  const bool is_forward_;
};

}  // namespace

std::unique_ptr<WeightReader> make_winograd_reader(const ConvShape& shape, Direction direction,
                                                   const WinogradKernels& kernels) {
  return std::make_unique<WinogradReader>(shape, direction, kernels);
}

}  // namespace paceline::engine::cpu
