#pragma once

/// What a compiled convolution or dense layer offers beside what every compiled op does: to the passes over
/// all weights, to the autotuner, and to a batch norm beside it.

#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/conv/plan.h"
#include "engine/cpu/conv/weights.h"
#include "engine/cpu/ops/compiled_op.h"

namespace paceline::engine::cpu {

class ConvOp : public CompiledOp {
 public:
  [[nodiscard]] virtual const ConvPlan& plan() const = 0;
  [[nodiscard]] virtual const ConvWeights& weights() const = 0;

  /// Takes these sums from now on in its own pass (`forward`: over what it writes; `backward`: over d_src),
  /// which runs at `moment`; false: it cannot.
  virtual bool fuse_batch_norm_stats(FusedBatchNormStats& sums, Pass pass, int moment,
                                     MemoryRequests& memory) = 0;
  /// Whether the ReLU behind it is a pass of its own.
  [[nodiscard]] virtual bool has_relu_pass() const = 0;
};

}  // namespace paceline::engine::cpu
