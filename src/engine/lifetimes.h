#pragma once

/// From when to when each value of a graph, and each term of its gradient, must be kept: the same for every
/// engine that plans its memory before it runs.
///
/// Time axis: of n groups of fused ops, group i runs forward at i and backward at 2 * n - 1 - i. A value
/// lives from its group to its last reader, forward or backward; a term of a gradient from the reader that
/// writes it to the group that made the value. An elementwise op turns the gradient that comes in into the
/// one that goes out, in place.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/fusion.h"
#include "engine/memory_requests.h"

namespace paceline::engine {

/// When group `group` of `groups` runs backward.
[[nodiscard]] constexpr int backward_at(int group, int groups) { return 2 * groups - 1 - group; }

struct Lifetime {
  int first = 0, last = 0;  ///< on the time axis
};

/// What the backward pass of the loss reads.
enum class LossKeeps {
  probabilities,  ///< its output
  logits,         ///< its input, from which it computes the probabilities again
};

/// Whether the group reads its input again in its backward pass.
[[nodiscard]] bool backward_reads_src(const graph::Graph& graph, const FusedGroup& group, std::size_t input,
                                      LossKeeps loss);
/// Whether it reads its own output again: because its op asks for it, or for the mask of its ReLU.
[[nodiscard]] bool backward_reads_dst(const graph::Graph& graph, const FusedGroup& group, LossKeeps loss);

struct Lifetimes {
  /// One buffer of gradients, of the shape of a node's value. Where ops work in place, values of the same
  /// shape share it one after the other.
  struct Term {
    int node = 0;
    Lifetime life;
  };
  std::vector<int> group_of;                    ///< by node: the group whose output it is, else -1
  std::vector<std::optional<Lifetime>> values;  ///< by node: of the groups' outputs, but for the loss's
  std::vector<Term> terms;                      ///< none without training
  /// By group and input: the term that it writes; -1: that input needs no gradient.
  std::vector<std::vector<int>> d_src;
  /// By node: its gradient is the sum of these terms, one for each use of the value; the first use in
  /// backward order first. Empty where no gradient is needed.
  std::vector<std::vector<int>> gradient;
};

/// Indices of terms as the buffers that were asked for them; -1 becomes no buffer.
[[nodiscard]] std::vector<BufferId> buffers_of(std::span<const int> terms, std::span<const BufferId> buffers);

[[nodiscard]] Lifetimes lifetimes(const graph::Graph& graph, std::span<const FusedGroup> groups,
                                  bool training, LossKeeps loss);

}  // namespace paceline::engine
