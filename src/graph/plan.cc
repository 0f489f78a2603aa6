#include "graph/plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "graph/layout.h"
#include "graph/ops.h"

namespace paceline::graph {

std::int64_t forward_flops(const Graph& graph) {
  std::int64_t products = 0;
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node)
    products += multiply_adds(graph, node);
  return 2 * products;
}

std::int64_t training_flops(const Graph& graph) {
  const std::vector<bool> needs = needs_gradient(graph);
  std::int64_t products = 0;
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node) {
    const auto& inputs = graph.nodes[static_cast<std::size_t>(node)].inputs;
    const bool has_d_src = !inputs.empty() && needs[static_cast<std::size_t>(inputs.front())];
    const int directions = (has_d_src ? 1 : 0) + (learns(graph, node) ? 1 : 0);
    const double cost = rule_of(graph.nodes[static_cast<std::size_t>(node)].op).backward_cost;
    const std::int64_t forward = multiply_adds(graph, node);
    products += forward + std::llround(static_cast<double>(forward) * cost * directions);
  }
  return 2 * products;
}

Traffic training_traffic(const Graph& graph, std::int64_t activation_bytes, int state_arrays) {
  const std::vector<bool> needs = needs_gradient(graph);
  std::int64_t elements = 0;
  for (const Node& node : graph.nodes) {
    if (node.inputs.empty()) continue;  // the image: the op that reads it counts it
    const OpRule& rule = rule_of(node.op);
    const std::int64_t output = node.shape.elements();
    std::int64_t inputs = 0, gradients = 0;
    for (const int input : node.inputs) {
      const std::int64_t size = graph.nodes[static_cast<std::size_t>(input)].shape.elements();
      inputs += size;
      if (needs[static_cast<std::size_t>(input)]) gradients += size;
    }
    elements += inputs + output;  // forward
    elements +=
        (rule.saved.src ? inputs : 0) + (rule.saved.dst ? output : 0) + output + gradients;  // backward
  }
  constexpr std::int64_t kBytes = sizeof(float);
  // The weight is read in forward and backward; its gradient is written, then read by the update, which reads
  // and writes weight and state.
  const std::int64_t passes = 2 + 2 + 2 + 2 * state_arrays;
  return {.bytes_a_sample = activation_bytes * elements,
          .bytes_a_step = kBytes * passes * flat_layout(graph).elements};
}

namespace {

constexpr std::int64_t kAlignment = 64;
std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool live_together(const BufferRequest& a, const BufferRequest& b) {
  return a.first_use <= b.last_use && b.first_use <= a.last_use;
}

/// Largest first; with equal sizes the longer lived, then the earlier. So there are no ties, and the result
/// does not depend on the sorting algorithm.
std::vector<std::size_t> placement_order(const std::vector<BufferRequest>& requests) {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    const auto& [bytes, first_use, last_use] = requests[i];
    return std::tuple(-bytes, first_use - last_use, first_use);
  });
  return order;
}

}  // namespace

Placement place(const std::vector<BufferRequest>& requests) {
  struct PlacedBuffer {
    std::int64_t begin, end;
    std::size_t request;
  };
  Placement placement;
  placement.offsets.assign(requests.size(), 0);
  std::vector<PlacedBuffer> placed;  // sorted by begin
  for (const std::size_t index : placement_order(requests)) {
    const BufferRequest& request = requests[index];
    base::expects(request.bytes >= 0 && request.first_use <= request.last_use,
                  "a buffer has a size and is first used before it is last used");
    const std::int64_t bytes = aligned(request.bytes);
    if (bytes == 0) continue;
    std::int64_t offset = 0;
    for (const PlacedBuffer& other : placed) {
      if (!live_together(request, requests[other.request])) continue;
      if (other.begin >= offset + bytes) break;  // the gap in front of it is wide enough
      offset = std::max(offset, other.end);
    }
    placement.offsets[index] = offset;
    placement.bytes = std::max(placement.bytes, offset + bytes);
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &PlacedBuffer::begin),
                  {offset, offset + bytes, index});
  }
  return placement;
}

std::int64_t peak_bytes(const std::vector<BufferRequest>& requests) {
  // By time; at equal times, buffers that begin are added before those that end are removed.
  std::map<std::int64_t, std::int64_t> change;
  for (const BufferRequest& request : requests) {
    change[request.first_use] += request.bytes;
    change[std::int64_t{request.last_use} + 1] -= request.bytes;
  }
  std::int64_t alive = 0, peak = 0;
  for (const auto& [time, bytes] : change) {
    alive += bytes;
    peak = std::max(peak, alive);
  }
  return peak;
}

std::int64_t MemoryPlan::total_bytes() const { return total_bytes(Place::host) + total_bytes(Place::device); }

std::int64_t MemoryPlan::total_bytes(Place place) const {
  std::int64_t bytes = 0;
  for (const Line& line : lines)
    if (line.place == place) bytes += line.bytes;
  return bytes;
}

}  // namespace paceline::graph
