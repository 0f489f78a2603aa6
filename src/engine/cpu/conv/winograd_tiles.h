#pragma once

/// What Winograd's kernels of all directions share: a chunk's tiles, the blocks in which they are transformed
/// and multiplied, and what is fetched ahead meanwhile. The whole way: winograd_kernel.cc.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/cpu/conv/problem.h"
#include "engine/cpu/kernels/winograd/winograd.h"

namespace paceline::engine::cpu {

class WinogradTiles {
 protected:
  /// `width`: channels of m, or of z and the sums. `kernels` outlives this.
  WinogradTiles(const ConvShape& shape, Direction direction, int width,
                const winograd::WinogradKernels& kernels);

  /// Floats between positions, so that they do not all fall on the same lines of the nearest cache.
  static constexpr int kGap = 16;

  [[nodiscard]] std::string name() const;

  struct Position {
    int number = 0, matrix = 0;
    bool is_first = true;  ///< of those that share the matrix
    int next_matrix = 0;   ///< what is multiplied next
  };
  [[nodiscard]] int positions() const { return transforms_.positions * transforms_.positions; }

  // Floats from one position to the next.
  [[nodiscard]] std::int64_t v_stride() const { return std::int64_t{1} * block_ * from_.channels + kGap; }
  [[nodiscard]] std::int64_t m_stride() const { return std::int64_t{1} * block_ * width_ + kGap; }

  [[nodiscard]] int tiles() const { return s_.samples * tiles_down_ * tiles_across_; }
  struct Tile {
    int sample, row, column;
  };
  [[nodiscard]] Tile tile(int index) const {
    const int of_sample = tiles_down_ * tiles_across_, rest = index % of_sample;
    return {index / of_sample, rest / tiles_across_, rest % tiles_across_};
  }

  /// The matrix that the next position multiplies, where it is another one: blocks begin anew with the first.
  static winograd::FetchAhead next_matrix(const float* matrices, std::int64_t stride,
                                          const Position& position) {
    if (position.next_matrix == position.matrix) return {};
    return {matrices + position.next_matrix * stride, 4 * (stride - kGap)};
  }

  /// An array of the chunk that blocks of tiles read or write.
  struct Array {
    const void* at = nullptr;
    const winograd::ImageView* image = nullptr;
    int step = 0;  ///< pixels from tile to tile
  };
  struct Arrays {
    std::array<Array, 4> all{};
    int count = 0;
    void add(const void* at, const winograd::ImageView& image, int step) {
      all[static_cast<std::size_t>(count++)] = {at, &image, step};
    }
  };
  /// What is fetched beside the products of one position: they take turns at the arrays, each at its
  /// share of what the block of tiles behind the one from `first` on has there. Behind the last block lies
  /// another chunk's, most likely this thread's next one, unless this chunk comes again for its next part.
  [[nodiscard]] winograd::FetchAhead next_block(const Arrays& arrays, int first, int position) const;

  void transform_tiles(const void* src, int first, int count, float* v) const;
  [[nodiscard]] const void* sample(const void* images, const winograd::ImageView& image, int number) const {
    return static_cast<const std::byte*>(images) +
           element_bytes_ * number * image.height * image.width * image.channels;
  }

  const ConvShape s_;
  const winograd::WinogradKernels& kernels_;
  const Direction direction_;
  const winograd::ImageView from_, to_;  ///< read and written; of d_weight: the input and the output
  const std::int64_t element_bytes_;     ///< of images
  const winograd::Transforms& transforms_;
  const winograd::Side& side_;
  const int padding_;  ///< zeros in front of what a tile reads
  const int width_;
  const int tiles_down_, tiles_across_;
  const std::vector<Position> order_;  ///< those that share a matrix one behind the other
  const int block_;                    ///< tiles

 private:
  [[nodiscard]] int tiles_of_block() const;
  [[nodiscard]] std::int64_t pixel(const winograd::ImageView& image, int step, int index) const;
};

}  // namespace paceline::engine::cpu
