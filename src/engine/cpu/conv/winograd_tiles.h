#pragma once

/// The common base of the Winograd kernels: the tiles of a chunk, the blocks of tiles that are transformed
/// and multiplied together, and what is prefetched meanwhile. winograd.cc explains the method and the arrays
/// v, m, z.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/conv/problem.h"
#include "engine/cpu/kernels/winograd/winograd.h"

namespace paceline::engine::cpu {

/// Forward and backward data of 3x3 convolutions with stride 1 or 2. `kernels`: of one instruction set; they
/// must outlive the result.
[[nodiscard]] std::unique_ptr<WeightReader> make_winograd_reader(const ConvShape& shape, Direction direction,
                                                                 const winograd::WinogradKernels& kernels);

/// Backward weights of the same.
[[nodiscard]] std::unique_ptr<WgradKernel> make_winograd_wgrad(const ConvShape& shape,
                                                               const winograd::WinogradKernels& kernels);

class WinogradTiles {
 protected:
  /// `width`: channels of m, or in backward weights those of z. `kernels` must outlive this object.
  WinogradTiles(const ConvShape& shape, Direction direction, int width,
                const winograd::WinogradKernels& kernels);

  /// Unused floats between positions, so that positions do not compete for the same sets of the first-level
  /// cache.
  static constexpr int kGap = 16;

  [[nodiscard]] std::string name() const;

  /// A position of the transformed domain (kernels/winograd/winograd.h).
  struct Position {
    int number = 0, matrix = 0;  ///< its index, and that of its matrix of weights
    bool is_first = true;        ///< of the positions that share the matrix
    int next_matrix = 0;         ///< the matrix of the position that is multiplied next
  };
  [[nodiscard]] int positions() const { return transforms_.positions * transforms_.positions; }

  // Floats from one position to the next.
  [[nodiscard]] std::int64_t v_stride() const { return std::int64_t{1} * block_ * from_.channels + kGap; }
  [[nodiscard]] std::int64_t m_stride() const { return std::int64_t{1} * block_ * width_ + kGap; }

  /// Tiles of the chunk.
  [[nodiscard]] int tiles() const { return s_.samples * tiles_down_ * tiles_across_; }
  struct Tile {
    int sample, row, column;
  };
  [[nodiscard]] Tile tile(int index) const {
    const int of_sample = tiles_down_ * tiles_across_, rest = index % of_sample;
    return {index / of_sample, rest / tiles_across_, rest % tiles_across_};
  }

  /// What to prefetch during a position: the matrix of the next one, unless it is the same. The last position
  /// is followed by the first one of the next block.
  static winograd::FetchAhead next_matrix(const float* matrices, std::int64_t stride,
                                          const Position& position) {
    if (position.next_matrix == position.matrix) return {};
    return {matrices + position.next_matrix * stride, 4 * (stride - kGap)};
  }

  /// An array of the chunk that blocks of tiles read or write.
  struct Array {
    const void* at = nullptr;
    const winograd::ImageView* image = nullptr;
    int step = 0;  ///< pixels from one tile to the next
  };
  struct Arrays {
    std::array<Array, 4> all{};
    int count = 0;
    void add(const void* at, const winograd::ImageView& image, int step) {
      all[static_cast<std::size_t>(count++)] = {at, &image, step};
    }
  };
  /// What to prefetch while `position` is multiplied: a share of the array elements of the block after the
  /// one that begins at tile `first`. Positions take the arrays in turn. After the last block this is the
  /// memory after the chunk, which most likely belongs to the thread's next chunk.
  [[nodiscard]] winograd::FetchAhead next_block(const Arrays& arrays, int first, int position) const;

  void transform_tiles(const void* src, int first, int count, float* v) const;
  [[nodiscard]] const void* sample(const void* images, const winograd::ImageView& image, int number) const {
    return static_cast<const std::byte*>(images) +
           element_bytes_ * number * image.height * image.width * image.channels;
  }

  const ConvShape s_;
  const winograd::WinogradKernels& kernels_;
  const Direction direction_;
  const winograd::ImageView from_, to_;  ///< images read and written; backward weights: input and output
  const std::int64_t element_bytes_;     ///< of an image element
  const winograd::Transforms& transforms_;
  const winograd::Side& side_;
  const int padding_;  ///< rows and columns of zeros in front of the image that the tiles read
  const int width_;
  const int tiles_down_, tiles_across_;
  const std::vector<Position> order_;  ///< positions that share a matrix follow each other
  const int block_;                    ///< number of tiles in a block

 private:
  [[nodiscard]] int tiles_of_block() const;
  [[nodiscard]] std::int64_t pixel(const winograd::ImageView& image, int step, int index) const;
};

}  // namespace paceline::engine::cpu
