#pragma once

/// Computes when each value of a graph, and each term of its gradient, must exist. Every engine that plans
/// its memory before it runs uses it.
///
/// Time axis: of n groups of fused ops, group i runs forward at time i and backward at 2 * n - 1 - i. A value
/// lives from its group to its last reader, forward or backward. A gradient is a sum of terms, one from each
/// reader of the value; a term lives from the reader that writes it to the group that made the value.
/// Elementwise ops compute the gradient of their input in place of their output's.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/fusion.h"
#include "engine/memory_requests.h"

namespace paceline::engine {

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

}  // namespace paceline::engine
