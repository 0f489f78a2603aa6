// 3x3 convolutions by Winograd's minimal filtering (kernels/winograd.h): blocks of tiles are transformed,
// multiplied at each of P positions, and transformed back, all while they are in the cache. P is 36, or 81
// with a stride of 2, where up to 16 positions share one of the 36 matrices of weights. Images may be bf16:
// they are float from their transform to the one back.
//
// Legend: C channels that come in, K that go out (d_src: the other way round), T tiles of a block.
//   v [P][T][C] the tiles · u [36][panel][C][32] the weights · m [P][T][K] their products
//   d_weight: z [P][T][K'] the output's gradient, sums [36][C][K'], for K' of the K channels, which are its
//   parts.
//
// Rounding: docs/decisions/winograd.md.

#include "engine/cpu/conv/winograd_kernel.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <ranges>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/conv/tap_order.h"
#include "engine/cpu/kernels/kernels.h"
#include "engine/cpu/kernels/transpose/transpose.h"
#include "engine/cpu/kernels/winograd/winograd.h"
#include "engine/memory_requests.h"

namespace paceline::engine::cpu {
namespace {

using namespace winograd;

/// Floats between positions, so that they do not all fall on the same lines of the nearest cache.
constexpr int kGap = 16;
constexpr int kPartChannels = 128;  ///< of a part of d_weight: the more, the fewer times v is made
/// Of v and m (or z), so that they stay in the second-level cache; more where too few tiles would fit to be
/// worth reading the weights (tiles_of_block()).
constexpr std::int64_t kBlockBytes = 448 << 10;

constexpr std::int64_t kNearBytes =
    1 << 20;  ///< of weights: they stay in the second-level cache from block to block

int rounded_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

class WinogradKernel final : public ConvKernel {
 public:
  WinogradKernel(const ConvShape& shape, Direction direction, const WinogradKernels& kernels)
      : s_(shape),
        kernels_(kernels),
        direction_(direction),
        from_(direction == Direction::backward_data ? image(shape.dst) : image(shape.src)),
        to_(direction == Direction::backward_data ? image(shape.src) : image(shape.dst)),
        element_bytes_(bytes_of(shape.type)),
        transforms_(transforms_of(shape, kernels)),
        side_(direction == Direction::backward_data ? transforms_.backward : transforms_.forward),
        padding_(padding(shape, direction)),
        tiles_down_((to_.height + side_.written_step - 1) / side_.written_step),
        tiles_across_((to_.width + side_.written_step - 1) / side_.written_step),
        order_(by_matrix(transforms_.positions)),
        block_(tiles_of_block()) {}

  [[nodiscard]] std::int64_t packed_bytes() const override {
    return 4 * (direction_ == Direction::backward_weights ? s_.weights() : kMatrices * u_stride());
  }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override {
    const std::int64_t tiles = positions() * (v_stride() + m_stride());
    return 4 * (direction_ == Direction::backward_weights ? tiles + kMatrices * sum_stride() : tiles);
  }

  [[nodiscard]] bool packs_plainly() const override { return false; }
  void pack(const float* weights, void* packed) const override {
    auto* u = static_cast<float*>(packed);
    // The transform of rounded weights, not rounded transforms.
    const bool rounds = s_.type == Storage::bf16 || s_.in_blocks;
    const bool rotates = direction_ == Direction::backward_data;
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
    // The weights in the order in which they lie: what is read is fetched ahead, what is written needs no
    // such help.
    if (rotates) {
      for (int in = 0; in < from_.channels; ++in)
        for (int out = 0; out < panels() * kPanel; out += kFilters) pack_filters(out, in);
    } else {
      for (int out = 0; out < panels() * kPanel; out += kFilters)
        for (int in = 0; in < from_.channels; ++in) pack_filters(out, in);
    }
    end_streams();
  }

  void unpack(base::ThreadPool& pool, const float* packed, float* d_weights) const override {
    from_tap_order(s_, pool, packed, d_weights);
  }

  [[nodiscard]] int parts() const override {
    return direction_ == Direction::backward_weights ? (to_.channels + kPartChannels - 1) / kPartChannels : 1;
  }

  void run(const Operands& o, int part) const override {
    switch (direction_) {
      case Direction::forward:
        return convolve(o.src, o.dst, o);
      case Direction::backward_data:
        return convolve(o.d_dst, o.d_src, o);
      case Direction::backward_weights:
        return sum_gradient(o, part * kPartChannels,
                            std::min(kPartChannels, to_.channels - part * kPartChannels));
    }
  }

  [[nodiscard]] bool has_epilogue() const override { return direction_ != Direction::backward_weights; }

  [[nodiscard]] std::string name() const override {
    return (s_.stride == 1 ? "own Winograd 4x4 " : "own Winograd 4x4 with stride 2 ") +
           std::string(name_of(kernels_.isa));
  }

 private:
  static const Transforms& transforms_of(const ConvShape& shape, const WinogradKernels& kernels) {
    const Strides& strides = shape.type == Storage::bf16 ? kernels.bf16 : kernels.f32;
    return shape.stride == 1 ? strides.stride1 : strides.stride2;
  }
  static ImageView image(const graph::Shape& shape) { return {shape.height, shape.width, shape.channels}; }

  /// Zeros in front of what a tile reads.
  static int padding(const ConvShape& shape, Direction direction) {
    if (direction != Direction::backward_data) return shape.padding;
    return shape.stride == 1 ? 2 - shape.padding : 0;
  }

  struct Position {
    int number = 0, matrix = 0;
    bool is_first = true;  ///< of those that share the matrix
    int next_matrix = 0;   ///< what is multiplied next
  };
  /// Those that share a matrix one behind the other.
  static std::vector<Position> by_matrix(int positions) {
    std::vector<Position> order;
    for (int p = 0; p < positions * positions; ++p)
      order.push_back({.number = p, .matrix = matrix_of(p, positions)});
    std::ranges::stable_sort(order, {}, &Position::matrix);
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i].is_first = i == 0 || order[i - 1].matrix != order[i].matrix;
      order[i].next_matrix = order[(i + 1) % order.size()].matrix;
    }
    return order;
  }
  [[nodiscard]] int positions() const { return transforms_.positions * transforms_.positions; }

  /// Channels of m, or of z and the sums: all that go out, or a part of them.
  [[nodiscard]] int width() const {
    return direction_ == Direction::backward_weights ? std::min(kPartChannels, to_.channels) : to_.channels;
  }
  [[nodiscard]] int panels() const { return (to_.channels + kPanel - 1) / kPanel; }

  // Floats from one position to the next.
  [[nodiscard]] std::int64_t u_stride() const {
    return std::int64_t{1} * panels() * kPanel * from_.channels + kGap;
  }
  [[nodiscard]] std::int64_t v_stride() const { return std::int64_t{1} * block_ * from_.channels + kGap; }
  [[nodiscard]] std::int64_t m_stride() const { return std::int64_t{1} * block_ * width() + kGap; }
  [[nodiscard]] std::int64_t sum_stride() const { return std::int64_t{1} * from_.channels * width() + kGap; }

  [[nodiscard]] int tiles() const { return s_.samples * tiles_down_ * tiles_across_; }

  /// Few enough to stay in the cache, and enough to be worth reading the weights once more.
  [[nodiscard]] int tiles_of_block() const {
    const std::int64_t bytes = std::int64_t{4} * positions() * (from_.channels + width());
    const int fitting = static_cast<int>(kBlockBytes / bytes) / kMultiplyRows * kMultiplyRows;
    const int groups = s_.stride > 1                               ? 2
                       : direction_ == Direction::backward_weights ? 4
                       : from_.channels > 128                      ? 8
                                                                   : 2;
    const int worth = groups * kMultiplyRows;
    return std::min(std::max(fitting, worth), rounded_up(tiles(), kMultiplyRows));
  }

  struct Tile {
    int sample, row, column;
  };
  [[nodiscard]] Tile tile(int index) const {
    const int of_sample = tiles_down_ * tiles_across_, rest = index % of_sample;
    return {index / of_sample, rest / tiles_across_, rest % tiles_across_};
  }

  /// The matrix that the next position multiplies, where it is another one: blocks begin anew with the first.
  static FetchAhead next_matrix(const float* matrices, std::int64_t stride, const Position& position) {
    if (position.next_matrix == position.matrix) return {};
    return {matrices + position.next_matrix * stride, 4 * (stride - kGap)};
  }

  /// Where a tile's pixels begin, `step` from one to the next, in pixels from the chunk's first on: exactly
  /// that of the first tile of a row, in proportion those within it. Of the tile behind the last: where the
  /// chunk ends.
  [[nodiscard]] std::int64_t pixel(const ImageView& image, int step, int index) const {
    const Tile at = tile(index);
    const int row = std::min(image.height, at.row * step), column = std::min(image.width, at.column * step);
    const int rows = std::min(step, image.height - row);
    return (std::int64_t{1} * at.sample * image.height + row) * image.width + column * rows;
  }

  /// An array of the chunk that blocks of tiles read or write.
  struct Array {
    const void* at = nullptr;
    const ImageView* image = nullptr;
    int step = 0;  ///< pixels from tile to tile
  };
  struct Arrays {
    std::array<Array, 4> all{};
    int count = 0;
    void add(const void* at, const ImageView& image, int step) {
      all[static_cast<std::size_t>(count++)] = {at, &image, step};
    }
  };
  [[nodiscard]] Arrays arrays_of(const Operands& o) const {
    Arrays arrays;
    arrays.add(direction_ == Direction::backward_data ? o.d_dst : o.src, from_, side_.read_step);
    const auto add = [&](const void* at) { arrays.add(at, to_, side_.written_step); };
    if (direction_ == Direction::backward_weights) {
      add(o.d_dst);
    } else if (o.epilogue == nullptr || o.epilogue->what == Epilogue::Sums::moments) {
      add(direction_ == Direction::forward ? o.dst : o.d_src);
    } else {
      const NormBackward& g = o.epilogue->gradient;
      add(g.d_masked);
      add(g.src);
      if (g.mask == Mask::from_dst) add(g.dst);
    }
    return arrays;
  }

  /// What is fetched beside the products of one position: they take turns at the arrays, each at its
  /// share of what the block of tiles behind the one from `first` on has there. Behind the last block lies
  /// another chunk's, most likely this thread's next one, unless this chunk comes again for its next part.
  [[nodiscard]] FetchAhead next_block(const Arrays& arrays, int first, int position) const {
    const int each = positions() / arrays.count, turn = position / arrays.count;
    if (turn >= each) return {};
    const Array& array = arrays.all[static_cast<std::size_t>(position % arrays.count)];
    const std::int64_t begin = pixel(*array.image, array.step, std::min(first + block_, tiles()));
    const std::int64_t end = begin + pixel(*array.image, array.step, block_);
    const std::int64_t bytes = element_bytes_ * array.image->channels, share = (end - begin) * bytes / each;
    return {reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(array.at) +
                                          static_cast<std::uintptr_t>(begin * bytes + share * turn)),
            share};
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

  /// Moments are taken around the mean of the first tile: near enough to all of them that squares do not
  /// cancel.
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

  void sum_gradient(const Operands& o, int first_channel, int channels) const {
    auto* v = static_cast<float*>(o.scratchpad);
    float* z = v + positions() * v_stride();
    float* sums = z + positions() * m_stride();
    const Arrays arrays = arrays_of(o);
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

  void transform_tiles(const void* src, int first, int count, float* v) const {
    for (int t = 0; t < count; ++t) {
      const Tile at = tile(first + t);
      side_.transform_input(sample(src, from_, at.sample), from_, at.row * side_.read_step - padding_,
                            at.column * side_.read_step - padding_, v + std::int64_t{1} * t * from_.channels,
                            v_stride());
    }
  }
  /// What forward adds.
  [[nodiscard]] const float* bias(const Operands& o) const {
    return s_.bias && direction_ == Direction::forward ? o.bias : nullptr;
  }
  [[nodiscard]] const void* sample(const void* images, const ImageView& image, int number) const {
    return static_cast<const std::byte*>(images) +
           element_bytes_ * number * image.height * image.width * image.channels;
  }

  const ConvShape s_;
  const WinogradKernels& kernels_;
  const Direction direction_;
  const ImageView from_, to_;         ///< read and written; of d_weight: the input and the output
  const std::int64_t element_bytes_;  ///< of images
  const Transforms& transforms_;
  const Side& side_;
  const int padding_;
  const int tiles_down_, tiles_across_;
  const std::vector<Position> order_;
  const int block_;
};

}  // namespace

std::unique_ptr<ConvKernel> make_winograd_kernel(const ConvShape& shape, Direction direction,
                                                 const WinogradKernels& kernels) {
  return std::make_unique<WinogradKernel>(shape, direction, kernels);
}

}  // namespace paceline::engine::cpu
