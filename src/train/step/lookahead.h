#pragma once

/// Lookahead (Zhang et al. 2019): every few updates slow weights move towards the trained weights, which then
/// restart from the slow ones. This averages out the noise of a high learning rate.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "measure/ledger.h"
#include "train/given/options.h"

namespace paceline::train {

/// The part of the slow weights that is kept when they move after `updates_done` of `updates`: `keep` times
/// the progress to the power `power`. 0 means training without Lookahead.
[[nodiscard]] double kept_part(const LookaheadOptions& options, std::int64_t updates_done,
                               std::int64_t updates);

/// The slow weights of a run, including running statistics. Memory: one array of the weights' size if
/// options.steps > 0. Elementwise, so the bits do not depend on the number of workers.
class Lookahead {
 public:
  explicit Lookahead(const LookaheadOptions& options) : options_(options) {}

  /// Sets the slow weights at the beginning of the training.
  void begin(std::span<const float> weights);
  /// Whether the slow weights move after this update: every options.steps updates, and after the last.
  [[nodiscard]] bool is_due(std::int64_t updates_done, std::int64_t updates) const {
    return !slow_.empty() && (updates_done % options_.steps == 0 || updates_done == updates);
  }
  /// Sets both to their mixture. The caller then calls weights_changed().
  ///
  /// Requires  is_due()
  void follow(std::int64_t updates_done, std::int64_t updates, std::span<float> weights);

  /// Calls follow() for the engine's weights if is_due().
  void follow_where_due(std::int64_t updates_done, std::int64_t updates, engine::Engine& engine,
                        measure::Ledger& ledger);

  /// The array for checkpoints, to be saved and restored; empty without Lookahead.
  [[nodiscard]] std::span<float> slow() { return slow_; }

 private:
  LookaheadOptions options_;
  std::vector<float> slow_;
};

}  // namespace paceline::train
