#pragma once

/// Lookahead (Zhang et al. 2019): slow weights follow the trained ones every few updates, and these start
/// again from there. Averages out the last wanderings of a high learning rate.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "measure/ledger.h"
#include "train/options.h"

namespace paceline::train {

/// The part of the slow weights that stays when they follow after `updates_done` of `updates`: `keep` times
/// the progress to the power `power`. 0 is a training without Lookahead.
[[nodiscard]] double kept_part(const LookaheadOptions& options, std::int64_t updates_done,
                               std::int64_t updates);

/// The slow weights of a run, running statistics included. Memory: one array of the weights' size, where
/// options.steps > 0. Elementwise: the same bits for any number of workers, as the weights have.
class Lookahead {
 public:
  explicit Lookahead(const LookaheadOptions& options) : options_(options) {}

  /// The training begins with these weights.
  void begin(std::span<const float> weights);
  /// Whether the slow weights follow after this update: every options.steps updates, and after the last.
  [[nodiscard]] bool is_due(std::int64_t updates_done, std::int64_t updates) const {
    return !slow_.empty() && (updates_done % options_.steps == 0 || updates_done == updates);
  }
  /// Sets both to their mixture. Requires: is_due(). The engine is then to be told.
  void follow(std::int64_t updates_done, std::int64_t updates, std::span<float> weights);

  /// The same for an engine's weights, after an update of which that is not yet known.
  void follow_where_due(std::int64_t updates_done, std::int64_t updates, engine::Engine& engine,
                        measure::Ledger& ledger);

  /// What a checkpoint keeps and brings back; empty without Lookahead.
  [[nodiscard]] std::span<float> slow() { return slow_; }

 private:
  LookaheadOptions options_;
  std::vector<float> slow_;
};

}  // namespace paceline::train
