#include "engine/program.h"

#include <algorithm>

#include "graph/ops.h"

namespace paceline::engine {
namespace {

class Fuser {
 public:
  explicit Fuser(const graph::Graph& graph)
      : graph_(graph), readers_(graph.nodes.size()), taken_(graph.nodes.size()) {
    for (int node = 0; node < size(); ++node)
      for (const int input : at(node).inputs) readers_[static_cast<std::size_t>(input)].push_back(node);
  }

  std::vector<FusedGroup> run() {
    std::vector<FusedGroup> groups;
    for (int node = 0; node < size(); ++node)
      if (!taken_[static_cast<std::size_t>(node)]) groups.push_back(group_from(node));
    std::stable_sort(groups.begin(), groups.end(),
                     [](const FusedGroup& a, const FusedGroup& b) { return a.last < b.last; });
    return groups;
  }

 private:
  [[nodiscard]] int size() const { return static_cast<int>(graph_.nodes.size()); }
  [[nodiscard]] const graph::Node& at(int node) const { return graph_.nodes[static_cast<std::size_t>(node)]; }

  /// The only op that reads `node`, if it is an Op that no group has yet; else -1.
  template <typename Op>
  [[nodiscard]] int sole_reader(int node) const {
    const auto& readers = readers_[static_cast<std::size_t>(node)];
    if (readers.size() != 1 || taken_[static_cast<std::size_t>(readers[0])]) return -1;
    return at(readers[0]).as<Op>() != nullptr ? readers[0] : -1;
  }

  void take(FusedGroup& group, int node) {
    taken_[static_cast<std::size_t>(node)] = true;
    group.last = node;
  }

  FusedGroup group_from(int node) {
    FusedGroup group{.node = node, .last = node, .inputs = at(node).inputs};
    take(group, node);
    const bool is_norm = at(node).as<graph::BatchNorm>() != nullptr;
    if (const int sum = is_norm ? sole_reader<graph::Add>(node) : -1; sum >= 0) {
      const auto& sides = at(sum).inputs;
      group.inputs.push_back(sides[0] == node ? sides[1] : sides[0]);
      group.sum = true;
      take(group, sum);
    }
    const bool takes_relu =
        is_norm || at(node).as<graph::Conv2d>() || at(node).as<graph::Dense>() || at(node).as<graph::Add>();
    if (const int relu = takes_relu ? sole_reader<graph::Relu>(group.last) : -1; relu >= 0) {
      group.relu = true;
      take(group, relu);
    }
    return group;
  }

  const graph::Graph& graph_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> taken_;
};

void extend(Lifetime& life, int moment) {
  life.first = std::min(life.first, moment);
  life.last = std::max(life.last, moment);
}

const graph::Node& op_of(const graph::Graph& graph, const FusedGroup& group) {
  return graph.nodes[static_cast<std::size_t>(group.node)];
}

const graph::OpRule& rule_of(const graph::Graph& graph, const FusedGroup& group) {
  return graph::rule_of(op_of(graph, group).op);
}

bool is_loss(const graph::Graph& graph, const FusedGroup& group) {
  return op_of(graph, group).as<graph::SoftmaxCrossEntropy>() != nullptr;
}

class Builder {
 public:
  Builder(const graph::Graph& graph, std::span<const FusedGroup> groups, LossKeeps loss)
      : graph_(graph), groups_(groups), loss_(loss), needs_(graph::needs_gradient(graph)) {
    lives_.group_of.assign(graph.nodes.size(), -1);
    lives_.values.resize(graph.nodes.size());
    lives_.gradient.resize(graph.nodes.size());
    for (std::size_t group = 0; group < groups.size(); ++group) {
      lives_.group_of[static_cast<std::size_t>(groups[group].last)] = static_cast<int>(group);
      lives_.d_src.emplace_back(groups[group].inputs.size(), -1);
    }
  }

  /// A frozen beginning of the network keeps nothing for the backward pass.
  void lay_out_values(bool training) {
    for (int at = 0; at < count(); ++at) {
      const FusedGroup& group = groups_[static_cast<std::size_t>(at)];
      const bool has_backward = training && needs_[static_cast<std::size_t>(group.last)];
      for (std::size_t input = 0; input < group.inputs.size(); ++input) {
        Lifetime& read = *value(group.inputs[input]);
        extend(read, at);
        if (has_backward && backward_reads_src(graph_, group, input, loss_))
          extend(read, backward_at(at, count()));
      }
      if (is_loss(graph_, group)) continue;
      Lifetime& dst = value(group.last).emplace(Lifetime{.first = at, .last = at});
      if (has_backward && backward_reads_dst(graph_, group, loss_)) extend(dst, backward_at(at, count()));
    }
  }

  /// Goes through groups in backward order, so that all gradient terms of a group's output are known when
  /// those of its inputs are assigned.
  void lay_out_gradients() {
    for (int at = count() - 1; at >= 0; --at) {
      const FusedGroup& group = groups_[static_cast<std::size_t>(at)];
      // Terms of the incoming gradient that may be overwritten. A batch norm with a residual first stores its
      // masked gradient in the residual's term and reads it again for d_src, so these two must differ.
      std::vector<int> reusable;
      if (rule_of(graph_, group).in_place) reusable = gradient(group.last);
      for (std::size_t input = group.inputs.size(); input-- > 0;) {
        const int source = group.inputs[input];
        if (!needs_[static_cast<std::size_t>(source)]) continue;
        const int until = backward_at(lives_.group_of[static_cast<std::size_t>(source)], count());
        int term = static_cast<int>(lives_.terms.size());
        if (!reusable.empty()) {
          term = reusable.front();
          reusable.erase(reusable.begin());
          extend(lives_.terms[static_cast<std::size_t>(term)].life, until);
        } else {
          lives_.terms.push_back(
              {.node = source, .life = {.first = backward_at(at, count()), .last = until}});
        }
        lives_.d_src[static_cast<std::size_t>(at)][input] = term;
        gradient(source).push_back(term);
      }
    }
  }

  Lifetimes take() { return std::move(lives_); }

 private:
  [[nodiscard]] int count() const { return static_cast<int>(groups_.size()); }
  [[nodiscard]] std::optional<Lifetime>& value(int node) {
    return lives_.values[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] std::vector<int>& gradient(int node) {
    return lives_.gradient[static_cast<std::size_t>(node)];
  }
  const graph::Graph& graph_;
  const std::span<const FusedGroup> groups_;
  const LossKeeps loss_;
  Lifetimes lives_;
  const std::vector<bool> needs_;  ///< [nodes]: whether a gradient of the output is computed
};

}  // namespace

std::vector<FusedGroup> fuse(const graph::Graph& graph) { return Fuser(graph).run(); }

bool backward_reads_src(const graph::Graph& graph, const FusedGroup& group, std::size_t input,
                        LossKeeps loss) {
  const graph::OpRule& rule = rule_of(graph, group);
  if (group.sum && static_cast<int>(input) >= rule.inputs) return false;  // the residual of a batch norm
  return is_loss(graph, group) ? loss == LossKeeps::logits : rule.saved.src;
}

bool backward_reads_dst(const graph::Graph& graph, const FusedGroup& group, LossKeeps loss) {
  if (is_loss(graph, group)) return loss == LossKeeps::probabilities;
  if (!group.relu) return rule_of(graph, group).saved.dst;
  // A batch norm without residual recomputes the mask from its input.
  return op_of(graph, group).as<graph::BatchNorm>() == nullptr || group.sum;
}

std::vector<BufferId> buffers_of(std::span<const int> terms, std::span<const BufferId> buffers) {
  std::vector<BufferId> found;
  for (const int term : terms)
    found.push_back(term < 0 ? BufferId{} : buffers[static_cast<std::size_t>(term)]);
  return found;
}

Lifetimes lifetimes(const graph::Graph& graph, std::span<const FusedGroup> groups, bool training,
                    LossKeeps loss) {
  Builder builder(graph, groups, loss);
  builder.lay_out_values(training);
  if (training) builder.lay_out_gradients();
  return builder.take();
}

BufferId MemoryRequests::live(std::int64_t bytes, int first_use, int last_use) {
  requests_.push_back({.bytes = whole_lines(bytes),
                       .first_use = std::min(first_use, last_use),
                       .last_use = std::max(first_use, last_use)});
  return {.kind = BufferId::Kind::live, .index = static_cast<int>(requests_.size()) - 1};
}

BufferId MemoryRequests::kept(std::int64_t bytes) {
  kept_offsets_.push_back(kept_bytes_);
  kept_bytes_ += whole_lines(bytes);
  return {.kind = BufferId::Kind::kept, .index = static_cast<int>(kept_offsets_.size()) - 1};
}

void MemoryRequests::scratch(std::int64_t bytes) {
  scratch_bytes_ = std::max(scratch_bytes_, whole_lines(bytes));
}

void MemoryRequests::place() { placement_ = graph::place(requests_); }

std::int64_t MemoryRequests::offset(BufferId buffer) const {
  const auto index = static_cast<std::size_t>(buffer.index);
  return buffer.kind == BufferId::Kind::live ? placement_.offsets[index] : kept_offsets_[index];
}

}  // namespace paceline::engine
