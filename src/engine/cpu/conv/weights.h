#pragma once

/// The weights of one convolution or dense layer: their place in the flat arrays, their packed copies, and
/// the tasks into which the passes over all weights (optimizer/weight_passes.h) divide them.
///
/// If every kernel can pack tiles of the weights separately, a task is a range of output channels. The task
/// updates and packs them a few input channels at a time, while they are in the cache. The gradient may then
/// stay in the kernel's order until the update.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cpu/conv/plan.h"
#include "engine/cpu/ops/factories.h"

namespace paceline::engine::cpu {

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
  /// outlive this object. `ins`: input channels.
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

}  // namespace paceline::engine::cpu
