#include "engine/cuda/kernels/update_tables.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace paceline::engine::cuda {
namespace {

UpdateNumbers numbers_of(const graph::Parameter& parameter, const UpdateRule& rule, double rule_lr,
                         std::int64_t update) {
  const bool is_weight = parameter.role == graph::Role::weight;
  const bool decays = is_weight || (rule.decay_norm_and_bias && rule.kind != UpdateKind::lars);
  const double lr = rule_lr * parameter.rate;
  const double decay = decays ? rule.weight_decay / parameter.rate : 0;
  const double beta1 = rule.kind == UpdateKind::rmsprop    ? rule.alpha
                       : rule.kind == UpdateKind::adadelta ? rule.rho
                                                           : rule.beta1;
  const auto count = static_cast<double>(update);
  return {.lr = static_cast<float>(lr),
          .momentum = static_cast<float>(rule.momentum),
          .weight_decay = static_cast<float>(decay),
          .beta1 = static_cast<float>(beta1),
          .beta2 = static_cast<float>(rule.beta2),
          .rest1 = static_cast<float>(1 - beta1),
          .rest2 = static_cast<float>(1 - rule.beta2),
          .epsilon = static_cast<float>(rule.epsilon),
          .step_size = static_cast<float>(lr / (1 - std::pow(rule.beta1, count))),
          .inverse_root2 = static_cast<float>(1 / std::sqrt(1 - std::pow(rule.beta2, count))),
          .nesterov = rule.nesterov ? 1 : 0,
          .is_lars_weight = is_weight && rule.kind == UpdateKind::lars ? 1 : 0,
          .exact_lr = lr,
          .exact_decay = decay,
          .trust = rule.trust};
}

}  // namespace

UpdateTables update_tables(const graph::Graph& graph, const graph::Layout& layout) {
  UpdateTables tables;
  for (int number = 0; number < static_cast<int>(layout.slots.size()); ++number) {
    const graph::Slot& slot = layout.slots[static_cast<std::size_t>(number)];
    const graph::Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    tables.first_chunk.push_back(static_cast<std::int32_t>(tables.chunks.size()));
    if (!graph::is_trainable(parameter.role)) {
      const auto* norm =
          graph.nodes[static_cast<std::size_t>(parameter.node)].template as<graph::BatchNorm>();
      tables.running.push_back(
          {.offset = slot.offset, .elements = slot.elements, .momentum = norm->momentum});
    } else if (!parameter.is_frozen()) {
      for (std::int64_t done = 0; done < slot.elements; done += UpdateChunk::kMost)
        tables.chunks.push_back({.begin = slot.offset + done,
                                 .count = static_cast<std::int32_t>(
                                     std::min<std::int64_t>(UpdateChunk::kMost, slot.elements - done)),
                                 .slot = number});
    }
  }
  tables.first_chunk.push_back(static_cast<std::int32_t>(tables.chunks.size()));
  return tables;
}

std::vector<UpdateNumbers> update_numbers(const graph::Graph& graph, const graph::Layout& layout,
                                          const UpdateRule& rule, double lr, std::int64_t update) {
  base::expects(update >= 1, "updates count from 1");
  std::vector<UpdateNumbers> numbers;
  for (const graph::Slot& slot : layout.slots) {
    const graph::Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    const bool learns = graph::is_trainable(parameter.role) && !parameter.is_frozen();
    numbers.push_back(learns ? numbers_of(parameter, rule, lr, update) : UpdateNumbers{});
  }
  return numbers;
}

}  // namespace paceline::engine::cuda
