#include "engine/cuda/kernels/update_tables.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace paceline::engine::cuda {
namespace {

UpdateNumbers numbers_of(const graph::Parameter& parameter, const UpdateRule& rule, double rule_lr,
                         std::int64_t update) {
  const bool is_weight = parameter.role == graph::Role::weight;
  const bool is_lamb = rule.kind == UpdateKind::lamb;
  const double lr = rule_lr * parameter.rate;
  const double decay = rule.decay_of(is_weight, parameter.rate);
  const double beta1 = rule.smoothing();
  const auto count = static_cast<double>(update);
  return {.lr = static_cast<float>(lr),
          .momentum = static_cast<float>(rule.momentum),
          .weight_decay = static_cast<float>(decay),
          .beta1 = static_cast<float>(beta1),
          .beta2 = static_cast<float>(rule.beta2),
          .rest1 = static_cast<float>(1 - beta1),
          .rest2 = static_cast<float>(1 - rule.beta2),
          .epsilon = static_cast<float>(rule.epsilon),
          .step_size = static_cast<float>((is_lamb ? 1 : lr) / (1 - std::pow(rule.beta1, count))),
          .inverse_root2 = static_cast<float>(1 / std::sqrt(1 - std::pow(rule.beta2, count))),
          .nesterov = rule.nesterov ? 1 : 0,
          .is_lars_weight = is_weight && rule.has_layer_rates() ? 1 : 0,
          .exact_lr = lr,
          .exact_decay = is_lamb ? 0 : decay,
          .trust = is_lamb ? 1 : rule.trust};
}

/// Cuts a parameter that has no packed copy.
void cut_plain(const graph::Slot& slot, int number, std::vector<UpdateTile>& tiles) {
  for (std::int64_t done = 0; done < slot.elements; done += UpdateTile::kMost)
    tiles.push_back(
        {.begin = slot.offset + done,
         .count = static_cast<std::int32_t>(std::min<std::int64_t>(UpdateTile::kMost, slot.elements - done)),
         .slot = number,
         .layer = -1,
         .out = 0,
         .in = 0,
         .ins = 0});
}

/// Cuts a layer's weight: into as many whole rows as fit, or each row into parts of nearly equal size.
void cut_layer(const graph::Slot& slot, int number, int layer, const WeightShape& shape,
               std::vector<UpdateTile>& tiles) {
  const std::int64_t row = std::int64_t{shape.ins} * shape.taps;
  const auto add = [&](int out, int outs, int in, int ins) {
    tiles.push_back({.begin = slot.offset + out * row + std::int64_t{in} * shape.taps,
                     .count = outs * ins * shape.taps,
                     .slot = number,
                     .layer = layer,
                     .out = out,
                     .in = in,
                     .ins = ins});
  };
  if (row <= UpdateTile::kMost) {
    const int rows = static_cast<int>(UpdateTile::kMost / row);
    for (int out = 0; out < shape.outs; out += rows) add(out, std::min(rows, shape.outs - out), 0, shape.ins);
    return;
  }
  const int vectors = (shape.ins + kVector - 1) / kVector, most = UpdateTile::kMost / (kVector * shape.taps);
  const int parts = (vectors + most - 1) / most, ins = (vectors + parts - 1) / parts * kVector;
  for (int out = 0; out < shape.outs; ++out)
    for (int in = 0; in < shape.ins; in += ins) add(out, 1, in, std::min(ins, shape.ins - in));
}

}  // namespace

UpdateTables update_tables(const graph::Graph& graph, const graph::Layout& layout,
                           std::span<const LayerWeight> layers) {
  UpdateTables tables;
  for (int number = 0; number < static_cast<int>(layout.slots.size()); ++number) {
    const graph::Slot& slot = layout.slots[static_cast<std::size_t>(number)];
    const graph::Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    tables.first_lars_chunk.push_back(static_cast<std::int32_t>(tables.lars_chunks.size()));
    if (!graph::is_trainable(parameter.role)) {
      const auto* norm =
          graph.nodes[static_cast<std::size_t>(parameter.node)].template as<graph::BatchNorm>();
      if (!norm->is_frozen)
        tables.running.push_back(
            {.offset = slot.offset, .elements = slot.elements, .momentum = norm->momentum});
      continue;
    }
    if (parameter.is_frozen()) continue;
    tables.elements += slot.elements;
    for (std::int64_t done = 0; done < slot.elements; done += LarsChunk::kMost)
      tables.lars_chunks.push_back(
          {.begin = slot.offset + done,
           .count = static_cast<std::int32_t>(std::min<std::int64_t>(LarsChunk::kMost, slot.elements - done)),
           .slot = number});
    const auto layer = std::ranges::find(layers, slot.offset, &LayerWeight::offset);
    base::expects(layer == layers.end() || layer->shape.elements() == slot.elements,
                  "a packed weight has the parameter's elements");
    if (layer != layers.end() && fits_update_tiles(layer->shape))
      cut_layer(slot, number, static_cast<int>(layer - layers.begin()), layer->shape, tables.tiles);
    else
      cut_plain(slot, number, tables.tiles);
  }
  tables.first_lars_chunk.push_back(static_cast<std::int32_t>(tables.lars_chunks.size()));
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
