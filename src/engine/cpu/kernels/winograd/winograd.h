#pragma once

/// The steps of a 3x3 convolution by Winograd's minimal filtering, for AVX-512 and AVX2. Both give the same
/// bits.
///
/// A tile of 4x4 output pixels becomes a number of positions in the transformed domain. At each position the
/// sum over channels is a matrix product. Arrays are [position][tile or channel][channel], with channels
/// innermost in whole vectors of 16.
///
/// Stride 1, F(4x4, 3x3): 6x6 input pixels and 36 positions, where the direct form has 144 multiplications.
/// The evaluation points are 0, +-5/8, +-3/2 and infinity; with the textbook's 0, +-1, +-2 the rounding error
/// is about three times as large.
///
/// Stride 2: 9x9 input pixels, or in backward data 8x8 of them from 5x5 gradients. In each dimension, every
/// other pixel meets the two outer taps: F(4, 2) with the points +-1/2, +-3/2 and infinity. The pixels
/// between meet the middle tap alone. A row has 9 positions: five with matrices of weights of their own and
/// four that share one. In all, 81 multiplications instead of 144, with 36 matrices. The rounding error is
/// between that of the direct form and, in backward data, twice that.
///
/// Source   Lavin and Gray, "Fast algorithms for convolutional neural networks", CVPR 2016; the points by the
///          Toom-Cook construction
/// Threads  any; kernels start none

#include <cstdint>
#include <vector>

#include "engine/cpu/kernels/kernels.h"

namespace paceline::engine::cpu::winograd {

constexpr int kOut = 4;                                    ///< output pixels of a tile, in each dimension
constexpr int kPoints = 6, kMatrices = kPoints * kPoints;  ///< matrices of transformed weights
constexpr int kFilters = 16;                               ///< filters that are transformed at a time
constexpr int kPanel = 32;                                 ///< columns of `b` that are contiguous
constexpr int kMultiplyRows = 12;  ///< multiply() is fastest for multiples of so many rows

/// The sizes of one sample's values, [height][width][channels].
struct ImageView {
  int height = 0, width = 0, channels = 0;
};

/// Memory to prefetch into the second-level cache, evenly during the products, which need little memory
/// bandwidth. It is a hint: the addresses need not exist.
struct FetchAhead {
  const void* at = nullptr;
  std::int64_t bytes = 0;  ///< 0: nothing
};
constexpr int kAheads = 2;

/// c [rows][columns] = a [rows][inner] * b [inner][columns], added to c if `adds`. Element (r, i) of `a` is
/// a[r * a_row + i * a_inner], where one of the two strides is 1. Element (i, j) of `b` is b[j / kPanel *
/// b_panel + i * b_inner + j % kPanel]. `columns` is a multiple of 16.
struct GemmArguments {
  int rows = 0, columns = 0, inner = 0;
  const float* a = nullptr;
  std::int64_t a_row = 0, a_inner = 0;
  const float* b = nullptr;
  std::int64_t b_inner = 0, b_panel = 0;
  float* c = nullptr;
  std::int64_t c_row = 0;
  bool adds = false;
  FetchAhead ahead[kAheads] = {};  ///< prefetched meanwhile
};

/// The index of the matrix of weights for `position`. `positions`: 6 or 9, in each dimension.
[[nodiscard]] constexpr int matrix_of(int position, int positions) {
  const auto point = [](int i) { return i < kPoints ? i : kPoints - 1; };
  return point(position / positions) * kPoints + point(position % positions);
}

/// The transforms of forward, or of backward data. Images are float or bf16; the transformed domain is always
/// float.
struct Side {
  int read_step = 0, written_step = 0;  ///< pixels from tile to tile, in the images read and written
  /// Transforms the tile whose first pixel is (y, x); pixels outside the image are zero. Position p goes to v
  /// + p * stride, [channels].
  void (*transform_input)(const void* src, const ImageView& image, int y, int x, float* v,
                          std::int64_t stride);
  /// Transforms the positions at m + p * stride, [channels], to the pixels of the tile at (y, x) of sample
  /// `sample`, and drops pixels outside the image. Adds `bias` [channels] unless it is null or `epilogue` is
  /// a gradient's. With an epilogue it adds the sums of these pixels, as they are stored, to the epilogue's:
  /// moments are around its shift; a gradient's writes d_masked instead of dst.
  void (*transform_output)(const float* m, std::int64_t stride, const float* bias, void* dst,
                           const ImageView& image, int sample, int y, int x, const Epilogue* epilogue);
};

/// The transforms for one stride.
struct Transforms {
  int positions = 0;  ///< in each dimension
  Side forward, backward;
  /// Backward weights: transforms the 4x4 pixels at (y, x) of the output's gradient, channels [first, first +
  /// count), with the transpose of forward's transform_output. Adds the pixels to sums [count], the bias
  /// gradient, unless it is null.
  void (*transform_gradient)(const void* d_dst, const ImageView& image, int first, int count, int y, int x,
                             float* z, std::int64_t stride, double* sums);
  /// Transforms kFilters filters, whose 3x3 taps lie `lane_stride` floats apart. `rotated`: by half a turn,
  /// for backward data. `rounds`: taps are rounded to bf16 first. Matrix m goes to u + m * stride. `u` must
  /// be aligned to 64 bytes; writes bypass the caches, so call end_streams() before another thread reads
  /// them.
  void (*transform_filters)(const float* taps, std::int64_t lane_stride, bool rotated, bool rounds, float* u,
                            std::int64_t stride);
  /// Backward weights: transforms the matrices at m + number * stride to the gradients of kFilters filters,
  /// tap t at taps + t * tap_stride. The transpose of transform_filters.
  void (*transform_filter_gradients)(const float* m, std::int64_t stride, float* taps,
                                     std::int64_t tap_stride);
};

struct Strides {
  Transforms stride1, stride2;
};

struct WinogradKernels {
  Isa isa = Isa::baseline;
  Strides f32, bf16;  ///< by the images' storage
  void (*multiply)(const GemmArguments& args);
};

/// The tables that this machine can run, the best one last. Empty without AVX2.
[[nodiscard]] std::vector<const WinogradKernels*> kernels_here();

}  // namespace paceline::engine::cpu::winograd
