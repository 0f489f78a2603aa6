#pragma once

/// The base class of the bf16 kernels for forward and backward data. They read weights in the same packed
/// order (pack_tile_weights), and read one image through windows (window.h) to write another.

#include "engine/cpu/conv/bf16/window.h"
#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// Rounds flat weights (float, PyTorch's order) to bf16 and writes them to `packed` as [block of output
/// channels][tap][block of input channels][2][16 pairs][16][2]. Input and output are window.from and
/// window.to; blocks are whole, 2 bytes an element. Touches only the weights of `tile`. `next` as in
/// WeightReader::pack_tile().
void pack_tile_weights(const TileWindow& window, const tiles::TileKernels& kernels, const float* weights,
                       const WeightTile& tile, const float* next, void* packed);

// What a strip (rows of pixels that one call of a matrix kernel computes, kernels/bf16/tiles.h) does besides
// its matrix products: it adds the pixels that it writes to the sums of the following batch norm, and
// prefetches the memory of the next strip.

/// Where and how a strip accumulates the sums of `epilogue`. `product`: row 0 of the convolution's whole
/// result. The sums are of (x - shift) and its square, with the shift that the caller has set in `epilogue`.
[[nodiscard]] tiles::StripStats strip_stats(const Epilogue& epilogue, const void* product, int channels);

/// The memory of the next strip; sizes are in elements.
struct NextStrip {
  const std::uint16_t* from = nullptr;  ///< what it reads: `read` elements
  std::int64_t read = 0;
  std::uint16_t* product =
      nullptr;  ///< row 0 of the whole result; arrays that the sums read beside it have its layout
  std::int64_t at = 0, written = 0;  ///< what it writes: `written` elements from product + at
};
/// Sets strip.ahead so that the strip prefetches all of `next`. `visits`: the number of weight tiles that it
/// multiplies with; at each it prefetches an equal number of cache lines.
void fetch_next(tiles::Strip& strip, std::int64_t visits, const NextStrip& next);

/// Of the weights that strips read again each time, so that they must stay in a near cache.
constexpr std::int64_t kMostWeightBytes = 1280 << 10;
constexpr int kMostShares = 16;  ///< of a single chunk

class Bf16WeightReader : public WeightReader {
 public:
  [[nodiscard]] std::int64_t packed_bytes() const final {
    return 2 * out_blocks_ * window_.taps() * tap_elements();
  }
  void pack(const float* weights, void* packed) const final {
    pack_tile_weights(window_, kernels_, weights, window_.all_weights(), nullptr, packed);
  }
  [[nodiscard]] bool packs_tiles() const final { return true; }
  void pack_tile(const float* weights, const WeightTile& tile, const float* next, void* packed) const final {
    pack_tile_weights(window_, kernels_, weights, tile, next, packed);
  }
  [[nodiscard]] bool has_epilogue() const final { return true; }

 protected:
  /// `kernels` must outlive this object.
  Bf16WeightReader(const ConvShape& shape, Direction direction, const tiles::TileKernels& kernels)
      : samples_(shape.samples),
        is_forward_(direction == Direction::forward),
        has_bias_(is_forward_ && shape.bias),
        kernels_(kernels),
        window_(tile_window(shape, direction)),
        in_blocks_(tiles::blocks_of(window_.from.channels)),
        out_blocks_(tiles::blocks_of(window_.to.channels)) {}

  /// Pixels of an image that is written.
  [[nodiscard]] std::int64_t pixels() const { return std::int64_t{1} * window_.to.height * window_.to.width; }
  /// Packed weights of one tap and one block of output channels.
  [[nodiscard]] std::int64_t tap_elements() const {
    return std::int64_t{1} * in_blocks_ * tiles::kBlockElements;
  }
  /// The first image that is read: of src, or d_dst.
  [[nodiscard]] const std::uint16_t* from(const Operands& o) const {
    return static_cast<const std::uint16_t*>(is_forward_ ? o.src : o.d_dst);
  }
  /// The first image that is written: of dst, or d_src.
  [[nodiscard]] std::byte* to(const Operands& o) const {
    return static_cast<std::byte*>(is_forward_ ? o.dst : o.d_src);
  }

  const int samples_;
  const bool is_forward_, has_bias_;
  const tiles::TileKernels& kernels_;
  const TileWindow window_;
  const int in_blocks_, out_blocks_;  ///< blocks of channels of window_.from and window_.to
};

}  // namespace paceline::engine::cpu
