#pragma once

/// The engine's own kernels: everything that is no convolution and no dense layer.
///
/// A Kernels is a table of functions for one instruction set. All tables are made from one source (body.inc)
/// that computes in blocks of 16 floats in a fixed order, and so give the same bits on every machine.
///
/// Activations are channels-last: an array of rows (one pixel of one sample), `channels` elements each,
/// without gaps. They are stored as float or bf16 (`f32`, `bf16` below) and computed in float; sums over rows
/// are doubles, fed by float sums of short blocks. Any number of channels works; multiples of 16 are fast.
///
/// Nothing here starts threads: the caller splits rows or items and calls from each of its threads. NaN in
/// gives NaN out: no kernel hides it behind a maximum.

#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/isa.h"
#include "engine/cpu/kernels/map_ops.h"
#include "engine/update_rule.h"

namespace paceline::engine::cpu {

/// Where a ReLU between an op and its gradient lets the gradient pass.
enum class Mask {
  none,      ///< there is no ReLU
  from_src,  ///< where the batch norm's result, computed again from its input, is not <= 0
  from_dst,  ///< where the stored output is not <= 0
};

/// One channel's numbers of a batch norm, as arrays [channels]: dst = (src - mean) * scale + bias.
struct NormParams {
  const float* mean = nullptr;
  const float* scale = nullptr;
  const float* bias = nullptr;
};

struct NormForward {
  const void* src = nullptr;
  const void* residual = nullptr;  ///< added after the scaling; may be null
  void* dst = nullptr;
  NormParams params;
  bool relu = false;
};

struct NormBackward {
  const void* src = nullptr;
  const void* dst = nullptr;  ///< Mask::from_dst only
  const void* d_dst = nullptr;
  const void* d_dst2 = nullptr;  ///< a second term of the gradient; may be null
  void* d_masked = nullptr;      ///< reduce: when set, receives (d_dst + d_dst2) under the mask; may be d_dst
  void* d_src = nullptr;         ///< apply only; may be d_dst
  Mask mask = Mask::none;
  NormParams params;
  /// apply only, [channels] each: d_src = params.scale * d + slope * (src - mean) + offset
  const float* slope = nullptr;
  const float* offset = nullptr;
};

/// A batch norm's sums over rows, taken by the convolution that writes the rows: while they are in its
/// registers or its cache, instead of in a pass of their own.
struct Epilogue {
  enum class Sums {
    moments,   ///< of x and x^2, x what the convolution writes
    gradient,  ///< of d and d * (src - mean), as norm_backward_reduce has them
  } what = Sums::moments;
  double* sums = nullptr;  ///< [2 channels], overwritten
  float* shift = nullptr;  ///< [2 channels] of scratch
  /// gradient: from the convolution's first row on. What it computes is the last term: d_dst2, or d_dst
  /// where there is one term alone. d_masked is set, and is the first term.
  NormBackward gradient;
};

/// In the place of the tap that won a window of a max pool.
constexpr int kNoWinner = 255;

/// A window over [height][width][channels], giving [out_height][out_width][channels].
struct PoolShape {
  int channels = 0, height = 0, width = 0;
  int out_height = 0, out_width = 0;
  int kernel = 1, stride = 1, padding = 0;
};

/// Kernels over one storage type.
struct TypedKernels {
  /// sums[c] += sum of (src - shift[c]), sums[channels + c] += sum of its square, over rows.
  void (*moments)(const void* src, std::int64_t rows, int channels, const float* shift, double* sums);
  void (*norm_forward)(const NormForward& args, std::int64_t rows, int channels);
  /// sums[c] += sum of d, sums[channels + c] += sum of d * (src - mean), d the gradient under the mask.
  void (*norm_backward_reduce)(const NormBackward& args, std::int64_t rows, int channels, double* sums);
  void (*norm_backward_apply)(const NormBackward& args, std::int64_t rows, int channels);

  // Elementwise, over `count` elements; results may overwrite an operand.
  /// `kept` is src or dst: what the op's rule saves.
#define PACELINE_MEMBERS(Op, function)                              \
  void (*function)(const void* src, void* dst, std::int64_t count); \
  void (*function##_backward)(const void* kept, const void* d_dst, void* d_src, std::int64_t count);
  PACELINE_MAP_OPS(PACELINE_MEMBERS)
#undef PACELINE_MEMBERS
  void (*add)(const void* left, const void* right, void* dst, bool relu, std::int64_t count);
  /// dst = keep ? src * scale : 0; keep holds one byte an element.
  void (*dropout)(const void* src, const std::uint8_t* keep, float scale, void* dst, std::int64_t count);
  void (*from_float)(const float* src, void* dst, bool relu, std::int64_t count);
  void (*to_float)(const void* src, float* dst, std::int64_t count);

  // Pools. Forward items are output rows (sample * out_height + y), backward items input rows. `winner`, one
  // byte an output element, is the tap (r * kernel + s) that won; null when no backward follows. With
  // `only_positive` a window whose best is zero or less has none, which is a ReLU's mask of d_src.
  void (*max_pool)(const void* src, void* dst, std::uint8_t* winner, bool only_positive,
                   const PoolShape& shape, std::int64_t begin, std::int64_t end);
  void (*max_pool_backward)(const void* d_dst, const std::uint8_t* winner, void* d_src,
                            const PoolShape& shape, std::int64_t begin, std::int64_t end);
  void (*average_pool)(const void* src, void* dst, const PoolShape& shape, std::int64_t begin,
                       std::int64_t end);
  void (*average_pool_backward)(const void* d_dst, void* d_src, const PoolShape& shape, std::int64_t begin,
                                std::int64_t end);
  // Items are samples of `pixels` rows.
  void (*global_pool)(const void* src, void* dst, int pixels, int channels, std::int64_t begin,
                      std::int64_t end);
  void (*global_pool_backward)(const void* d_dst, void* d_src, int pixels, int channels, std::int64_t begin,
                               std::int64_t end);
};

/// The numbers of one update, bias corrections and the like already worked out; see update.cc for the rules.
struct UpdateNumbers {
  float lr = 0, momentum = 0, weight_decay = 0;
  float beta1 = 0, beta2 = 0, epsilon = 0;  ///< beta1 is also rmsprop's alpha and adadelta's rho
  float rest1 = 0, rest2 = 0;               ///< 1 - beta, worked out in double
  float step_size = 0, inverse_root2 = 0;   ///< adam(w): lr / correction 1, 1 / sqrt(correction 2)
  bool nesterov = false;
};

/// One rule over flat arrays: weight, gradient, the slots of its state (null: it has none there), count.
using UpdateKernel = void (*)(const UpdateNumbers& n, float* w, const float* g, float* first, float* second,
                              std::int64_t count);

struct UpdateKernels {
  UpdateKernel rules[kUpdateKinds];  ///< by UpdateKind
  /// Sum of squares in double, order fixed by `count` alone.
  double (*sum_of_squares)(const float* values, std::int64_t count);
};

struct Kernels {
  Isa isa = Isa::baseline;
  TypedKernels f32;
  TypedKernels bf16;
  UpdateKernels update;
  /// dst += src
  void (*accumulate)(const float* src, float* dst, std::int64_t count);
  /// dst = src rounded to bf16, kept as float
  void (*round_to_bf16)(const float* src, float* dst, std::int64_t count);
  /// Philox words for elements [0, count), kept where word >= threshold: one byte each, 1 or 0.
  void (*dropout_mask)(const std::uint32_t counter[3], const std::uint32_t key[2], std::uint32_t threshold,
                       std::uint8_t* keep, std::int64_t count);
  /// [channel][pixel] -> [pixel][channel], bytes.
  void (*channels_last)(const std::uint8_t* planes, int channels, int pixels, std::uint8_t* dst);
};

/// The table for `isa`, which the machine must have.
[[nodiscard]] const Kernels& kernels_for(Isa isa);

}  // namespace paceline::engine::cpu
