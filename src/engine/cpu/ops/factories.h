#pragma once

/// make_op() compiles an op of a graph: it has an overload for each kind of op.

#include <memory>
#include <string>
#include <vector>

#include "engine/cpu/kernels/kernels.h"
#include "engine/cpu/ops/compiled_op.h"
#include "engine/cpu/tuning.h"
#include "engine/program.h"
#include "graph/layout.h"

namespace paceline::engine::cpu {

/// What the program gives to an op that is compiled.
struct BuildContext {
  const graph::Graph& graph;
  const graph::Layout& layout;
  const CompileOptions& options;
  const Tuning& tuning;
  MemoryRequests& memory;  ///< where the op requests more memory
  int node = 0;            ///< the op that gives the group its name and parameters
  int forward_at = 0;      ///< when it runs, on the time axis of engine/program.h
  int backward_at = 0;

  [[nodiscard]] const graph::Node& op() const { return graph.nodes[static_cast<std::size_t>(node)]; }
  /// Offset of the op's parameter number `index` in the flat arrays; -1 if it has fewer.
  [[nodiscard]] std::int64_t parameter(std::size_t index) const {
    const graph::Slot* const slot = graph::slot_of(graph, layout, node, index);
    return slot != nullptr ? slot->offset : -1;
  }
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

/// An op that computes its first input with the project's own kernels.
class OwnKernelOp : public CompiledOp {
 public:
  explicit OwnKernelOp(const OpArguments& a)
      : name_(a.build.op().name), src_(*a.src[0]), dst_(a.dst), d_src_(a.d_src[0]) {}
  void describe(const ExecContext& exec, std::vector<KernelChoice>& choices) const override {
    choices.push_back(own_kernel(exec, name_));
  }

 protected:
  const std::string name_;
  const Value& src_;
  const Value& dst_;
  const BufferId d_src_;
};

/// One for each op. If the group ends with a ReLU, the compiled op computes it too. A batch norm with a
/// residual or several gradient terms stores the masked gradient: in the residual's term if there is one,
/// else in the first term.
#define PACELINE_DECLARE(Op, name) \
  std::unique_ptr<CompiledOp> make_op(const graph::Op& op, const OpArguments& arguments);
PACELINE_OPS(PACELINE_DECLARE)
#undef PACELINE_DECLARE

}  // namespace paceline::engine::cpu
