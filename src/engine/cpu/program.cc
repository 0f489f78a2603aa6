#include "engine/cpu/program.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/buffer.h"
#include "base/error.h"
#include "engine/cpu/conv/plan.h"

namespace paceline::engine::cpu {
namespace {

constexpr LossKeeps kLossKeeps = LossKeeps::logits;

CompileOptions checked(const CompileOptions& options) {
  check_options(options, "cpu");
  if (options.threads < 1)
    base::fail(base::ErrorKind::usage,
               "engine cpu: it needs at least 1 thread, but may use {}; raise --threads", options.threads);
  return options;
}

/// Fills in, for this machine, what the caller left open.
Tuning settled(Tuning tuning) {
  const std::vector<Isa>& isas = isas_here();
  if (!tuning.isa) tuning.isa = isas.back();
  base::expects(std::find(isas.begin(), isas.end(), *tuning.isa) != isas.end(),
                "the machine has the instruction set that is asked for");
  return tuning;
}

}  // namespace

Program::Program(const graph::Graph& graph, const CompileOptions& options, const Tuning& tuning)
    : PlannedGraph(graph, checked(options)),
      tuning_(settled(tuning)),
      storage_(options.precision == Precision::bf16 ? Storage::bf16 : Storage::f32) {
  const std::vector<FusedGroup> groups = fuse(graph_);
  for (const FusedGroup& group : groups) {
    value(group.last).storage = storage_of(group);
    value(group.last).gradient_storage = storage_;
  }
  lay_out(
      groups, kLossKeeps, [&](int node) { return stored(node); }, [&](int node) { return gradient(node); });
  make_ops(groups);
  if (options_.training && tuning_.fuses_batch_norm_stats) fuse_batch_norm_stats();
  if (options_.training) share_masks();
  memory_.place();
}

/// Logits are kept in float: the loss is computed from them in double, and they are few.
Storage Program::storage_of(const FusedGroup& group) const {
  return group.last == graph_.logits() && !group.relu && node(group.node).as<graph::Dense>() ? Storage::f32
                                                                                             : storage_;
}

void Program::make_ops(const std::vector<FusedGroup>& groups) {
  for (int op = 0; op < static_cast<int>(groups.size()); ++op) {
    const FusedGroup& group = groups[static_cast<std::size_t>(op)];
    const BuildContext build{build_of(group, op), tuning_};
    const OpArguments arguments = arguments_of(build, group, op);
    auto made = std::visit([&](const auto& kind) { return make_op(kind, arguments); }, build.op().op);
    Entry entry{.group = group, .op = std::move(made)};
    entry.conv = dynamic_cast<ConvOp*>(entry.op.get());
    entry.norm = dynamic_cast<FusedBatchNormStats*>(entry.op.get());
    ops_.push_back(std::move(entry));
  }
}

/// The op that writes this term of the gradient of `node`'s value.
int Program::writer_of(BufferId term, int node) const {
  for (std::size_t op = 0; op < ops_.size(); ++op) {
    const auto& inputs = ops_[op].group.inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input)
      if (inputs[input] == node && d_srcs_[op][input] == term) return static_cast<int>(op);
  }
  return -1;
}

/// Lets the convolutions around each batch norm take its sums, if they can.
void Program::fuse_batch_norm_stats() {
  const auto taken_by = [&](int op, FusedBatchNormStats& sums, Pass pass) {
    if (op < 0) return -1;
    const int moment = pass == Pass::forward ? op : backward_at(op);
    ConvOp* conv = ops_[static_cast<std::size_t>(op)].conv;
    return conv != nullptr && conv->fuse_batch_norm_stats(sums, pass, moment, memory_) ? op : -1;
  };
  for (Entry& entry : ops_) {
    if (entry.norm == nullptr) continue;
    entry.moments_fused_into =
        taken_by(op_of_[static_cast<std::size_t>(entry.group.inputs[0])], *entry.norm, Pass::forward);
    const auto& terms = value(entry.group.last).gradient;
    if (!terms.empty())
      entry.gradient_sums_fused_into =
          taken_by(writer_of(terms.back(), entry.group.last), *entry.norm, Pass::backward);
  }
}

/// Lets the op after each convolution with a ReLU mask the gradient that it writes, if it is the only such
/// op.
void Program::share_masks() {
  for (Entry& entry : ops_) {
    Value& dst = value(entry.group.last);
    if (!entry.group.relu || entry.conv == nullptr || dst.gradient.size() != 1) continue;
    const int writer = writer_of(dst.gradient.front(), entry.group.last);
    if (writer < 0 || ops_[static_cast<std::size_t>(writer)].op->masking() == Masking::none) continue;
    dst.gradient_comes_masked = true;
    entry.mask_by = writer;
  }
}

/// Bytes of the values that an op reads to mask the gradients that it writes.
std::int64_t Program::masks_read(int op) const {
  std::int64_t bytes = 0;
  if (ops_[static_cast<std::size_t>(op)].op->masking() != Masking::by_value) return bytes;
  for (const Entry& entry : ops_)
    if (entry.mask_by == op) bytes += stored(entry.group.last);
  return bytes;
}

std::int64_t Program::stored(int node) const {
  return options_.batch * value(node).shape.elements() * bytes_of(value(node).storage);
}
/// Of one term.
std::int64_t Program::gradient(int node) const {
  return options_.batch * value(node).shape.elements() * bytes_of(value(node).gradient_storage);
}

OpTraffic Program::conv_traffic(int op) const {
  const Entry& entry = ops_[static_cast<std::size_t>(op)];
  const FusedGroup& group = entry.group;
  const int src = group.inputs[0], dst = group.last;
  OpTraffic traffic{.forward = stored(src) + (entry.conv->has_relu_pass() ? 3 : 1) * stored(dst)};
  if (!options_.training) return traffic;
  const auto& terms = value(dst).gradient;
  traffic.d_weight = stored(src) + gradient(dst);
  // Before it: terms summed, the ReLU's mask.
  traffic.d_weight += 3 * (static_cast<std::int64_t>(terms.size()) - 1) * gradient(dst);
  if (group.relu && entry.mask_by < 0) traffic.d_weight += stored(dst) + 2 * gradient(dst);
  if (d_srcs_[static_cast<std::size_t>(op)][0])
    traffic.backward = gradient(dst) + gradient(src) + masks_read(op);
  for (const Entry& norm : ops_) {
    if (norm.gradient_sums_fused_into != op) continue;
    traffic.backward += stored(norm.group.inputs[0]);
    if (norm.group.sum && norm.group.relu) traffic.backward += stored(src);
    if (value(src).gradient.size() > 1) traffic.backward += gradient(src);
  }
  return traffic;
}

OpTraffic Program::norm_traffic(const Entry& entry) const {
  const FusedGroup& group = entry.group;
  const std::int64_t src = stored(group.inputs[0]), d = gradient(group.last);
  OpTraffic traffic{.forward = src + stored(group.last)};
  if (group.sum) traffic.forward += stored(group.inputs[1]);
  if (!options_.training) return traffic;
  if (entry.moments_fused_into < 0) traffic.forward += src;
  traffic.backward = src + d + gradient(group.inputs[0]);
  if (entry.gradient_sums_fused_into >= 0) return traffic;
  const auto terms = static_cast<std::int64_t>(value(group.last).gradient.size());
  traffic.backward += src + terms * d;
  if (group.sum && group.relu) traffic.backward += stored(group.last);
  if (group.sum || terms > 1) traffic.backward += d;  // stored under the mask
  return traffic;
}

OpTraffic Program::traffic(int op) const {
  const Entry& entry = ops_[static_cast<std::size_t>(op)];
  const FusedGroup& group = entry.group;
  if (entry.conv != nullptr) return conv_traffic(op);
  if (entry.norm != nullptr) return norm_traffic(entry);
  OpTraffic traffic;
  for (const int input : group.inputs) traffic.forward += stored(input);
  traffic.forward += stored(group.last);
  if (!options_.training) return traffic;
  const auto& terms = value(group.last).gradient;
  traffic.backward = static_cast<std::int64_t>(terms.size()) * gradient(group.last);
  for (std::size_t input = 0; input < group.inputs.size(); ++input) {
    if (!value(group.inputs[input]).gradient.empty()) traffic.backward += gradient(group.inputs[input]);
    if (backward_reads_src(graph_, group, input, kLossKeeps)) traffic.backward += stored(group.inputs[input]);
  }
  if (backward_reads_dst(graph_, group, kLossKeeps)) traffic.backward += stored(group.last);
  traffic.backward += masks_read(op);
  return traffic;
}

graph::MemoryPlan Program::plan() const {
  const auto resident = [](std::int64_t bytes) {
    return static_cast<std::int64_t>(base::Buffer::resident_bytes(static_cast<std::size_t>(bytes)));
  };
  const std::int64_t flat = resident(layout_.elements * static_cast<std::int64_t>(sizeof(float)));
  graph::MemoryPlan plan;
  plan.lines.push_back({"activations", resident(memory_.arena_bytes())});
  plan.lines.push_back({"weights", flat});
  plan.lines.push_back({"packed weights and statistics", resident(memory_.kept_bytes())});
  if (options_.training) {
    plan.lines.push_back({"gradients", flat});
    plan.lines.push_back({"optimizer state", flat * state_slots(options_.rule)});
  }
  plan.lines.push_back({"workspace", resident(memory_.scratch_bytes())});
  return plan;
}

}  // namespace paceline::engine::cpu
