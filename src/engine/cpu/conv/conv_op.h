#pragma once

/// The interface of a compiled convolution or dense layer, beyond CompiledOp. Passes over all weights, the
/// autotuner and neighbouring batch norms use it.

#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/conv/plan.h"
#include "engine/cpu/conv/weights.h"
#include "engine/cpu/ops/compiled_op.h"

namespace paceline::engine::cpu {

class ConvOp : public CompiledOp {
 public:
  [[nodiscard]] virtual const ConvPlan& plan() const = 0;
  [[nodiscard]] virtual const ConvWeights& weights() const = 0;

  /// From now on this op computes `sums` while it writes rows: of its output if `pass` is forward, of d_src
  /// if it is backward. `moment` is when that pass runs, on the time axis of live buffers
  /// (engine/lifetimes.h). Returns false if it cannot.
  virtual bool fuse_batch_norm_stats(FusedBatchNormStats& sums, Pass pass, int moment,
                                     MemoryRequests& memory) = 0;
  /// Whether its fused ReLU is a separate pass over the stored output.
  [[nodiscard]] virtual bool has_relu_pass() const = 0;
};

}  // namespace paceline::engine::cpu
