#pragma once

/// The buffers of an engine: requested while the graph is compiled, placed once, then looked up.
///
/// There are two kinds of buffers. `live` buffers exist from one moment of a training step to another and
/// share an arena. `kept` buffers exist as long as the engine. In addition one `scratch` area serves one op
/// at a time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"
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

}  // namespace paceline::engine
