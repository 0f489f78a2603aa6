#pragma once

/// The parts of a 3x3 convolution by Winograd's minimal filtering, for AVX-512 and for AVX2: the same bits by
/// both.
///
/// A tile of 4x4 output pixels has a number of positions in the transformed domain; at each of them the sum
/// over channels is a matrix product. Everything is laid out [position][tile or channel][channel], channels
/// innermost in whole vectors of 16.
///
/// Stride 1, F(4x4, 3x3): 6x6 input pixels, 36 positions where the direct form has 144 multiplications.
/// Points of evaluation are 0, +-5/8, +-3/2 and infinity: with the textbook's 0, +-1, +-2 the rounding error
/// is about three times as large.
///
/// Stride 2: 9x9 input pixels, or backward 8x8 of them from 5x5 gradients. In each direction every other
/// pixel meets the two outer taps, F(4, 2) with the points +-1/2, +-3/2 and infinity; those between meet the
/// tap in the middle, alone. 9 positions of a row, five with weights of their own and four that share some:
/// 81 instead of 144 multiplications by 36 matrices of weights. Rounding errors are between those of the
/// direct form and, backward data, twice as large.
///
/// Source   Lavin and Gray, "Fast algorithms for convolutional neural networks", CVPR 2016; the general
/// points by the Toom-Cook construction
/// Threads  none of its own

#include <cstdint>
#include <vector>

#include "engine/cpu/kernels/kernels.h"

namespace paceline::engine::cpu::winograd {

constexpr int kOut = 4;                                    ///< output pixels of a tile, in each direction
constexpr int kPoints = 6, kMatrices = kPoints * kPoints;  ///< of weights
constexpr int kFilters = 16;                               ///< that are transformed at a time
constexpr int kPanel = 32;                                 ///< columns of `b` that lie together
constexpr int kMultiplyRows = 12;  ///< that multiply() does best: a multiple of so many rows

/// One sample's values, [height][width][channels].
struct ImageView {
  int height = 0, width = 0, channels = 0;
};

/// Memory that is wanted soon: a hint, so that the addresses need not exist. It is fetched into the
/// second-level cache, evenly beside the products, while they need little of the memory's time.
struct FetchAhead {
  const void* at = nullptr;
  std::int64_t bytes = 0;  ///< 0: nothing
};
constexpr int kAheads = 2;

/// c [rows][columns] = a [rows][inner] * b [inner][columns], added to c when `adds`. Element (r, i) of `a`
/// lies at a[r * a_row + i * a_inner], where one of the two strides is 1; element (i, j) of `b` at b[j /
/// kPanel * b_panel + i * b_inner + j % kPanel]. `columns` is a multiple of 16.
struct GemmArguments {
  int rows = 0, columns = 0, inner = 0;
  const float* a = nullptr;
  std::int64_t a_row = 0, a_inner = 0;
  const float* b = nullptr;
  std::int64_t b_inner = 0, b_panel = 0;
  float* c = nullptr;
  std::int64_t c_row = 0;
  bool adds = false;
  FetchAhead ahead[kAheads] = {};  ///< fetched meanwhile
};

/// The matrix of weights that a position multiplies, of 6 or 9 `positions` in each direction.
[[nodiscard]] constexpr int matrix_of(int position, int positions) {
  const auto point = [](int i) { return i < kPoints ? i : kPoints - 1; };
  return point(position / positions) * kPoints + point(position % positions);
}

/// What becomes of tiles that are read and written, forward or backward. Images are float or bf16, what is
/// between the transforms always float.
struct Side {
  int read_step = 0, written_step = 0;  ///< pixels from tile to tile of what is read, and of what is written
  /// The tile whose first pixel is (y, x), outside pixels being zero: position p to v + p * stride,
  /// [channels].
  void (*transform_input)(const void* src, const ImageView& image, int y, int x, float* v,
                          std::int64_t stride);
  /// Positions at m + p * stride, [channels], to the pixels of a tile from (y, x) on of image number
  /// `sample`; those outside are dropped. `bias` [channels] is added, if there is one, never under
  /// `gradient`. With an epilogue the sums of these pixels, as they are stored, are added to its own: moments
  /// around its shift; under `gradient` d_masked is written instead of dst.
  void (*transform_output)(const float* m, std::int64_t stride, const float* bias, void* dst,
                           const ImageView& image, int sample, int y, int x, const Epilogue* epilogue);
};

/// Of convolutions with one stride.
struct Transforms {
  int positions = 0;  ///< in each direction
  Side forward, backward;
  /// The 4x4 pixels from (y, x) on of an output's gradient, channels [first, first + count): the transpose of
  /// forward's transform_output. They are added to sums [count] unless that is null: the bias's gradient.
  void (*transform_gradient)(const void* d_dst, const ImageView& image, int first, int count, int y, int x,
                             float* z, std::int64_t stride, double* sums);
  /// kFilters filters whose 3x3 taps lie `lane_stride` floats apart; `rotated` by half a turn, for backward;
  /// `rounds`: of taps rounded to bf16. Matrix m to u + m * stride. `u` in whole lines of 64 bytes; it is
  /// written past the caches: end_streams() before another thread may read it.
  void (*transform_filters)(const float* taps, std::int64_t lane_stride, bool rotated, bool rounds, float* u,
                            std::int64_t stride);
  /// Matrices at m + number * stride of kFilters filters' gradients, to tap t at taps + t * tap_stride: the
  /// transpose of transform_filters.
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

/// The tables that this machine runs, the best one last; none without AVX2.
[[nodiscard]] std::vector<const WinogradKernels*> kernels_here();

}  // namespace paceline::engine::cpu::winograd
