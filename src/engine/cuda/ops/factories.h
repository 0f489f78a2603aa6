#pragma once

/// How each op of a graph is compiled for a device: an overload of make_op() for it, and what the program
/// hands that. A new op is a file here and its line at the end of this header. A compiled op asks for more
/// memory while it is made.

#include <memory>
#include <vector>

#include "engine/cuda/ops/compiled_op.h"
#include "engine/fusion.h"
#include "graph/layout.h"

namespace paceline::engine::cuda {

/// What compiling an op needs from the program.
struct BuildContext {
  const graph::Graph& graph;
  const graph::Layout& layout;
  const CompileOptions& options;
  Runtime& runtime;
  MemoryRequests& memory;
  std::int64_t& pinned_bytes;  ///< the most that an op wants at ExecContext::pinned
  int node = 0;                ///< the op that gives the group its name and parameters
  int forward_at = 0;          ///< moments on the time axis of live buffers
  int backward_at = 0;

  [[nodiscard]] const graph::Node& op() const { return graph.nodes[static_cast<std::size_t>(node)]; }
  /// Offset of the op's parameter in the flat arrays; -1 when it has not so many.
  [[nodiscard]] std::int64_t parameter(std::size_t index) const {
    const auto& parameters = op().parameters;
    if (index >= parameters.size()) return -1;
    const int slot = layout.slot_of_parameter[static_cast<std::size_t>(parameters[index])];
    return layout.slots[static_cast<std::size_t>(slot)].offset;
  }
  [[nodiscard]] Precision storage() const { return options.precision; }
};

/// The group of ops that is compiled, and where its values lie. The values outlive the compiled op; this and
/// `build` end with make_op().
struct OpArguments {
  const BuildContext& build;
  const FusedGroup& group;
  std::vector<const Value*> src;  ///< the group's inputs
  const Value& dst;               ///< of the loss, which has no value: unused
  std::vector<BufferId> d_src;    ///< a term of each input's gradient; none: it is not wanted
};

/// One for each op of graph::Attributes; the group's sum and ReLU are the op's to compute.
std::unique_ptr<CompiledOp> make_op(const graph::Input& op, const OpArguments& arguments);
std::unique_ptr<CompiledOp> make_op(const graph::Conv2d& op, const OpArguments& arguments);
std::unique_ptr<CompiledOp> make_op(const graph::Dense& op, const OpArguments& arguments);
std::unique_ptr<CompiledOp> make_op(const graph::BatchNorm& op, const OpArguments& arguments);
std::unique_ptr<CompiledOp> make_op(const graph::Relu& op, const OpArguments& arguments);
std::unique_ptr<CompiledOp> make_op(const graph::Gelu& op, const OpArguments& arguments);
std::unique_ptr<CompiledOp> make_op(const graph::Add& op, const OpArguments& arguments);
std::unique_ptr<CompiledOp> make_op(const graph::Dropout& op, const OpArguments& arguments);
std::unique_ptr<CompiledOp> make_op(const graph::MaxPool& op, const OpArguments& arguments);
std::unique_ptr<CompiledOp> make_op(const graph::AveragePool& op, const OpArguments& arguments);
std::unique_ptr<CompiledOp> make_op(const graph::GlobalAveragePool& op, const OpArguments& arguments);
std::unique_ptr<CompiledOp> make_op(const graph::SoftmaxCrossEntropy& op, const OpArguments& arguments);

}  // namespace paceline::engine::cuda
