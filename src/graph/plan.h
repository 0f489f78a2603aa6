#pragma once

/// What a model needs, before the first step: memory (which buffers share it, and how much there is in all),
/// floating-point operations, and the bytes that a step moves.

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace paceline::graph {

// Counts the floating-point operations of a model: convolutions, dense layers, attention; a multiply-add
// counts as 2.

/// For training one sample: forward, and the backward passes to data and to weights that are needed.
[[nodiscard]] std::int64_t training_flops(const Graph& graph);
/// For evaluating one sample.
[[nodiscard]] std::int64_t forward_flops(const Graph& graph);

/// Forward, each op reads its inputs and writes its output once. Backward, it reads what was kept and the
/// gradient of its output, and writes the gradient of each input that needs one. A fused op moves less; an op
/// whose arrays do not fit the caches moves more.
struct Traffic {
  std::int64_t bytes_a_sample = 0;  ///< activations and their gradients
  std::int64_t bytes_a_step = 0;    ///< weights twice, their gradients, the update with its state
};

/// `activation_bytes`: 4 or 2 per element. `state_arrays`: the optimizer's, each as large as the weights.
[[nodiscard]] Traffic training_traffic(const Graph& graph, std::int64_t activation_bytes, int state_arrays);

/// A buffer in use from time `first_use` to `last_use`, both inclusive. Usually the forward pass of node i is
/// time i, its backward pass time 2*nodes-1-i.
struct BufferRequest {
  std::int64_t bytes = 0;
  int first_use = 0;
  int last_use = 0;
};

struct Placement {
  std::vector<std::int64_t> offsets;  ///< one per request, each a multiple of 64
  std::int64_t bytes = 0;             ///< of the arena that holds them all
};

/// Places the requests in one arena so that two that are in use at the same time never overlap.
///
/// Cost     O(n^2) for n requests. Largest first, at the lowest offset that fits: within a few per cent of
///          the bound `peak_bytes` on the models of the zoo
[[nodiscard]] Placement place(const std::vector<BufferRequest>& requests);

/// The largest sum of bytes in use at one time: a lower bound for every placement.
[[nodiscard]] std::int64_t peak_bytes(const std::vector<BufferRequest>& requests);

/// What a compiled model needs, by purpose and place. `sweep` compares the sum of each place with the memory
/// that is available there.
struct MemoryPlan {
  enum class Place { host, device };
  struct Line {
    std::string purpose;  ///< "activations", "weights", "gradients", "optimizer state", "workspace", ...
    std::int64_t bytes = 0;
    Place place = Place::host;  ///< device: memory of a device, with its own limit
  };
  std::vector<Line> lines;
  [[nodiscard]] std::int64_t total_bytes() const;
  [[nodiscard]] std::int64_t total_bytes(Place place) const;
};

}  // namespace paceline::graph
