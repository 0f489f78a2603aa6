#include "train/step/slow_weights.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace paceline::train {

double kept_part(const LookaheadOptions& options, std::int64_t updates_done, std::int64_t updates) {
  return options.keep *
         std::pow(static_cast<double>(updates_done) / static_cast<double>(updates), options.power);
}

void SlowWeights::begin(engine::Engine& engine) {
  if (lookahead_.steps == 0 && !has_average()) return;
  const auto weights = engine.weights();
  values_.assign(weights.begin(), weights.end());
  const auto& memory = *engine.weights_array().memory;
  if (!has_average() || memory.is_host()) return;
  if (average_.data == nullptr) average_ = memory.allocate(values_.size());
  changed();
}

void SlowWeights::follow_where_due(std::int64_t updates_done, std::int64_t updates, engine::Engine& engine,
                                   measure::Ledger& ledger) {
  if (!is_due(updates_done, updates)) return;
  const measure::InPhase following(ledger, measure::Phase::update);
  engine.fetch();
  const auto keep = static_cast<float>(kept_part(lookahead_, updates_done, updates));
  const auto weights = engine.weights();
  for (std::size_t i = 0; i < values_.size(); ++i)
    weights[i] = values_[i] = weights[i] + keep * (values_[i] - weights[i]);
  engine.weights_changed();
}

void SlowWeights::average(std::int64_t updates_done, engine::Engine& engine, measure::Ledger& ledger) {
  if (!has_average() || updates_done % ema_.every != 0) return;
  const base::Array weights = engine.weights_array();
  // What a device does between steps it books itself.
  std::optional<measure::InPhase> averaging;
  if (weights.memory->is_host()) averaging.emplace(ledger, measure::Phase::update);
  const base::Array average = average_.data != nullptr ? average_.array() : base::host_array(values_);
  if (updates_done == ema_.every)
    weights.memory->copy(weights, average);
  else
    weights.memory->mix(weights, ema_.decay, average);
}

void SlowWeights::exchange(engine::Engine& engine) {
  engine.fetch();
  fetch();
  std::ranges::swap_ranges(engine.weights(), values_);
  engine.weights_changed();
  changed();
}

void SlowWeights::fetch() {
  if (average_.data != nullptr) average_.memory->read(average_.array(), values_);
}

void SlowWeights::changed() {
  if (average_.data != nullptr) average_.memory->write(values_, average_.array());
}

}  // namespace paceline::train
