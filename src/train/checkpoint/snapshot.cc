#include "train/checkpoint/snapshot.h"

#include <algorithm>

namespace paceline::train {

void Snapshot::take(const TrainingArrays& arrays) {
  std::size_t elements = arrays.weights.size() + arrays.slow_weights.size();
  for (const auto& state : arrays.optimizer_state) elements += state.size();
  if (copy_.bytes() != elements * sizeof(float)) copy_ = base::Buffer(elements * sizeof(float));
  auto left = copy_.as<float>();
  const auto copied = [&](std::span<const float> from) -> std::span<const float> {
    const auto to = left.first(from.size());
    std::copy(from.begin(), from.end(), to.begin());
    left = left.subspan(from.size());
    return to;
  };
  arrays_ = {.graph = arrays.graph,
             .layout = arrays.layout,
             .weights = copied(arrays.weights),
             .optimizer_state = {},
             .slow_weights = {}};
  for (const auto& state : arrays.optimizer_state) arrays_.optimizer_state.push_back(copied(state));
  arrays_.slow_weights = copied(arrays.slow_weights);
}

std::int64_t Snapshot::planned_bytes(std::int64_t flat_bytes, const engine::UpdateRule& rule,
                                     bool has_slow_weights) {
  return flat_bytes * (1 + engine::state_slots(rule) + (has_slow_weights ? 1 : 0));
}

}  // namespace paceline::train
