#pragma once

/// The project's own kernels for all ops but convolutions and dense layers.
///
/// A `Kernels` is a table of functions for one instruction set. All tables are compiled from one source
/// (body.inc), which computes in blocks of 16 floats in a fixed order, so that all of them give the same
/// bits.
///
/// Activations are channels last: an array of rows (one pixel of one sample) of `channels` elements each,
/// without gaps. They are stored as float or bf16 (`f32`, `bf16` below) and computed in float. Sums over rows
/// are doubles, to which float sums of short blocks are added. Any number of channels works; multiples of 16
/// are fast. NaN in gives NaN out, also from a maximum.
///
/// Threads  kernels start none: the caller divides rows or items among its threads

#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/isa.h"
#include "engine/update_rule.h"
#include "graph/elementwise.h"

namespace paceline::engine::cpu {

/// How backward finds the elements where a ReLU after the op lets the gradient pass.
enum class Mask {
  none,      ///< there is no ReLU
  from_src,  ///< where the batch norm's result, computed again from its input, is above 0 or NaN
  from_dst,  ///< where the stored output is above 0 or NaN
};

/// A batch norm's numbers for each channel, as arrays [channels]: dst = (src - mean) * scale + bias.
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
  const void* d_dst2 = nullptr;  ///< a second term of the gradient, or null
  void* d_masked = nullptr;  ///< reduce only: receives (d_dst + d_dst2) under the mask; may be null or d_dst
  void* d_src = nullptr;     ///< apply only; may be d_dst
  Mask mask = Mask::none;
  NormParams params;
  /// apply only, [channels] each: d_src = params.scale * d + slope * (src - mean) + offset
  const float* slope = nullptr;
  const float* offset = nullptr;
};

/// A batch norm's sums over rows, to be computed by the convolution that writes the rows, while they are in
/// registers or cache (conv/norm_epilogue.h).
struct Epilogue {
  enum class Sums {
    moments,   ///< of x and x^2; x is what the convolution writes
    gradient,  ///< of d and d * (src - mean), like norm_backward_reduce
  } what = Sums::moments;
  double* sums = nullptr;  ///< [2 channels], overwritten
  float* shift = nullptr;  ///< [2 channels], scratch
  /// Sums::gradient only. Arrays begin at the convolution's first row. The convolution's result is the last
  /// term, d_dst2, or d_dst if there is just one. d_masked is not null; it is the first term's array.
  NormBackward gradient;
};

/// A layer norm's rows: each is normalised by itself.
struct LayerNormForward {
  const void* src = nullptr;
  void* dst = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;
  float epsilon = 0;
  float* statistics = nullptr;  ///< output [rows][2]: mean, 1 / deviation, for backward; may be null
};
struct LayerNormBackward {
  const void* src = nullptr;
  const void* d_dst = nullptr;
  void* d_src = nullptr;  ///< may be null or d_dst
  const float* weight = nullptr;
  const float* statistics = nullptr;
};

/// Learned factors of the channels.
struct ScaleBackward {
  const void* src = nullptr;
  const void* d_dst = nullptr;
  void* d_src = nullptr;  ///< may be null or d_dst
  const float* weight = nullptr;
};

/// The `winner` of a max pool's window that has none.
constexpr int kNoWinner = 255;

/// One axis of a pool: from `size` pixels to `positions` windows.
struct PoolAxis {
  int size = 0, positions = 0;
  int kernel = 1, stride = 1, padding = 0;  ///< kernel 0: adaptive windows, see graph::AdaptiveAveragePool
};

/// A pool from [rows.size][columns.size][channels] to [rows.positions][columns.positions][channels].
struct PoolShape {
  int channels = 0;
  PoolAxis rows, columns;
  bool count_padding = true;  ///< an average divides by the window's padding too
};

/// The sizes of an attention's sample.
struct AttentionShape {
  int places = 0, heads = 0;
  int width = 0;  ///< channels of a head
  [[nodiscard]] constexpr std::int64_t channels() const { return std::int64_t{heads} * width; }
  /// A length of packed rows: whole vectors of every instruction set.
  [[nodiscard]] static constexpr std::int64_t padded(std::int64_t length) { return (length + 15) / 16 * 16; }
};

/// Rows of probabilities that exist at a time.
constexpr int kAttentionRows = 48;

struct AttentionForward {
  AttentionShape shape;
  float scale = 1;              ///< of q k^T
  const void* src = nullptr;    ///< [places][3 channels], of one sample
  void* dst = nullptr;          ///< [places][channels]
  float* statistics = nullptr;  ///< [heads][places][2], for the backward pass: the largest scaled product of
                                ///< the row, and 1 / the sum of exponentials; null: not wanted
  /// Floats of scratch memory that a call needs.
  [[nodiscard]] static constexpr std::int64_t scratch(const AttentionShape& s) {
    const std::int64_t places = AttentionShape::padded(s.places), width = AttentionShape::padded(s.width);
    return s.width * places + s.places * width + kAttentionRows * (2 * width + places);
  }
};

struct AttentionBackward {
  AttentionShape shape;
  float scale = 1;
  const void* src = nullptr;
  const float* statistics = nullptr;
  const void* d_dst = nullptr;  ///< [places][channels]
  void* d_src = nullptr;        ///< [places][3 channels]
  [[nodiscard]] static constexpr std::int64_t scratch(const AttentionShape& s) {
    const std::int64_t places = AttentionShape::padded(s.places), width = AttentionShape::padded(s.width);
    return 2 * s.width * places + 3 * s.places * width + kAttentionRows * (3 * width + 2 * places);
  }
};

/// Kernels for one storage type.
struct TypedKernels {
  /// sums[c] += sum of (src - shift[c]), sums[channels + c] += sum of its square, over rows.
  void (*moments)(const void* src, std::int64_t rows, int channels, const float* shift, double* sums);
  void (*norm_forward)(const NormForward& args, std::int64_t rows, int channels);
  /// sums[c] += sum of d, sums[channels + c] += sum of d * (src - mean), d the gradient under the mask.
  void (*norm_backward_reduce)(const NormBackward& args, std::int64_t rows, int channels, double* sums);
  void (*norm_backward_apply)(const NormBackward& args, std::int64_t rows, int channels);

  void (*layer_norm)(const LayerNormForward& args, std::int64_t rows, int channels);
  /// sums[c] += sum of d_dst, sums[channels + c] += sum of d_dst times the normalised value, over rows.
  /// `scratch`: [2 channels]. Null sums: d_src alone.
  void (*layer_norm_backward)(const LayerNormBackward& args, std::int64_t rows, int channels, double* sums,
                              float* scratch);
  /// dst = src * weight of the channel
  void (*scale_channels)(const void* src, const float* weight, void* dst, std::int64_t rows, int channels);
  /// sums[c] += sum of d_dst * src over rows; `sums` has [2 channels].
  void (*scale_channels_backward)(const ScaleBackward& args, std::int64_t rows, int channels, double* sums);

  // Elementwise, over `count` elements. The result may overwrite an operand.
  /// The ops of graph/elementwise.h, defined in elementwise.inc; `kept` is src or dst, whichever the op's
  /// rule saves (graph/ops.h).
#define PACELINE_MEMBERS(Op, function)                              \
  void (*function)(const void* src, void* dst, std::int64_t count); \
  void (*function##_backward)(const void* kept, const void* d_dst, void* d_src, std::int64_t count);
  PACELINE_ELEMENTWISE_OPS(PACELINE_MEMBERS)
#undef PACELINE_MEMBERS
  void (*add)(const void* left, const void* right, void* dst, bool relu, std::int64_t count);
  // Products. Items begin .. end - 1 are `pixels` rows of src that share a row of factors.
  /// dst = src * factor
  void (*scale)(const void* src, const void* factor, void* dst, int pixels, int channels, std::int64_t begin,
                std::int64_t end);
  /// d_factor = the sum of d_dst * src over the item's pixels, in float
  void (*scale_gradient)(const void* src, const void* d_dst, void* d_factor, int pixels, int channels,
                         std::int64_t begin, std::int64_t end);
  /// dst = src * factor, one for all
  void (*times)(const void* src, float factor, void* dst, std::int64_t count);
  /// dst = keep ? src * scale : 0; keep has one byte an element.
  void (*dropout)(const void* src, const std::uint8_t* keep, float scale, void* dst, std::int64_t count);
  void (*from_float)(const float* src, void* dst, bool relu, std::int64_t count);
  void (*to_float)(const void* src, float* dst, std::int64_t count);

  // Pools. Forward items are output rows (sample * out_height + y), backward items input rows. `winner`
  // receives, one byte an output element, the tap (r * columns.kernel + s) of the maximum; null if no
  // backward follows. With `only_positive` a window whose maximum is 0 or less gets kNoWinner: d_src is then
  // masked as by a ReLU on the input.
  void (*max_pool)(const void* src, void* dst, std::uint8_t* winner, bool only_positive,
                   const PoolShape& shape, std::int64_t begin, std::int64_t end);
  void (*max_pool_backward)(const void* d_dst, const std::uint8_t* winner, void* d_src,
                            const PoolShape& shape, std::int64_t begin, std::int64_t end);
  void (*average_pool)(const void* src, void* dst, const PoolShape& shape, std::int64_t begin,
                       std::int64_t end);
  void (*average_pool_backward)(const void* d_dst, void* d_src, const PoolShape& shape, std::int64_t begin,
                                std::int64_t end);
  /// Rows begin .. end - 1 of one head. A row's bits do not depend on the others that are computed with it.
  void (*attention)(const AttentionForward& args, int head, std::int64_t begin, std::int64_t end,
                    float* scratch);
  /// All rows of one head.
  void (*attention_backward)(const AttentionBackward& args, int head, float* scratch);
  /// dst = src + term
  void (*add_floats)(const void* src, const float* term, void* dst, std::int64_t count);
  /// sum[i] = the sum of src[sample * stride + i] over samples, in their order.
  void (*sum_samples)(const void* src, std::int64_t stride, int samples, float* sum, std::int64_t count);
  // Items are samples of `pixels` rows.
  void (*global_pool)(const void* src, void* dst, int pixels, int channels, std::int64_t begin,
                      std::int64_t end);
  void (*global_pool_backward)(const void* d_dst, void* d_src, int pixels, int channels, std::int64_t begin,
                               std::int64_t end);
};

/// The numbers of one update for one parameter, with bias corrections and the like worked out. update.inc has
/// the formulas.
struct UpdateNumbers {
  float lr = 0, momentum = 0, weight_decay = 0;
  float beta1 = 0, beta2 = 0, epsilon = 0;  ///< beta1 is also rmsprop's alpha and adadelta's rho
  float rest1 = 0, rest2 = 0;               ///< 1 - beta1, 1 - beta2, computed in double
  float step_size = 0, inverse_root2 = 0;   ///< adam(w): lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t);
                                            ///< lamb: 1 / (1 - beta1^t)
  bool nesterov = false;
};

/// One rule over `count` elements of flat arrays: weights, gradients, and two arrays of state, null if the
/// rule does not have them.
using UpdateKernel = void (*)(const UpdateNumbers& n, float* w, const float* g, float* first, float* second,
                              std::int64_t count);

struct UpdateKernels {
  UpdateKernel rules[kUpdateKinds];  ///< by UpdateKind
  /// Sum of squares in double. The order of additions depends on `count` alone.
  double (*sum_of_squares)(const float* values, std::int64_t count);
  /// lamb: that of the step that the rule will take, before its rate; changes nothing.
  double (*sum_of_squared_steps)(const UpdateNumbers& n, const float* w, const float* g, const float* first,
                                 const float* second, std::int64_t count);
};

struct Kernels {
  Isa isa = Isa::baseline;
  TypedKernels f32;
  TypedKernels bf16;
  UpdateKernels update;
  /// dst += src
  void (*accumulate)(const float* src, float* dst, std::int64_t count);
  /// dst = src rounded to bf16, stored as float
  void (*round_to_bf16)(const float* src, float* dst, std::int64_t count);
  /// keep[i] = whether Philox word i is at least `threshold` (1 or 0), for i in [0, count). See
  /// engine/dropout_mask.h.
  void (*dropout_mask)(const std::uint32_t counter[3], const std::uint32_t key[2], std::uint32_t threshold,
                       std::uint8_t* keep, std::int64_t count);
  /// Transposes bytes from [channel][pixel] to [pixel][channel].
  void (*channels_last)(const std::uint8_t* planes, int channels, int pixels, std::uint8_t* dst);
};

/// The table for `isa`.
///
/// Requires  the machine has `isa`
[[nodiscard]] const Kernels& kernels_for(Isa isa);

}  // namespace paceline::engine::cpu
