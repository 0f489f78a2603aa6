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
struct BuildContext : OpBuild {
  Runtime& runtime;
  std::int64_t& pinned_bytes;  ///< the most that any op needs at ExecContext::pinned
};
using OpArguments = OpArgumentsOf<BuildContext, Value>;

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
