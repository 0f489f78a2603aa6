#pragma once

/// The buffers of an engine: requested while the graph is compiled, placed once, then looked up.
///
/// There are two kinds of buffers. `live` buffers exist from one moment of a training step to another and
/// share an arena. `kept` buffers exist as long as the engine. In addition one `scratch` area serves one op
/// at a time.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "graph/graph.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "graph/plan.h"

namespace paceline::engine {

// Decides which ops of a graph are fused into one compiled op.
//
// A batch norm is fused with the residual sum and the ReLU after it; a convolution, dense layer or sum is
// fused with the ReLU after it. An op is fused only if nothing else reads the value between.

struct FusedGroup {
  int node = 0;  ///< the first op: it gives the group its kind, name and parameters
  int last = 0;  ///< the op whose output the group produces; it determines the group's place in the order
  std::vector<int> inputs;  ///< nodes whose values the group reads: src, then the residual
  bool sum = false;         ///< a batch norm with a residual sum
  bool relu = false;
};

/// The groups in order of execution. Every node is in exactly one group.
[[nodiscard]] std::vector<FusedGroup> fuse(const graph::Graph& graph);

struct BufferId {
  enum class Kind { none, live, kept } kind = Kind::none;
  int index = -1;
  explicit operator bool() const { return kind != Kind::none; }
  bool operator==(const BufferId&) const = default;
};

class MemoryRequests {
 public:
  /// Requests a buffer from moment `first_use` to `last_use` (see Lifetimes).
  BufferId live(std::int64_t bytes, int first_use, int last_use);
  /// Requests a buffer for the life of the engine.
  BufferId kept(std::int64_t bytes);
  /// Requests that the scratch area has at least `bytes`.
  void scratch(std::int64_t bytes);

  /// Decides the offset of every buffer. No requests are allowed afterwards.
  void place();

  [[nodiscard]] std::int64_t arena_bytes() const { return placement_.bytes; }
  [[nodiscard]] std::int64_t kept_bytes() const { return kept_bytes_; }
  [[nodiscard]] std::int64_t scratch_bytes() const { return scratch_bytes_; }
  [[nodiscard]] std::int64_t offset(BufferId buffer) const;

 private:
  std::vector<graph::BufferRequest> requests_;
  graph::Placement placement_;
  std::vector<std::int64_t> kept_offsets_;
  std::int64_t kept_bytes_ = 0;
  std::int64_t scratch_bytes_ = 0;
};

/// The addresses of the areas, once they are allocated.
struct Arena {
  const MemoryRequests* requests = nullptr;
  std::byte* arena = nullptr;
  std::byte* kept = nullptr;
  std::byte* scratch = nullptr;

  /// The address of the buffer; null for no buffer.
  template <typename T = std::byte>
  [[nodiscard]] T* at(BufferId buffer) const {
    if (!buffer) return nullptr;
    std::byte* area = buffer.kind == BufferId::Kind::live ? arena : kept;
    return reinterpret_cast<T*>(area + requests->offset(buffer));
  }
};

/// `bytes` rounded up to whole cache lines.
[[nodiscard]] constexpr std::int64_t whole_lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Computes when each value of a graph, and each term of its gradient, must exist. Every engine that plans
// its memory before it runs uses it.
//
// Time axis: of n groups of fused ops, group i runs forward at time i and backward at 2 * n - 1 - i. A value
// lives from its group to its last reader, forward or backward. A gradient is a sum of terms, one from each
// reader of the value; a term lives from the reader that writes it to the group that made the value.
// Elementwise ops compute the gradient of their input in place of their output's.

/// The time at which group `group` of `groups` runs backward.
[[nodiscard]] constexpr int backward_at(int group, int groups) { return 2 * groups - 1 - group; }

struct Lifetime {
  int first = 0, last = 0;  ///< on the time axis
};

/// What the backward pass of the loss reads. Engines differ in it.
enum class LossKeeps {
  probabilities,  ///< its output
  logits,         ///< its input, from which it computes the probabilities again
};

/// Whether the group's backward pass reads its input.
[[nodiscard]] bool backward_reads_src(const graph::Graph& graph, const FusedGroup& group, std::size_t input,
                                      LossKeeps loss);
/// Whether the group's backward pass reads its output: because its op needs it, or for the mask of its ReLU.
[[nodiscard]] bool backward_reads_dst(const graph::Graph& graph, const FusedGroup& group, LossKeeps loss);

struct Lifetimes {
  /// A buffer for a gradient, with the shape of a node's value. With ops in place, several values of the same
  /// shape use it one after the other.
  struct Term {
    int node = 0;
    Lifetime life;
  };
  std::vector<int> group_of;                    ///< by node: the group that outputs it, else -1
  std::vector<std::optional<Lifetime>> values;  ///< by node: set for outputs of groups, except the loss
  std::vector<Term> terms;                      ///< empty without training
  /// By group and input: the index of the term that the group writes; -1 if that input needs no gradient.
  std::vector<std::vector<int>> d_src;
  /// By node: the terms of its gradient, one for each use of the value, the first use in backward order
  /// first. Empty if no gradient is needed.
  std::vector<std::vector<int>> gradient;
};

/// `buffers[term]` for each of `terms`; no buffer for -1.
[[nodiscard]] std::vector<BufferId> buffers_of(std::span<const int> terms, std::span<const BufferId> buffers);

/// `groups` as fuse() returns them.
[[nodiscard]] Lifetimes lifetimes(const graph::Graph& graph, std::span<const FusedGroup> groups,
                                  bool training, LossKeeps loss);

// What the engines share that compile a graph to ops before they run it.

/// What a program gives to an op that is compiled. Each engine adds members of its own.
struct OpBuild {
  const graph::Graph& graph;
  const graph::Layout& layout;
  const CompileOptions& options;
  MemoryRequests& memory;  ///< where the op requests more memory
  int node = 0;            ///< the op that gives the group its name and parameters
  int forward_at = 0;      ///< when it runs, on the time axis of Lifetimes
  int backward_at = 0;

  [[nodiscard]] const graph::Node& op() const { return graph.nodes[static_cast<std::size_t>(node)]; }
  /// Offset of the op's parameter number `index` in the flat arrays; -1 if it has fewer.
  [[nodiscard]] std::int64_t parameter(std::size_t index) const {
    const graph::Slot* const slot = graph::slot_of(graph, layout, node, index);
    return slot != nullptr ? slot->offset : -1;
  }
  /// Whether gradients of the op's parameters are computed.
  [[nodiscard]] bool learns() const { return options.training && graph::learns(graph, node); }
  /// Parts of the batch whose sums are added in a tree.
  [[nodiscard]] int shards() const { return options.shard > 0 ? options.batch / options.shard : 1; }
};

/// What a compiled batch norm derives from its op and the options, on any engine.
///
/// A frozen one normalises with its running statistics. They do not depend on the batch, as if infinitely
/// many rows shared them: so `count_` says, and the terms of the gradient that come from the statistics are
/// zero.
class BatchNormBase {
 protected:
  BatchNormBase(const OpBuild& build, int pixels)
      : is_frozen_(build.op().as<graph::BatchNorm>()->is_frozen),
        groups_(build.options.batch_norm == BatchNormMode::ghost && !is_frozen_
                    ? build.options.batch / build.options.ghost_size
                    : 1),
        rows_(std::int64_t{1} * (build.options.batch / groups_) * pixels),
        is_shared_(build.options.batch_norm == BatchNormMode::synchronised &&
                   (build.options.world_size > 1 || build.options.shard > 0)),
        shards_(build.shards()),
        count_(is_frozen_ ? std::numeric_limits<double>::infinity()
                          : static_cast<double>(rows_) * (is_shared_ ? build.options.world_size : 1)),
        epsilon_(build.op().as<graph::BatchNorm>()->epsilon),
        weight_at_(build.parameter(0)),
        bias_at_(build.parameter(1)),
        mean_at_(build.parameter(2)),
        var_at_(build.parameter(3)) {}

  const bool is_frozen_;
  const int groups_;
  const std::int64_t rows_;  ///< of one group
  const bool is_shared_;     ///< statistics over all workers, or over shards
  const int shards_;         ///< of this engine's batch; see CompileOptions::shard
  const double count_;       ///< rows that share statistics; infinity if frozen
  const double epsilon_;
  const std::int64_t weight_at_, bias_at_, mean_at_, var_at_;
};

/// The group of ops that is compiled, and its values. The values outlive the compiled op; this struct and
/// `build` end when make_op() returns.
template <typename BuildContext, typename Value>
struct OpArgumentsOf {
  const BuildContext& build;
  const FusedGroup& group;
  std::vector<const Value*> src;  ///< the group's inputs
  const Value& dst;               ///< unused for the loss, which has no value
  std::vector<BufferId> d_src;    ///< by input: the gradient term to write; none if it is not needed
};

/// A graph with its values and requests for their memory: the base of a program. A Value has `shape`,
/// `buffer` and `gradient`.
template <typename Value>
class PlannedGraph {
 public:
  [[nodiscard]] const graph::Graph& graph() const { return graph_; }
  [[nodiscard]] const graph::Layout& layout() const { return layout_; }
  [[nodiscard]] const CompileOptions& options() const { return options_; }
  [[nodiscard]] const MemoryRequests& memory() const { return memory_; }

 protected:
  PlannedGraph(const graph::Graph& graph, const CompileOptions& options)
      : graph_(graph), layout_(graph::flat_layout(graph_)), options_(options), values_(graph.nodes.size()) {}

  [[nodiscard]] int backward_at(int op) const {
    return engine::backward_at(op, static_cast<int>(d_srcs_.size()));
  }
  [[nodiscard]] const graph::Node& node(int index) const {
    return graph_.nodes[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] Value& value(int node) { return values_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] const Value& value(int node) const { return values_[static_cast<std::size_t>(node)]; }

  /// Requests the buffers of all values and gradients: value_bytes(node) for a value, gradient_bytes(node)
  /// for a term of its gradient.
  template <typename ValueBytes, typename GradientBytes>
  void lay_out(std::span<const FusedGroup> groups, LossKeeps loss, const ValueBytes& value_bytes,
               const GradientBytes& gradient_bytes) {
    Lifetimes lives = lifetimes(graph_, groups, options_.training, loss);
    for (const FusedGroup& group : groups) {
      const auto& life = lives.values[static_cast<std::size_t>(group.last)];
      if (!life) continue;
      value(group.last).shape = node(group.last).shape;
      value(group.last).buffer = memory_.live(value_bytes(group.last), life->first, life->last);
    }
    std::vector<BufferId> terms;
    for (const Lifetimes::Term& term : lives.terms)
      terms.push_back(memory_.live(gradient_bytes(term.node), term.life.first, term.life.last));
    for (std::size_t node = 0; node < values_.size(); ++node)
      values_[node].gradient = buffers_of(lives.gradient[node], terms);
    for (const auto& written : lives.d_src) d_srcs_.push_back(buffers_of(written, terms));
    op_of_ = std::move(lives.group_of);
  }

  /// For make_op() of op number `op`.
  [[nodiscard]] OpBuild build_of(const FusedGroup& group, int op) {
    return {.graph = graph_,
            .layout = layout_,
            .options = options_,
            .memory = memory_,
            .node = group.node,
            .forward_at = op,
            .backward_at = backward_at(op)};
  }
  template <typename BuildContext>
  [[nodiscard]] OpArgumentsOf<BuildContext, Value> arguments_of(const BuildContext& build,
                                                                const FusedGroup& group, int op) {
    std::vector<const Value*> src;
    for (const int input : group.inputs) src.push_back(&value(input));
    return {.build = build,
            .group = group,
            .src = std::move(src),
            .dst = value(group.last),
            .d_src = d_srcs_[static_cast<std::size_t>(op)]};
  }

  const graph::Graph graph_;
  const graph::Layout layout_;
  const CompileOptions options_;
  MemoryRequests memory_;
  std::deque<Value> values_;                   ///< by node; only groups' outputs are used
  std::vector<int> op_of_;                     ///< by node: the op that produces its value, else -1
  std::vector<std::vector<BufferId>> d_srcs_;  ///< by op and input
};

}  // namespace paceline::engine
