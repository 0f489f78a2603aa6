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
struct BuildContext : OpBuild {
  const Tuning& tuning;
};
using OpArguments = OpArgumentsOf<BuildContext, Value>;

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
