#pragma once

/// Program is a graph compiled for a device: its ops in order, its values, and requests for all its memory,
/// which is not allocated yet. engine/program.h says when each buffer is in use.

#include <deque>
#include <memory>
#include <vector>

#include "engine/cuda/ops/factories.h"
#include "engine/program.h"

namespace paceline::engine::cuda {

class Program {
 public:
  /// Compiles `graph`, and makes its convolutions with `runtime`. Allocates no device memory.
  ///
  /// Requires  `runtime` outlives the program
  ///
  /// Errors    Error(usage) for impossible options, such as bf16 on a GPU without units for it; those of
  /// Runtime::make_convolution()
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
  /// The algorithm of every convolution.
  [[nodiscard]] std::vector<ConvChoice> convolutions() const;
  /// The input of the loss; valid until the next forward pass.
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
  void make_ops(const std::vector<FusedGroup>& groups, Runtime& runtime);

  const graph::Graph graph_;
  const graph::Layout layout_;
  const CompileOptions options_;
  MemoryRequests memory_;
  std::int64_t pinned_bytes_ = 0;
  std::deque<Value> values_;                   ///< by node; used only for outputs of groups
  std::vector<std::vector<BufferId>> d_srcs_;  ///< by op and input
  std::vector<Entry> ops_;
};

}  // namespace paceline::engine::cuda
