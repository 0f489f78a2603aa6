#pragma once

/// A compiled graph: its ops in order, its values, and requests for all its memory, which is not allocated
/// yet. engine/program.h says when each buffer is in use.

#include <memory>
#include <vector>

#include "engine/cpu/ops/factories.h"
#include "engine/program.h"

namespace paceline::engine::cpu {

class ConvOp;               // conv/plan.h
class FusedBatchNormStats;  // conv/norm_epilogue.h

class Program : public PlannedGraph<Value> {
 public:
  /// Errors    Error(usage) for impossible options
  /// Requires  a OneThread exists on the calling thread: oneDNN chooses its kernels for one thread
  Program(const graph::Graph& graph, const CompileOptions& options, const Tuning& tuning);

  struct Entry {
    FusedGroup group;
    std::unique_ptr<CompiledOp> op;
    // Further interfaces of `op`; null if it does not have them.
    ConvOp* conv = nullptr;
    FusedBatchNormStats* norm = nullptr;
    // Batch norms: the ops (convolutions) that compute its sums over rows while they write them; -1: passes
    // of its own.
    int moments_fused_into = -1, gradient_sums_fused_into = -1;
    // Convolutions with a ReLU: the op that applies the ReLU's mask to the gradient; -1: a pass of its own.
    int mask_by = -1;
  };

  [[nodiscard]] const Tuning& tuning() const { return tuning_; }
  [[nodiscard]] std::vector<Entry>& ops() { return ops_; }
  [[nodiscard]] const std::vector<Entry>& ops() const { return ops_; }

  /// Bytes of activations and their gradients that op `op` moves in a step, each tensor once a pass. Takes
  /// into account what is fused, how values are stored, and which op masks gradients or computes sums for
  /// another.
  [[nodiscard]] OpTraffic traffic(int op) const;

  /// The memory that an engine allocates for this program, line by line.
  [[nodiscard]] graph::MemoryPlan plan() const;

 private:
  [[nodiscard]] Storage storage_of(const FusedGroup& group) const;
  void make_ops(const std::vector<FusedGroup>& groups);
  void fuse_batch_norm_stats();
  void share_masks();
  [[nodiscard]] int writer_of(BufferId d_src, int node) const;
  [[nodiscard]] std::int64_t stored(int node) const;
  [[nodiscard]] std::int64_t gradient(int node) const;
  [[nodiscard]] std::int64_t masks_read(int op) const;
  [[nodiscard]] OpTraffic conv_traffic(int op) const;
  [[nodiscard]] OpTraffic norm_traffic(const Entry& entry) const;

  const Tuning tuning_;
  const Storage storage_;
  std::vector<Entry> ops_;
};

}  // namespace paceline::engine::cpu
