// 3x3 convolutions by Winograd's minimal filtering (kernels/winograd/winograd.h), and the row in the table of
// algorithms: what it can compute, when it pays, how it splits a batch.
//
// Blocks of tiles are transformed, multiplied at each of P positions, and transformed back, all of it in the
// cache. P is 36, or 81 with a stride of 2, where up to 16 positions share one of the 36 matrices of weights.
// Images may be bf16; between the two transforms they are float.
//
// Legend: C channels that come in, K that go out (d_src: the other way round), T tiles of a block.
//   v [P][T][C] the tiles · u [36][panel][C][32] the weights · m [P][T][K] their products
//
// Rounding: docs/decisions/winograd.md.

#include "engine/cpu/conv/winograd_tiles.h"

#include <algorithm>
#include <array>
#include <ranges>

#include "base/dtype.h"
#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/batch_split.h"
#include "engine/cpu/conv/bf16/support.h"
#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/conv/onednn.h"
#include "engine/cpu/conv/transpose.h"
#include "engine/cpu/kernels/kernels.h"
#include "engine/cpu/kernels/transpose/transpose.h"

namespace paceline::engine::cpu {
namespace {

using namespace winograd;

/// Of weights: they stay in the second-level cache from block to block.
constexpr std::int64_t kNearBytes = 1 << 20;

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

// The weights' gradient of 3x3 convolutions by Winograd's minimal filtering (see above): blocks of
// tiles of the input and of the output's gradient are transformed and multiplied at each of P positions; the
// sums over all tiles are transformed once at the end.
//
// Legend: C channels that come in, K' of the K that go out, T tiles of a block.
//   v [P][T][C] the input's tiles · z [P][T][K'] the output's gradient · sums [36][C][K']
//   Parts are K' channels.

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

std::int64_t image_tiles(const ConvShape& s) {
  return std::int64_t{1} * ((s.dst.height + 3) / 4) * ((s.dst.width + 3) / 4);
}

std::optional<std::string> refusal(const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  if (s.is_dense || s.kernel != 3 || s.stride > 2) return "is for 3x3 convolutions with stride 1 or 2";
  if (s.type != s.dst_type) return "reads and writes one precision";
  if (s.src.channels % 16 != 0 || s.dst.channels % 16 != 0) return "needs multiples of 16 channels";
  if (winograd::kernels_here().empty()) return "needs AVX2";
  if (s.padding > 2) return "needs at most 2 pixels of padding";
  if (s.stride == 2 && s.padding != 1) return "needs 1 pixel of padding with stride 2";
  return std::nullopt;
}

/// With AMX, what this project's tile kernels do not compute is left to oneDNN, unless oneDNN may not use AMX
/// (ONEDNN_MAX_CPU_ISA).
bool leaves_it_to_amx(const ConvShape& s) {
  return !tiles::refusal_to_multiply(tiles::Unit::amx, s) &&
         bf16_products_here() == Bf16Products::in_hardware;
}

/// Where needing only a quarter of the multiplications outweighs the transforms: with enough channels, whole
/// tiles, and enough tiles to be worth reading the transformed weights, which are four times as large. With
/// stride 2 more than half of the multiplications remain; then tiles must not extend far beyond the images,
/// and few channels need more tiles.
bool prefers(const ConvProblem& problem) {
  constexpr int kLeastChannels = 32, kMostChannels = 512, kPixels = 16, kTiles = 32;
  constexpr int kManyChannels = 128, kMostPercent = 120;
  const ConvShape& s = problem.shape;
  if (leaves_it_to_amx(s)) return false;
  if (s.stride > 1) {
    if (100 * kPixels * image_tiles(s) > kMostPercent * s.dst_pixels()) return false;
    if (std::min(s.src.channels, s.dst.channels) < kManyChannels && s.samples * image_tiles(s) < 2 * kTiles)
      return false;
  }
  return std::min(s.src.channels, s.dst.channels) >= kLeastChannels &&
         std::max(s.src.channels, s.dst.channels) <= kMostChannels && s.dst_pixels() >= kPixels &&
         s.samples * image_tiles(s) >= kTiles;
}

std::string preference(const ConvProblem& problem) {
  if (leaves_it_to_amx(problem.shape)) return "is chosen only by measuring";
  return "is preferred for 32 to 512 channels, images of 4x4 or more, and 32 tiles of that size; with "
         "stride 2 for tiles that cover at most a fifth more than the image, and 64 of them below 128 "
         "channels";
}

int chunk(const ConvShape& batch, Direction direction) {
  const int usual = samples_of_chunk(batch, direction);
  if (direction == Direction::backward_weights) return usual;
  // Each chunk reads four times the weights: the more weights, the more tiles a chunk needs.
  const std::int64_t tiles = batch.weights() > 128 * 128 * 9 ? 96 : 48;
  const std::int64_t samples = (tiles + image_tiles(batch) - 1) / image_tiles(batch);
  // Chunks of nearly equal size; if they are few, an even number of them. With an odd number one thread
  // computes the last chunk while another waits.
  constexpr std::int64_t kFew = 8;
  const std::int64_t most = std::clamp<std::int64_t>(samples, usual, batch.samples);
  std::int64_t chunks = (batch.samples + most - 1) / most;
  if (chunks < kFew) chunks += chunks % 2;
  return static_cast<int>((batch.samples + chunks - 1) / chunks);
}

}  // namespace

std::unique_ptr<WeightReader> make_winograd_reader(const ConvShape& shape, Direction direction,
                                                   const WinogradKernels& kernels) {
  return std::make_unique<WinogradReader>(shape, direction, kernels);
}

std::unique_ptr<WgradKernel> make_winograd_wgrad(const ConvShape& shape, const WinogradKernels& kernels) {
  return std::make_unique<WinogradWgrad>(shape, kernels);
}

ConvAlgorithm winograd_algorithm() {
  return {.name = "winograd",
          .refusal = refusal,
          .prefers = prefers,
          .preference = preference,
          .chunk = chunk,
          .make_reader =
              [](const ConvShape& chunk, Direction direction, const WeightReader*) {
                return make_winograd_reader(chunk, direction, *winograd::kernels_here().back());
              },
          .make_wgrad =
              [](const ConvShape& chunk, const WgradKernel*) {
                return make_winograd_wgrad(chunk, *winograd::kernels_here().back());
              },
          .converts_bf16 = true};
}

}  // namespace paceline::engine::cpu
