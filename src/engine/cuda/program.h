#pragma once

/// A graph compiled for a device: its ops in order, its values, and all its memory, asked for but not there.
/// When each buffer is in use: engine/lifetimes.h.

#include <deque>
#include <memory>
#include <vector>

#include "engine/cuda/ops/factories.h"
#include "engine/fusion.h"
#include "engine/lifetimes.h"

namespace paceline::engine::cuda {

class Program {
 public:
  /// Convolutions are made by `runtime`, which must outlive the program; it allocates nothing.
  ///
  /// Errors   Error(usage) for impossible options; those of Runtime::make_convolution
  Program(const graph::Graph& graph, const CompileOptions& options, Runtime& runtime);

  struct Entry {
    FusedGroup group;
    std::unique_ptr<CompiledOp> op;
  };

  [[nodiscard]] const graph::Graph& graph() const { return graph_; }
  [[nodiscard]] const graph::Layout& layout() const { return layout_; }
  [[nodiscard]] const CompileOptions& options() const { return options_; }
  [[nodiscard]] const MemoryRequests& memory() const { return memory_; }
  [[nodiscard]] std::int64_t pinned_bytes() const { return pinned_bytes_; }
  [[nodiscard]] const std::vector<Entry>& ops() const { return ops_; }
  /// All convolutions as they were made, and the choice for each that could compute more.
  [[nodiscard]] std::vector<ConvChoice> convolutions() const;
  /// What the loss reads; intact until the next forward.
  [[nodiscard]] const Value& logits() const { return values_[static_cast<std::size_t>(graph_.logits())]; }

 private:
  [[nodiscard]] int backward_at(int op) const;
  [[nodiscard]] const graph::Node& node(int index) const {
    return graph_.nodes[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] Value& value(int node) { return values_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] std::int64_t bytes(const Value& value) const {
    return options_.batch * value.elements() * bytes_of(options_.precision);
  }
  void lay_out(const std::vector<FusedGroup>& groups);
  /// Whether convolutions may compute sums for the batch norms beside them.
  [[nodiscard]] bool may_fuse_sums() const;
  /// Puts the choice for a fused convolution on the list; whether it is to be made.
  bool is_chosen(const ConvProblem& problem);
  void choose_statistics(const std::vector<FusedGroup>& groups);
  void choose_masked_sums(const std::vector<FusedGroup>& groups, const Lifetimes& lives,
                          const std::vector<BufferId>& terms);
  /// The two buffers of gradients change places in all that runs backward behind group `group`.
  void swap_behind(int group, const std::vector<FusedGroup>& groups, BufferId one, BufferId other);
  void make_ops(const std::vector<FusedGroup>& groups, Runtime& runtime);

  const graph::Graph graph_;
  const graph::Layout layout_;
  const CompileOptions options_;
  MemoryRequests memory_;
  std::int64_t pinned_bytes_ = 0;
  std::deque<Value> values_;                   ///< by node; only groups' outputs are used
  std::vector<std::vector<BufferId>> d_srcs_;  ///< by op and input
  std::vector<ConvChoice> fused_;              ///< of convolutions that could compute more
  std::vector<Entry> ops_;
};

}  // namespace paceline::engine::cuda
