#pragma once

/// What the kernels of forward and backward data by bf16 tiles share: they read weights packed alike
/// (weights.h), go over the windows of one image and write another.

#include "engine/cpu/conv/bf16/weights.h"
#include "engine/cpu/conv/bf16/window.h"
#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

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
  /// `kernels` outlives this.
  Bf16WeightReader(const ConvShape& shape, Direction direction, const tiles::TileKernels& kernels)
      : samples_(shape.samples),
        is_forward_(direction == Direction::forward),
        has_bias_(is_forward_ && shape.bias),
        kernels_(kernels),
        window_(tile_window(shape, direction)),
        in_blocks_(tiles::blocks_of(window_.from.channels)),
        out_blocks_(tiles::blocks_of(window_.to.channels)) {}

  /// Pixels of an image of `to`.
  [[nodiscard]] std::int64_t pixels() const { return std::int64_t{1} * window_.to.height * window_.to.width; }
  /// Packed weights of one tap and one block of channels out.
  [[nodiscard]] std::int64_t tap_elements() const {
    return std::int64_t{1} * in_blocks_ * tiles::kBlockElements;
  }
  [[nodiscard]] const std::uint16_t* from(const Operands& o) const {
    return static_cast<const std::uint16_t*>(is_forward_ ? o.src : o.d_dst);
  }
  [[nodiscard]] std::byte* to(const Operands& o) const {
    return static_cast<std::byte*>(is_forward_ ? o.dst : o.d_src);
  }

  const int samples_;
  const bool is_forward_, has_bias_;
  const tiles::TileKernels& kernels_;
  const TileWindow window_;
  const int in_blocks_, out_blocks_;  ///< of the channels of `from` and of `to`
};

}  // namespace paceline::engine::cpu
