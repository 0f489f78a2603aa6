#include "engine/cpu/program.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/buffer.h"
#include "base/error.h"
#include "engine/cpu/conv/conv_op.h"
#include "graph/ops/rules.h"

namespace paceline::engine::cpu {
namespace {

CompileOptions checked(const CompileOptions& options) {
  using base::ErrorKind;
  if (options.batch < 1)
    base::fail(ErrorKind::usage, "engine cpu: a batch must hold at least 1 sample, but is {}; raise it",
               options.batch);
  if (options.threads < 1)
    base::fail(ErrorKind::usage, "engine cpu: it needs at least 1 thread, but may use {}; raise --threads",
               options.threads);
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

/// Fills in what the caller left open, for this machine.
Tuning settled(Tuning tuning) {
  const std::vector<Isa>& isas = isas_here();
  if (!tuning.isa) tuning.isa = isas.back();
  base::expects(std::find(isas.begin(), isas.end(), *tuning.isa) != isas.end(),
                "the machine has the instruction set that is asked for");
  return tuning;
}

}  // namespace

Program::Program(const graph::Graph& graph, const CompileOptions& options, const Tuning& tuning)
    : graph_(graph),
      layout_(graph::flat_layout(graph_)),
      options_(checked(options)),
      tuning_(settled(tuning)),
      storage_(options.precision == Precision::bf16 ? Storage::bf16 : Storage::f32),
      values_(graph.nodes.size()),
      op_of_(graph.nodes.size(), -1) {
  const std::vector<FusedGroup> groups = fuse(graph_);
  for (std::size_t op = 0; op < groups.size(); ++op)
    op_of_[static_cast<std::size_t>(groups[op].last)] = static_cast<int>(op);
  d_srcs_.resize(groups.size());
  lay_out_values(groups);
  if (options_.training) lay_out_gradients(groups);
  make_ops(groups);
  if (options_.training && tuning_.fuses_batch_norm_stats) fuse_batch_norm_stats();
  if (options_.training) share_masks();
  memory_.place();
}

int Program::backward_at(int op) const { return 2 * static_cast<int>(d_srcs_.size()) - 1 - op; }

/// Logits are kept in float: the loss is computed from them in double, and they are few.
Storage Program::storage_of(const FusedGroup& group) const {
  return group.last == graph_.logits() && !group.relu && node(group.node).as<graph::Dense>() ? Storage::f32
                                                                                             : storage_;
}

/// Whether the op reads this input again in its backward pass.
bool Program::keeps_src(const FusedGroup& group, std::size_t input) const {
  const graph::Node& op = node(group.node);
  const graph::OpRule& rule = graph::rule_of(op.op);
  if (static_cast<int>(input) >= rule.inputs) return false;  // the other side of the sum behind a batch norm
  // The loss computes its probabilities again from the logits, and keeps no output.
  return rule.saved.src || op.as<graph::SoftmaxCrossEntropy>();
}

/// Whether the op reads its own output again: because the op asks for it, or for the mask of its ReLU.
bool Program::keeps_dst(const FusedGroup& group) const {
  const graph::Node& op = node(group.node);
  if (!group.relu) return graph::rule_of(op.op).saved.dst && !op.as<graph::SoftmaxCrossEntropy>();
  return !op.as<graph::BatchNorm>() || group.sum;  // a lone batch norm recomputes it from its input
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
    dst.storage = storage_of(group);
    dst.gradient_storage = storage_;
    dst.buffer = memory_.live(options_.batch * dst.shape.elements() * bytes_of(dst.storage), op, op);
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
        const Value& src = value(source);
        d_src[input] = memory_.live(options_.batch * src.shape.elements() * bytes_of(src.gradient_storage),
                                    backward_at(op), until);
      }
      value(source).gradient.push_back(d_src[input]);
    }
  }
}

void Program::make_ops(const std::vector<FusedGroup>& groups) {
  for (int op = 0; op < static_cast<int>(groups.size()); ++op) {
    const FusedGroup& group = groups[static_cast<std::size_t>(op)];
    auto& d_src = d_srcs_[static_cast<std::size_t>(op)];
    d_src.resize(group.inputs.size());
    const BuildContext build{.graph = graph_,
                             .layout = layout_,
                             .options = options_,
                             .tuning = tuning_,
                             .memory = memory_,
                             .node = group.node,
                             .forward_at = op,
                             .backward_at = backward_at(op)};
    std::vector<const Value*> src;
    for (const int input : group.inputs) src.push_back(&value(input));
    const OpArguments arguments{
        .build = build, .group = group, .src = std::move(src), .dst = value(group.last), .d_src = d_src};
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

/// Lets the convolutions around each batch norm take its sums, where they can.
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

/// Lets the op behind each convolution with a ReLU mask the gradient that it writes, where it is the only
/// one.
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

/// Bytes of the values by which an op masks the gradients that it writes.
std::int64_t Program::masks_read(int op) const {
  std::int64_t bytes = 0;
  if (ops_[static_cast<std::size_t>(op)].op->masking() != Masking::by_value) return bytes;
  for (const Entry& entry : ops_)
    if (entry.mask_by == op) bytes += stored(entry.group.last);
  return bytes;
}

std::int64_t Program::stored(int node) const {
  const Value& value = values_[static_cast<std::size_t>(node)];
  return options_.batch * value.shape.elements() * bytes_of(value.storage);
}
/// Of one term.
std::int64_t Program::gradient(int node) const {
  const Value& value = values_[static_cast<std::size_t>(node)];
  return options_.batch * value.shape.elements() * bytes_of(value.gradient_storage);
}

OpTraffic Program::conv_traffic(int op) const {
  const Entry& entry = ops_[static_cast<std::size_t>(op)];
  const FusedGroup& group = entry.group;
  const int src = group.inputs[0], dst = group.last;
  OpTraffic traffic{.forward = stored(src) + (entry.conv->has_relu_pass() ? 3 : 1) * stored(dst)};
  if (!options_.training) return traffic;
  const auto& terms = values_[static_cast<std::size_t>(dst)].gradient;
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
    if (values_[static_cast<std::size_t>(src)].gradient.size() > 1) traffic.backward += gradient(src);
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
  const auto terms = static_cast<std::int64_t>(values_[static_cast<std::size_t>(group.last)].gradient.size());
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
  const auto& terms = values_[static_cast<std::size_t>(group.last)].gradient;
  traffic.backward = static_cast<std::int64_t>(terms.size()) * gradient(group.last);
  for (std::size_t input = 0; input < group.inputs.size(); ++input) {
    if (!values_[static_cast<std::size_t>(group.inputs[input])].gradient.empty())
      traffic.backward += gradient(group.inputs[input]);
    if (keeps_src(group, input)) traffic.backward += stored(group.inputs[input]);
  }
  if (keeps_dst(group)) traffic.backward += stored(group.last);
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
