#pragma once

/// The arrays of a small model with random contents: what checkpoints hold, without a training.

#include <cstring>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "graph/layout.h"
#include "graph/zoo.h"
#include "train/checkpoint/checkpoint.h"

namespace paceline::train {

/// Convolution, batch norm, dense: of every role a parameter.
inline graph::Graph small_graph(int features = 4) {
  graph::Builder model("small");
  int value = model.conv2d(model.input({3, 6, 6}), "conv1", {.channels = 5, .padding = 1});
  value = model.relu(model.batch_norm(value, "bn1"));
  value = model.dense(model.global_average_pool(value), "fc", {.features = features});
  model.loss(value, 0);
  return model.finish();
}

/// Fills the slots of a flat array; what lies between them stays 0.
inline void fill_slots(const graph::Layout& layout, std::uint64_t seed, std::span<float> flat) {
  for (const auto& slot : layout.slots) {
    base::Rng rng(seed, base::Purpose::test, static_cast<std::uint64_t>(slot.parameter));
    for (std::int64_t i = 0; i < slot.elements; ++i)
      flat[static_cast<std::size_t>(slot.offset + i)] = rng.normal();
  }
}

/// Whether the slots hold the same bits; those of `parameters` alone that are trainable, where asked for.
inline bool same_slots(const graph::Graph& graph, const graph::Layout& layout, std::span<const float> a,
                       std::span<const float> b, bool trainable_only = false) {
  for (const auto& slot : layout.slots) {
    if (trainable_only &&
        !graph::is_trainable(graph.parameters[static_cast<std::size_t>(slot.parameter)].role))
      continue;
    const auto at = static_cast<std::size_t>(slot.offset);
    if (std::memcmp(&a[at], &b[at], static_cast<std::size_t>(slot.elements) * sizeof(float)) != 0)
      return false;
  }
  return true;
}

/// With one array of optimizer state, as SGD with momentum has.
struct SomeArrays {
  graph::Graph graph = small_graph();
  graph::Layout layout = graph::flat_layout(graph);
  std::vector<float> weights = flat(1), momentum = flat(2), slow = flat(3);

  [[nodiscard]] std::vector<float> flat(std::uint64_t seed) const {
    std::vector<float> values(static_cast<std::size_t>(layout.elements));
    fill_slots(layout, seed, values);
    return values;
  }
  [[nodiscard]] TrainingArrays arrays(bool with_slow = false) const {
    TrainingArrays all{
        .graph = &graph, .layout = &layout, .weights = weights, .optimizer_state = {}, .slow_weights = {}};
    all.optimizer_state.emplace_back(momentum);
    if (with_slow) all.slow_weights = slow;
    return all;
  }
};

/// After `update` updates of 6 an epoch; `best`: update and epoch of the best on validation, 0: none.
inline TrainingState standing_at(std::int64_t update, std::int64_t best = 0) {
  TrainingState standing;
  standing.counters = {.update = update, .epoch = update / 6, .step = update % 6};
  standing.validation.best_update = best;
  standing.validation.best_epoch = best;
  return standing;
}

}  // namespace paceline::train
