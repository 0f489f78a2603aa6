#pragma once

/// A compiled graph: its ops in order, its values, and all its memory, asked for but not yet there.
/// When each buffer is in use: engine/lifetimes.h.

#include <deque>
#include <memory>
#include <vector>

#include "engine/cpu/ops/factories.h"
#include "engine/fusion.h"

namespace paceline::engine::cpu {

class ConvOp;               // conv/conv_op.h
class FusedBatchNormStats;  // conv/norm_epilogue.h

class Program {
 public:
  /// Errors   Error(usage) for impossible options
  /// Threads  a OneThread must be in force: oneDNN chooses its kernels for one thread
  Program(const graph::Graph& graph, const CompileOptions& options, const Tuning& tuning);

  struct Entry {
    FusedGroup group;
    std::unique_ptr<CompiledOp> op;
    // What it is as well; null: it is not.
    ConvOp* conv = nullptr;
    FusedBatchNormStats* norm = nullptr;
    // Of a batch norm: the convolutions that take its sums over rows while they write them; -1: its own
    // passes.
    int moments_fused_into = -1, gradient_sums_fused_into = -1;
    // Of a convolution with a ReLU: the op that stores the gradient under the ReLU's mask; -1: a pass of its
    // own.
    int mask_by = -1;
  };

  [[nodiscard]] const graph::Graph& graph() const { return graph_; }
  [[nodiscard]] const graph::Layout& layout() const { return layout_; }
  [[nodiscard]] const CompileOptions& options() const { return options_; }
  [[nodiscard]] const Tuning& tuning() const { return tuning_; }
  [[nodiscard]] const MemoryRequests& memory() const { return memory_; }
  [[nodiscard]] std::vector<Entry>& ops() { return ops_; }
  [[nodiscard]] const std::vector<Entry>& ops() const { return ops_; }

  /// What an op's passes move, a batch: activations and their gradients, each tensor once a pass. Of this
  /// program, not of the graph: by what is fused, how values are stored, and who masks a gradient or takes
  /// sums for whom.
  [[nodiscard]] OpTraffic traffic(int op) const;

  /// What an engine that runs this program allocates, line by line.
  [[nodiscard]] graph::MemoryPlan plan() const;

 private:
  [[nodiscard]] int backward_at(int op) const;
  [[nodiscard]] const graph::Node& node(int index) const {
    return graph_.nodes[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] Value& value(int node) { return values_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] Storage storage_of(const FusedGroup& group) const;
  void lay_out(const std::vector<FusedGroup>& groups);
  void make_ops(const std::vector<FusedGroup>& groups);
  void fuse_batch_norm_stats();
  void share_masks();
  [[nodiscard]] int writer_of(BufferId d_src, int node) const;
  [[nodiscard]] std::int64_t stored(int node) const;
  [[nodiscard]] std::int64_t gradient(int node) const;
  [[nodiscard]] std::int64_t masks_read(int op) const;
  [[nodiscard]] OpTraffic conv_traffic(int op) const;
  [[nodiscard]] OpTraffic norm_traffic(const Entry& entry) const;

  const graph::Graph graph_;
  const graph::Layout layout_;
  const CompileOptions options_;
  const Tuning tuning_;
  const Storage storage_;
  MemoryRequests memory_;
  std::deque<Value> values_;                   ///< by node; only groups' outputs are used
  std::vector<int> op_of_;                     ///< by node: the op that produces its value, else -1
  std::vector<std::vector<BufferId>> d_srcs_;  ///< by op and input
  std::vector<Entry> ops_;
};

}  // namespace paceline::engine::cpu
