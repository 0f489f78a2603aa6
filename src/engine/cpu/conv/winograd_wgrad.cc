// The weights' gradient of 3x3 convolutions by Winograd's minimal filtering (winograd_kernel.cc): blocks of
// tiles of the input and of the output's gradient are transformed and multiplied at each of P positions; the
// sums over all tiles are transformed once at the end.
//
// Legend: C channels that come in, K' of the K that go out, T tiles of a block.
//   v [P][T][C] the input's tiles · z [P][T][K'] the output's gradient · sums [36][C][K']
//   Parts are K' channels.

#include "engine/cpu/conv/winograd_wgrad.h"

#include <algorithm>
#include <array>
#include <ranges>

#include "engine/cpu/conv/tap_order.h"
#include "engine/cpu/conv/winograd_tiles.h"

namespace paceline::engine::cpu {
namespace {

using namespace winograd;

constexpr int kPartChannels = 128;  ///< with more channels per part v is computed fewer times

class WinogradWgrad final : public WgradKernel, private WinogradTiles {
 public:
  WinogradWgrad(const ConvShape& shape, const WinogradKernels& kernels)
      : WinogradTiles(shape, Direction::backward_weights, std::min(kPartChannels, shape.dst.channels),
                      kernels) {}

  [[nodiscard]] std::int64_t packed_bytes() const override { return 4 * s_.weights(); }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override {
    return 4 * (positions() * (v_stride() + m_stride()) + kMatrices * sum_stride());
  }
  [[nodiscard]] std::string name() const override { return WinogradTiles::name(); }

  void unpack(base::ThreadPool& pool, const float* packed, float* d_weights) const override {
    from_tap_order(s_, pool, packed, d_weights);
  }

  [[nodiscard]] int parts() const override { return (to_.channels + kPartChannels - 1) / kPartChannels; }
  void run(const Operands& o, int part) const override {
    const int first_channel = part * kPartChannels;
    const int channels = std::min(kPartChannels, to_.channels - first_channel);
    auto* v = static_cast<float*>(o.scratchpad);
    float* z = v + positions() * v_stride();
    float* sums = z + positions() * m_stride();
    Arrays arrays;
    arrays.add(o.src, from_, side_.read_step);
    arrays.add(o.d_dst, to_, side_.written_step);
    std::array<double, kPartChannels> d_bias{};
    for (int first = 0; first < tiles(); first += block_) {
      const int count = std::min(block_, tiles() - first);
      transform_tiles(o.src, first, count, v);
      for (int t = 0; t < count; ++t) {
        const Tile at = tile(first + t);
        transforms_.transform_gradient(sample(o.d_dst, to_, at.sample), to_, first_channel, channels,
                                       at.row * kOut, at.column * kOut, z + std::int64_t{1} * t * channels,
                                       m_stride(), s_.bias ? d_bias.data() : nullptr);
      }
      for (const Position& p : order_)
        kernels_.multiply(
            {.rows = from_.channels,
             .columns = channels,
             .inner = count,
             .a = v + p.number * v_stride(),
             .a_row = 1,
             .a_inner = from_.channels,
             .b = z + p.number * m_stride(),
             .b_inner = channels,
             .b_panel = kPanel,
             .c = sums + p.matrix * sum_stride(),
             .c_row = channels,
             .adds = first > 0 || !p.is_first,
             .ahead = {next_matrix(sums, sum_stride(), p), next_block(arrays, first, p.number)}});
    }
    if (s_.bias)
      std::ranges::transform(d_bias | std::views::take(channels), o.d_bias + first_channel,
                             [](double sum) { return static_cast<float>(sum); });
    const std::int64_t tap_stride = std::int64_t{1} * from_.channels * to_.channels;
    for (int c = 0; c < from_.channels; ++c)
      for (int k = 0; k < channels; k += kFilters)
        transforms_.transform_filter_gradients(
            sums + std::int64_t{1} * c * channels + k, sum_stride(),
            o.d_weight + std::int64_t{1} * c * to_.channels + first_channel + k, tap_stride);
  }

 private:
  [[nodiscard]] std::int64_t sum_stride() const { return std::int64_t{1} * from_.channels * width_ + kGap; }
};

}  // namespace

std::unique_ptr<WgradKernel> make_winograd_wgrad(const ConvShape& shape, const WinogradKernels& kernels) {
  return std::make_unique<WinogradWgrad>(shape, kernels);
}

}  // namespace paceline::engine::cpu
