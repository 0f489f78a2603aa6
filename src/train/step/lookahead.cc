#include "train/step/lookahead.h"

#include <cmath>

namespace paceline::train {

double kept_part(const LookaheadOptions& options, std::int64_t updates_done, std::int64_t updates) {
  return options.keep *
         std::pow(static_cast<double>(updates_done) / static_cast<double>(updates), options.power);
}

void Lookahead::begin(std::span<const float> weights) {
  if (options_.steps > 0) slow_.assign(weights.begin(), weights.end());
}

void Lookahead::follow(std::int64_t updates_done, std::int64_t updates, std::span<float> weights) {
  const auto keep = static_cast<float>(kept_part(options_, updates_done, updates));
  for (std::size_t i = 0; i < slow_.size(); ++i)
    weights[i] = slow_[i] = weights[i] + keep * (slow_[i] - weights[i]);
}

void Lookahead::follow_where_due(std::int64_t updates_done, std::int64_t updates, engine::Engine& engine,
                                 measure::Ledger& ledger) {
  if (!is_due(updates_done, updates)) return;
  const measure::InPhase following(ledger, measure::Phase::update);
  engine.fetch();
  follow(updates_done, updates, engine.weights());
  engine.weights_changed();
}

}  // namespace paceline::train
