#pragma once

/// A ConvPlan holds the kernels of one convolution or dense layer: for each direction it chooses an algorithm
/// and cuts the batch into chunks of samples.
///
/// Kernels usually work on the stored values. They work on float copies, a block of samples at a time, if
/// values are bf16, the machine has no bf16 unit and no algorithm is used that converts bf16 itself.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/batch_split.h"
#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/ops/compiled_op.h"
#include "engine/cpu/ops/factories.h"

namespace paceline::engine::cpu {

class ConvPlan {
 public:
  /// `has_d_src`: whether the input's gradient is needed. Backward weights is computed if the op learns.
  ///
  /// Errors   Error(device) when no algorithm can compute it
  ConvPlan(const BuildContext& build, const Value& src, const Value& dst, bool has_d_src);

  /// Whether kernels work on stored values, not on float copies.
  [[nodiscard]] bool are_direct() const { return direct_; }
  /// Number of samples in a block of float copies.
  [[nodiscard]] int block() const { return block_; }
  [[nodiscard]] const ChunkKernels<WeightReader>& forward() const { return forward_; }
  [[nodiscard]] const std::optional<ChunkKernels<WeightReader>>& backward() const { return backward_; }
  [[nodiscard]] const std::optional<ChunkKernels<WgradKernel>>& gradient() const { return gradient_; }
  /// Number of partial weight gradients, each over a section of the batch; 0 if the op does not learn.
  [[nodiscard]] int partial_gradients() const { return partial_gradients_; }

  /// Appends the problems of its directions, for the autotuner.
  void list(std::vector<ConvProblem>& problems) const;
  /// Appends a row for each direction.
  void describe(std::vector<KernelChoice>& choices) const;
  /// describe() with measured rates. On float copies the rates are those of the op's whole passes, because
  /// conversions are part of the computation.
  void measure(const OpTraffic& traffic, const std::function<void()>& forward_pass,
               const std::function<void()>& backward_pass, std::vector<KernelChoice>& choices) const;

 private:
  [[nodiscard]] ConvProblem problem(Direction direction) const;
  /// Chooses the algorithm of a direction, cuts the batch and makes the kernels of its chunks.
  template <typename Kernel>
  [[nodiscard]] ChunkKernels<Kernel> make_kernels(const BuildContext& build, Direction direction);

  const std::string name_;
  const int batch_;
  const bool direct_;
  const ConvShape shape_;
  const int block_;
  std::array<const ConvAlgorithm*, 3> algorithms_ = {};  ///< by direction
  ChunkKernels<WeightReader> forward_;
  std::optional<ChunkKernels<WeightReader>> backward_;
  std::optional<ChunkKernels<WgradKernel>> gradient_;
  int partial_gradients_ = 0;
};

// The weights of one convolution or dense layer: their place in the flat arrays, their packed copies, and
// the tasks into which the passes over all weights (optimizer/weight_passes.h) divide them.
//
// If every kernel can pack tiles of the weights separately, a task is a range of output channels. The task
// updates and packs them a few input channels at a time, while they are in the cache. The gradient may then
// stay in the kernel's order until the update.

class Update;  // optimizer/update.h

/// A share of an op's weights that is packed separately.
struct PackTask {
  int slot = 0;          ///< in graph::Layout
  Range weights;         ///< what it reads, in the flat array
  bool is_only = false;  ///< no other task reads these weights, so that this one may update them first
  std::int64_t packed_bytes = 0;
  std::int64_t scratch_bytes = 0;  ///< that update_and_pack() needs
};

class ConvWeights {
 public:
  /// Requests memory for the packed weights, and scratch memory for each thread's updates. `kernels` must
  /// outlive this object. `ins`: input channels of a group.
  ConvWeights(const BuildContext& build, const ConvPlan& kernels, int ins);

  /// First element in the flat arrays, and number of elements.
  [[nodiscard]] std::int64_t offset() const { return offset_; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }

  [[nodiscard]] void* packed_forward(const ExecContext& exec) const {
    return exec.memory.at(packed_forward_);
  }
  [[nodiscard]] void* packed_backward(const ExecContext& exec) const {
    return exec.memory.at(packed_backward_);
  }

  /// The tasks that pack the flat weights. Each may run on any thread.
  [[nodiscard]] std::vector<PackTask> pack_tasks() const;
  /// Packs the weights of one task.
  void pack(const ExecContext& exec, int task) const;
  /// Updates, then packs, the weights of one task. `scratch`: memory of this call alone, since tasks of all
  /// ops run at once.
  ///
  /// Requires  PackTask::is_only
  void update_and_pack(const ExecContext& exec, const Update& update, int task, float* scratch) const;

  /// The name of the order in which the gradient may stay; empty if it must be PyTorch's.
  [[nodiscard]] const std::string& own_order() const { return own_order_; }
  /// Whether this pass leaves the gradient in that order.
  [[nodiscard]] bool leaves_own_order(const ExecContext& exec) const {
    return exec.own_gradient_order && !own_order_.empty();
  }

 private:
  [[nodiscard]] std::int64_t row_elements() const { return elements_ / outs_; }
  [[nodiscard]] int tasks() const;
  [[nodiscard]] Range outs_of(int task) const { return range_of(outs_, task, tasks(), kWeightTileChannels); }
  /// How many input channels a task takes at a time.
  [[nodiscard]] std::int64_t ins_at_a_time(std::int64_t outs) const;
  /// Size of the largest tile of the gradient in PyTorch's order; 0 if the whole gradient is in that order.
  [[nodiscard]] std::int64_t scratch_bytes() const;
  [[nodiscard]] PackTask task(Range outs, bool is_only, std::int64_t packed_bytes) const;
  void pack_tile(const ExecContext& exec, const WeightTile& tile, const float* next_weights,
                 const float* next_state) const;
  /// Whether forward and backward data read one packed copy, or there is no backward data.
  [[nodiscard]] bool has_one_copy() const;

  const ConvPlan& kernels_;
  const int slot_;
  const std::int64_t offset_, elements_;
  const std::int64_t outs_, ins_;
  const bool has_tiles_;
  std::string own_order_;
  BufferId packed_forward_, packed_backward_;
};

// The interface of a compiled convolution or dense layer, beyond CompiledOp. Passes over all weights, the
// autotuner and neighbouring batch norms use it.

class ConvOp : public CompiledOp {
 public:
  [[nodiscard]] virtual const ConvPlan& plan() const = 0;
  [[nodiscard]] virtual const ConvWeights& weights() const = 0;

  /// From now on this op computes `sums` while it writes rows: of its output if `pass` is forward, of d_src
  /// if it is backward. `moment` is when that pass runs, on the time axis of live buffers
  /// (engine/program.h). Returns false if it cannot.
  virtual bool fuse_batch_norm_stats(FusedBatchNormStats& sums, Pass pass, int moment,
                                     MemoryRequests& memory) = 0;
  /// Whether its fused ReLU is a separate pass over the stored output.
  [[nodiscard]] virtual bool has_relu_pass() const = 0;
};

}  // namespace paceline::engine::cpu
