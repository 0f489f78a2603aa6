#pragma once

/// make_op() compiles an op of a graph for a device: it has an overload for each kind of op. A new op is a
/// file in this folder.

#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/ops/compiled_op.h"
#include "engine/program.h"
#include "graph/layout.h"
#include "graph/ops.h"

namespace paceline::engine::cuda {

/// What the program gives to an op that is compiled.
struct BuildContext {
  const graph::Graph& graph;
  const graph::Layout& layout;
  const CompileOptions& options;
  Runtime& runtime;
  MemoryRequests& memory;
  std::int64_t& pinned_bytes;  ///< the most that any op needs at ExecContext::pinned
  int node = 0;                ///< the op that gives the group its name and parameters
  int forward_at = 0;          ///< when it runs, on the time axis of engine/program.h
  int backward_at = 0;

  [[nodiscard]] const graph::Node& op() const { return graph.nodes[static_cast<std::size_t>(node)]; }
  /// Offset of the op's parameter number `index` in the flat arrays; -1 if it has fewer.
  [[nodiscard]] std::int64_t parameter(std::size_t index) const {
    const graph::Slot* const slot = graph::slot_of(graph, layout, node, index);
    return slot != nullptr ? slot->offset : -1;
  }
  /// Whether gradients of the op's parameters are computed.
  [[nodiscard]] bool learns() const { return options.training && graph::learns(graph, node); }
  /// Parts of the batch whose sums are added in a tree (shard_sum.h).
  [[nodiscard]] int shards() const { return options.shard > 0 ? options.batch / options.shard : 1; }
};

/// The group of ops that is compiled, and its values. The values outlive the compiled op; this struct and
/// `build` end when make_op() returns.
struct OpArguments {
  const BuildContext& build;
  const FusedGroup& group;
  std::vector<const Value*> src;  ///< the group's inputs
  const Value& dst;               ///< unused for the loss, which has no value
  std::vector<BufferId> d_src;    ///< by input: the gradient term to write; none if it is not needed
};

/// What most ops have. An op of other kernels than this project's overrides describe().
class KernelOp : public CompiledOp {
 public:
  explicit KernelOp(const OpArguments& a)
      : name_(a.build.op().name),
        fused_(std::string(a.group.sum ? " + sum" : "") + (a.group.relu ? " + relu" : "")),
        src_(*a.src[0]),
        dst_(a.dst),
        d_src_(a.d_src[0]) {}
  void describe(std::vector<KernelChoice>& choices) const override {
    choices.push_back(own_kernel(name_ + fused_));
  }

 protected:
  const std::string name_, fused_;  ///< fused_: what the op computes too, " + sum + relu"
  const Value& src_;                ///< the first input
  const Value& dst_;
  const BufferId d_src_;  ///< none: the gradient of src_ is not needed
};

/// One for each op. If the group has a residual sum or a ReLU, the compiled op computes it too.
#define PACELINE_DECLARE(Op, name) \
  std::unique_ptr<CompiledOp> make_op(const graph::Op& op, const OpArguments& arguments);
PACELINE_OPS(PACELINE_DECLARE)
#undef PACELINE_DECLARE

}  // namespace paceline::engine::cuda
