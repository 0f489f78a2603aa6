#include "engine/cuda/program.h"

#include <utility>
#include <variant>

#include "base/error.h"

namespace paceline::engine::cuda {
namespace {

CompileOptions checked(const CompileOptions& options, const DeviceFacts& device) {
  check_options(options, "cuda");
  const int capability = device.compute_capability;
  const bool is_bf16 = options.precision == Precision::bf16;
  if (is_bf16 ? has_bf16_units(capability) : options.precision == Precision::f32 || has_f16_units(capability))
    return options;
  base::fail(
      base::ErrorKind::usage,
      "--precision {0}: GPU {1} ({2}) has compute capability {3}.{4}, and {0} needs {5} or later; give "
      "--precision {6}",
      is_bf16 ? "bf16" : "fp16", device.index, device.name, capability / 10, capability % 10,
      is_bf16 ? "8.0 (Ampere)" : "7.0 (Volta)",
      is_bf16 && has_f16_units(capability) ? "fp16 or fp32" : "fp32");
}

}  // namespace

Program::Program(const graph::Graph& graph, const CompileOptions& options, Runtime& runtime)
    : graph_(graph),
      layout_(graph::flat_layout(graph_)),
      options_(checked(options, runtime.facts())),
      values_(graph.nodes.size()) {
  const std::vector<FusedGroup> groups = fuse(graph_);
  lay_out(groups);
  make_ops(groups, runtime);
  memory_.place();
}

int Program::backward_at(int op) const { return engine::backward_at(op, static_cast<int>(d_srcs_.size())); }

void Program::lay_out(const std::vector<FusedGroup>& groups) {
  const Lifetimes lives = lifetimes(graph_, groups, options_.training, LossKeeps::probabilities);
  for (const FusedGroup& group : groups) {
    const auto& life = lives.values[static_cast<std::size_t>(group.last)];
    if (!life) continue;
    Value& dst = value(group.last);
    dst.shape = node(group.last).shape;
    dst.buffer = memory_.live(bytes(dst), life->first, life->last);
  }
  std::vector<BufferId> terms;
  for (const Lifetimes::Term& term : lives.terms)
    terms.push_back(memory_.live(bytes(value(term.node)), term.life.first, term.life.last));
  for (std::size_t node = 0; node < values_.size(); ++node)
    values_[node].gradient = buffers_of(lives.gradient[node], terms);
  for (const auto& written : lives.d_src) d_srcs_.push_back(buffers_of(written, terms));
}

std::vector<ConvChoice> Program::convolutions() const {
  std::vector<ConvChoice> all;
  for (const Entry& entry : ops_) entry.op->list(all);
  return all;
}

void Program::make_ops(const std::vector<FusedGroup>& groups, Runtime& runtime) {
  for (int op = 0; op < static_cast<int>(groups.size()); ++op) {
    const FusedGroup& group = groups[static_cast<std::size_t>(op)];
    const auto& d_src = d_srcs_[static_cast<std::size_t>(op)];
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
