#include "engine/cuda/program.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "engine/cuda/conv_problem.h"

namespace paceline::engine::cuda {
namespace {

CompileOptions checked(const CompileOptions& options) {
  check_options(options, "cuda");
  return options;
}

}  // namespace

Program::Program(const graph::Graph& graph, const CompileOptions& options, Runtime& runtime)
    : graph_(graph),
      layout_(graph::flat_layout(graph_)),
      options_(checked(options)),
      values_(graph.nodes.size()) {
  const std::vector<FusedGroup> groups = fuse(graph_);
  lay_out(groups);
  make_ops(groups, runtime);
  memory_.place();
}

int Program::backward_at(int op) const { return engine::backward_at(op, static_cast<int>(d_srcs_.size())); }

void Program::lay_out(const std::vector<FusedGroup>& groups) {
  Lifetimes lives = lifetimes(graph_, groups, options_.training, LossKeeps::probabilities);
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
  choose_statistics(groups);
  choose_masked_sums(groups, lives, terms);
}

/// Fused sums are over the whole batch of one engine, so they are possible only if that is what the batch
/// norm needs.
bool Program::may_fuse_sums() const {
  return options_.training && options_.batch_norm != BatchNormMode::ghost && options_.shard == 0 &&
         (options_.batch_norm == BatchNormMode::local || options_.world_size == 1);
}

bool Program::is_chosen(const ConvProblem& problem) {
  const std::string chosen = algorithm_for(options_, problem);
  fused_.push_back({.problem = problem, .algorithm = chosen.empty() ? kSeparate : chosen});
  return fused_.back().algorithm != kSeparate;
}

/// Lets a convolution compute the sums of the batch norm after it, if the batch norm alone reads its output
/// and there is no bias.
void Program::choose_statistics(const std::vector<FusedGroup>& groups) {
  if (!may_fuse_sums()) return;
  for (const FusedGroup& group : groups) {
    const auto* conv = node(group.node).as<graph::Conv2d>();
    if (conv == nullptr || conv->bias || group.relu) continue;
    int readers = 0;
    bool is_norm = false;
    for (const FusedGroup& reader : groups)
      for (std::size_t input = 0; input < reader.inputs.size(); ++input) {
        if (reader.inputs[input] != group.last) continue;
        ++readers;
        is_norm = input == 0 && node(reader.node).as<graph::BatchNorm>() != nullptr;
      }
    if (readers != 1 || !is_norm) continue;
    ConvProblem problem =
        conv_problem(graph_, node(group.node), options_.batch, options_.precision, ConvDirection::forward);
    problem.has_statistics = true;
    Value& dst = value(group.last);
    if (is_chosen(problem))
      dst.sums = memory_.kept(2 * dst.channels() * static_cast<std::int64_t>(sizeof(float)));
  }
}

/// The first convolution in forward order that reads the output of a batch norm with a ReLU writes the last
/// term of its gradient, and can also compute the first part of the batch norm's backward pass. cuDNN has no
/// such engine for convolutions with a stride.
void Program::choose_masked_sums(const std::vector<FusedGroup>& groups, const Lifetimes& lives,
                                 const std::vector<BufferId>& terms) {
  if (!may_fuse_sums()) return;
  std::vector<int> last;  // by term
  for (const Lifetimes::Term& term : lives.terms) last.push_back(term.life.last);
  const auto last_of = [&](BufferId buffer) -> int& {
    return last[static_cast<std::size_t>(std::ranges::find(terms, buffer) - terms.begin())];
  };
  // In backward order, since an exchange of buffers for one batch norm also affects all before it.
  for (int norm = static_cast<int>(groups.size()) - 1; norm >= 0; --norm) {
    const FusedGroup& group = groups[static_cast<std::size_t>(norm)];
    if (node(group.node).as<graph::BatchNorm>() == nullptr || !group.relu) continue;
    Value& dst = value(group.last);
    if (dst.gradient.empty() || dst.gradient.size() > 2) continue;
    int reader = norm + 1;
    const auto reads = [&](int group_at) {
      const std::vector<int>& inputs = groups[static_cast<std::size_t>(group_at)].inputs;
      return std::ranges::find(inputs, group.last) != inputs.end();
    };
    while (!reads(reader)) ++reader;  // a value with a gradient has a reader
    const FusedGroup& first = groups[static_cast<std::size_t>(reader)];
    const auto* conv = node(first.node).as<graph::Conv2d>();
    const BufferId own = d_srcs_[static_cast<std::size_t>(reader)].front();
    if (conv == nullptr || conv->stride != 1 || first.inputs.front() != group.last || !own ||
        own != dst.gradient.back())
      continue;
    ConvProblem problem = conv_problem(graph_, node(first.node), options_.batch, options_.precision,
                                       ConvDirection::backward_data);
    problem.has_masked_sums = true;
    problem.has_addend = dst.gradient.size() == 2;
    // The masked gradient is also the residual's gradient, but is written to the convolution's term. So the
    // two terms exchange their buffers.
    const std::vector<BufferId>& written = d_srcs_[static_cast<std::size_t>(norm)];
    const BufferId residual = group.sum ? written[1] : BufferId{};
    if (residual && residual != own && written[0] != own) continue;
    if (!is_chosen(problem)) continue;
    if (residual && residual != own) {
      const int until = std::max(last_of(residual), last_of(own));
      for (const BufferId buffer : {residual, own}) {
        memory_.extend(buffer, until);
        last_of(buffer) = until;
      }
      swap_behind(norm, groups, residual, own);
    }
    dst.masked_gradient = own;
    dst.norm_src = value(group.inputs.front()).buffer;
    dst.gradient_sums = memory_.kept(2 * dst.channels() * static_cast<std::int64_t>(sizeof(float)));
  }
}

void Program::swap_behind(int group, const std::vector<FusedGroup>& groups, BufferId one, BufferId other) {
  const auto swap_in = [&](std::vector<BufferId>& buffers) {
    for (BufferId& buffer : buffers)
      if (buffer == one || buffer == other) buffer = buffer == one ? other : one;
  };
  for (int at = 0; at <= group; ++at) {
    swap_in(d_srcs_[static_cast<std::size_t>(at)]);
    if (at < group) swap_in(value(groups[static_cast<std::size_t>(at)].last).gradient);
  }
}

std::vector<ConvChoice> Program::convolutions() const {
  std::vector<ConvChoice> all = fused_;
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
