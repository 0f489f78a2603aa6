#pragma once

/// The inner loops of convolutions with narrow groups (conv/grouped.cc), for AVX-512 and AVX2. Both give the
/// same bits.
///
/// They read rows of one image, padded with zeros, as floats, of a block of its channels. Each vector of
/// channels has a plane of its own, [copy][row][column][lane], so that neighbours in a row are neighbours in
/// memory. In copy j, the lane of channel c holds channel j of c's group. A product of a copy with a vector
/// of weights thus computes all groups of a vector at once, and a group of g channels is g depthwise
/// convolutions.
///
/// Threads  any; kernels start none

#include <cstdint>
#include <vector>

#include "engine/cpu/kernels/isa.h"

namespace paceline::engine::cpu::grouped {

constexpr int kVectorChannels = 16;  ///< blocks are multiples of so many, but for the last
constexpr int kMostGroup = 8;        ///< channels of a group; a power of two
constexpr int kMostKernel = 7;
constexpr int kKernels[] = {3, 5, kMostKernel};

/// A row of an image, from which a block of channels is read into a padded row.
struct SourceRow {
  const void* pixels = nullptr;  ///< the block's first channel of the first pixel; null: a row of zeros
  std::int64_t pixel_step = 0;   ///< elements from pixel to pixel
  int width = 0;                 ///< pixels
  int before = 0, columns = 0;   ///< of the padded row: zeros before the first pixel, and in all; pixels
                                 ///< beyond the last column are not read
  std::int64_t ahead = 0;        ///< bytes to the row that is prefetched meanwhile
  int channels = 0, copies = 1;
  std::int64_t at = 0;    ///< vectors to the padded row
  std::int64_t copy = 0;  ///< vectors from copy to copy; planes lie `copies` times as far apart
};

/// The taps of one row of a kernel, or those of them that a row of outputs has: their inputs are neighbours.
struct TapRow {
  std::int64_t input = 0;   ///< vectors from Outputs::first to the first tap's input of the first output
  std::int64_t weight = 0;  ///< floats from Outputs::weights to the first tap's weights
};

/// Rows of outputs of one block of channels: dst[i] = bias + the sum over taps of weight * input.
struct Outputs {
  const float* rows = nullptr;  ///< the padded rows
  std::int64_t first = 0;       ///< vectors from `rows` to where the tap rows count from
  std::int64_t plane = 0;       ///< vectors from plane to plane
  int step = 1;                 ///< columns from an output's input to the next output's
  std::int64_t row_step = 0;    ///< vectors from a row's inputs to the next row's
  const TapRow* tap_rows = nullptr;
  int tap_row_count = 0;           ///< may be 0: the outputs are then the bias
  int taps = 0;                    ///< of each row of taps
  std::int64_t weight_step = 0;    ///< floats from a tap's weights to the next one's
  const float* weights = nullptr;  ///< of the block's first channel; zero beyond the last channel
  const float* bias = nullptr;     ///< of the block's first channel, with nothing behind the last; or null
  void* dst = nullptr;             ///< of the first output, likewise
  std::int64_t dst_step = 0, dst_row_step = 0;  ///< elements from output to output, from row to row
  int height = 1, width = 0, channels = 0;
};

/// Backward weights of one block of channels over rows of outputs: sums[tap][copy] += the sum over outputs of
/// d_dst * input.
struct Gradient {
  const float* rows = nullptr;            ///< padded rows of the input
  std::int64_t inputs[kMostKernel] = {};  ///< vectors from `rows` to the first input of each row of taps
  std::int64_t row_step = 0;              ///< vectors from a row's inputs to the next row's
  std::int64_t copy = 0;                  ///< vectors, as in SourceRow
  const void* d_dst = nullptr;            ///< the block's first channel of the first output
  std::int64_t d_dst_step = 0, d_dst_row_step = 0;  ///< elements
  int height = 1, width = 0, channels = 0, copies = 1;
  int kernel = 0, stride = 1;
  float* sums = nullptr;       ///< of the block's first channel
  std::int64_t sum_step = 0;   ///< floats from sum to sum
  float* bias_sums = nullptr;  ///< += the sum of d_dst, or null
};

/// The functions for one storage of images.
struct ImageKernels {
  void (*read)(const SourceRow& row, float* to);
  void (*outputs)(const Outputs& args);
  void (*gradient)(const Gradient& args);
};

struct GroupedKernels {
  Isa isa = Isa::baseline;
  ImageKernels f32, bf16;
};

/// The tables that this machine can run, the best one last. Empty without AVX2.
[[nodiscard]] std::vector<const GroupedKernels*> kernels_here();

}  // namespace paceline::engine::cpu::grouped
