#pragma once

/// Program is a graph compiled for a device: its ops in order, its values, and requests for all its memory,
/// which is not allocated yet. engine/program.h says when each buffer is in use.

#include <memory>
#include <vector>

#include "engine/cuda/ops/factories.h"
#include "engine/program.h"

namespace paceline::engine::cuda {

class Program : public PlannedGraph<Value> {
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

  [[nodiscard]] std::int64_t pinned_bytes() const { return pinned_bytes_; }
  [[nodiscard]] const std::vector<Entry>& ops() const { return ops_; }
  /// The algorithm of every convolution.
  [[nodiscard]] std::vector<ConvChoice> convolutions() const;
  /// The input of the loss; valid until the next forward pass.
  [[nodiscard]] const Value& logits() const { return value(graph_.logits()); }

 private:
  void make_ops(const std::vector<FusedGroup>& groups, Runtime& runtime);

  std::int64_t pinned_bytes_ = 0;
  std::vector<Entry> ops_;
};

}  // namespace paceline::engine::cuda
