#include "engine/cuda/program.h"

#include <utility>
#include <variant>

#include "base/error.h"
#include "graph/ops/rules.h"

namespace paceline::engine::cuda {
namespace {

CompileOptions checked(const CompileOptions& options) {
  using base::ErrorKind;
  if (options.batch < 1)
    base::fail(ErrorKind::usage, "engine cuda: a batch must hold at least 1 sample, but is {}; raise it",
               options.batch);
  if (options.batch_norm == BatchNormMode::ghost &&
      (options.ghost_size < 1 || options.batch % options.ghost_size != 0))
    base::fail(ErrorKind::usage,
               "batch norm: the ghost size must divide the engine's batch of {}, but is {}; choose a divisor",
               options.batch, options.ghost_size);
  base::expects(options.shard == 0 || (options.batch_norm == BatchNormMode::synchronised &&
                                       options.shard > 0 && options.batch % options.shard == 0),
                "shards inside an engine are for synchronised batch norm, and divide the batch");
  base::expects(options.batch_norm != BatchNormMode::synchronised || options.world_size == 1 ||
                    options.reduce_statistics != nullptr,
                "synchronised batch norm has a way to reduce its statistics");
  return options;
}

}  // namespace

Program::Program(const graph::Graph& graph, const CompileOptions& options, Runtime& runtime)
    : graph_(graph),
      layout_(graph::flat_layout(graph_)),
      options_(checked(options)),
      values_(graph.nodes.size()),
      op_of_(graph.nodes.size(), -1) {
  const std::vector<FusedGroup> groups = fuse(graph_);
  for (std::size_t op = 0; op < groups.size(); ++op)
    op_of_[static_cast<std::size_t>(groups[op].last)] = static_cast<int>(op);
  d_srcs_.resize(groups.size());
  lay_out_values(groups);
  if (options_.training) lay_out_gradients(groups);
  make_ops(groups, runtime);
  memory_.place();
}

int Program::backward_at(int op) const { return 2 * static_cast<int>(d_srcs_.size()) - 1 - op; }

/// Whether the op reads this input again in its backward pass.
bool Program::keeps_src(const FusedGroup& group, std::size_t input) const {
  const graph::Node& op = node(group.node);
  const graph::OpRule& rule = graph::rule_of(op.op);
  // The other side of the sum behind a batch norm is not read.
  return static_cast<int>(input) < rule.inputs && rule.saved.src;
}

/// Whether the op reads its own output again: because the op asks for it, or for the mask of its ReLU.
bool Program::keeps_dst(const FusedGroup& group) const {
  const graph::Node& op = node(group.node);
  if (!group.relu) return graph::rule_of(op.op).saved.dst;
  return !op.as<graph::BatchNorm>() || group.sum;  // a lone batch norm recomputes the mask from its input
}

void Program::lay_out_values(const std::vector<FusedGroup>& groups) {
  for (int op = 0; op < static_cast<int>(groups.size()); ++op) {
    const FusedGroup& group = groups[static_cast<std::size_t>(op)];
    for (std::size_t input = 0; input < group.inputs.size(); ++input) {
      const BufferId read = value(group.inputs[input]).buffer;
      memory_.extend(read, op);
      if (options_.training && keeps_src(group, input)) memory_.extend(read, backward_at(op));
    }
    if (node(group.node).as<graph::SoftmaxCrossEntropy>()) continue;
    Value& dst = value(group.last);
    dst.shape = node(group.last).shape;
    dst.buffer = memory_.live(bytes(dst), op, op);
    if (options_.training && keeps_dst(group)) memory_.extend(dst.buffer, backward_at(op));
  }
}

/// In backward order, so that an op's own gradient terms are all known when its inputs' are decided.
void Program::lay_out_gradients(const std::vector<FusedGroup>& groups) {
  const std::vector<bool> needs = graph::needs_gradient(graph_);
  for (int op = static_cast<int>(groups.size()) - 1; op >= 0; --op) {
    const FusedGroup& group = groups[static_cast<std::size_t>(op)];
    // Buffers of the incoming gradient that may be written over. A batch norm with a residual stores its
    // masked gradient in the residual's term first and reads it again for d_src: those two must differ.
    std::vector<BufferId> reusable;
    if (graph::rule_of(node(group.node).op).in_place) reusable = value(group.last).gradient;
    auto& d_src = d_srcs_[static_cast<std::size_t>(op)];
    d_src.resize(group.inputs.size());
    for (std::size_t input = group.inputs.size(); input-- > 0;) {
      const int source = group.inputs[input];
      if (!needs[static_cast<std::size_t>(source)]) continue;
      const int until = backward_at(op_of_[static_cast<std::size_t>(source)]);
      if (!reusable.empty()) {
        d_src[input] = reusable.front();
        reusable.erase(reusable.begin());
        memory_.extend(d_src[input], until);
      } else {
        d_src[input] = memory_.live(bytes(value(source)), backward_at(op), until);
      }
      value(source).gradient.push_back(d_src[input]);
    }
  }
}

void Program::make_ops(const std::vector<FusedGroup>& groups, Runtime& runtime) {
  for (int op = 0; op < static_cast<int>(groups.size()); ++op) {
    const FusedGroup& group = groups[static_cast<std::size_t>(op)];
    auto& d_src = d_srcs_[static_cast<std::size_t>(op)];
    d_src.resize(group.inputs.size());
    const BuildContext build{.graph = graph_,
                             .layout = layout_,
                             .options = options_,
                             .runtime = runtime,
                             .memory = memory_,
                             .pinned_bytes = pinned_bytes_,
                             .node = group.node,
                             .forward_at = op,
                             .backward_at = backward_at(op)};
    std::vector<const Value*> src;
    for (const int input : group.inputs) src.push_back(&value(input));
    const OpArguments arguments{
        .build = build, .group = group, .src = std::move(src), .dst = value(group.last), .d_src = d_src};
    ops_.push_back(
        {.group = group,
         .op = std::visit([&](const auto& kind) { return make_op(kind, arguments); }, build.op().op)});
  }
}

}  // namespace paceline::engine::cuda
