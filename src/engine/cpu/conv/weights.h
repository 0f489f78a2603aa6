#pragma once

/// The weights of one convolution or dense layer: where they lie in the flat arrays, in which orders the
/// products read them, and how both are cut for the passes over all weights (weight_passes.h).
///
/// Where every kernel can take tiles of weights apart, a task is some blocks of outputs, of which it does all
/// that is to be done, some input channels at a time, in the cache. Then the kernels' gradient may also stay
/// in its own order until then.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cpu/conv/plan.h"
#include "engine/cpu/ops/factories.h"

namespace paceline::engine::cpu {

class Update;  // optimizer/update.h

/// A share of an op's weights, which is packed on its own.
struct PackTask {
  int slot = 0;          ///< of graph::Layout
  Range weights;         ///< of the flat array: what it reads
  bool is_only = false;  ///< no other task reads these: whoever packs them may update them first
  std::int64_t packed_bytes = 0;
  std::int64_t scratch_bytes = 0;  ///< of update_and_pack()
};

class ConvWeights {
 public:
  /// Asks for the memory of the packed weights, and scratch for the update on each thread. `kernels` outlives
  /// it; `ins`: input channels.
  ConvWeights(const BuildContext& build, const ConvPlan& kernels, int ins);

  /// Of the flat arrays.
  [[nodiscard]] std::int64_t offset() const { return offset_; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }

  [[nodiscard]] void* packed_forward(const ExecContext& exec) const {
    return exec.memory.at(packed_forward_);
  }
  [[nodiscard]] void* packed_backward(const ExecContext& exec) const {
    return exec.memory.at(packed_backward_);
  }

  /// Takes over the flat weights into the products' copies: in so many tasks, each by any thread.
  [[nodiscard]] std::vector<PackTask> pack_tasks() const;
  void pack(const ExecContext& exec, int task) const;
  /// Updates what a task reads that is the only one of its weights, and packs it. Tasks of all ops run at
  /// once: `scratch` is this one's alone.
  void update_and_pack(const ExecContext& exec, const Update& update, int task, float* scratch) const;

  /// The name of the order that gradients may stay in; empty: the weights'.
  [[nodiscard]] const std::string& own_order() const { return own_order_; }
  [[nodiscard]] bool leaves_own_order(const ExecContext& exec) const {
    return exec.own_gradient_order && !own_order_.empty();
  }

 private:
  [[nodiscard]] std::int64_t row_elements() const { return elements_ / outs_; }
  [[nodiscard]] int tasks() const;
  [[nodiscard]] Range outs_of(int task) const { return range_of(outs_, task, tasks(), kWeightTileChannels); }
  /// Input channels at a time.
  [[nodiscard]] std::int64_t ins_at_a_time(std::int64_t outs) const;
  /// Of the longest task: a tile of weights of the gradient; none where that is in the weights' order anyhow.
  [[nodiscard]] std::int64_t scratch_bytes() const;
  [[nodiscard]] PackTask task(Range outs, bool is_only, std::int64_t packed_bytes) const;
  void pack_tile(const ExecContext& exec, const WeightTile& tile, const float* next_weights,
                 const float* next_state) const;
  /// One copy of the weights serves forward and d_src, or there is no d_src.
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
