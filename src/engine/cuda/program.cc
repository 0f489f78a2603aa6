#include "engine/cuda/program.h"

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
    : PlannedGraph(graph, checked(options, runtime.facts())) {
  const std::vector<FusedGroup> groups = fuse(graph_);
  const auto bytes = [&](int node) {
    return options_.batch * value(node).elements() * bytes_of(options_.precision);
  };
  lay_out(groups, LossKeeps::probabilities, bytes, bytes);
  make_ops(groups, runtime);
  memory_.place();
}

std::vector<ConvChoice> Program::convolutions() const {
  std::vector<ConvChoice> all;
  for (const Entry& entry : ops_) entry.op->list(all);
  return all;
}

void Program::make_ops(const std::vector<FusedGroup>& groups, Runtime& runtime) {
  for (int op = 0; op < static_cast<int>(groups.size()); ++op) {
    const FusedGroup& group = groups[static_cast<std::size_t>(op)];
    const BuildContext build{build_of(group, op), runtime, pinned_bytes_};
    const OpArguments arguments = arguments_of(build, group, op);
    ops_.push_back(
        {.group = group,
         .op = std::visit([&](const auto& kind) { return make_op(kind, arguments); }, build.op().op)});
  }
}

}  // namespace paceline::engine::cuda
