#pragma once

/// SlowWeights follow the trained weights, running statistics included, in one of two ways.
///
/// Lookahead (Zhang et al. 2019): every few updates slow weights move towards the trained weights, which then
/// restart from the slow ones. This averages out the noise of a high learning rate.
///
/// --ema: an average in which older weights count exponentially less. Nothing of the training depends on it;
/// it is evaluated beside the trained weights.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "engine/engine.h"
#include "measure/ledger.h"
#include "train/given/options.h"

namespace paceline::train {

/// The part of the slow weights that is kept when they move after `updates_done` of `updates`: `keep` times
/// the progress to the power `power`. 0 means training without Lookahead.
[[nodiscard]] double kept_part(const LookaheadOptions& options, std::int64_t updates_done,
                               std::int64_t updates);

/// Memory: one array of the weights' size if either is on, on a device one there and one here. Elementwise,
/// so the bits do not depend on the number of workers.
class SlowWeights {
 public:
  SlowWeights(const LookaheadOptions& lookahead, const EmaOptions& ema) : lookahead_(lookahead), ema_(ema) {}

  /// Sets them to the engine's weights, at the beginning of the training. Allocates.
  void begin(engine::Engine& engine);

  /// Whether Lookahead's move after this update: every `steps` updates, and after the last.
  [[nodiscard]] bool is_due(std::int64_t updates_done, std::int64_t updates) const {
    return lookahead_.steps > 0 && (updates_done % lookahead_.steps == 0 || updates_done == updates);
  }
  /// If is_due(): sets Lookahead's slow weights and the engine's to their mixture.
  void follow_where_due(std::int64_t updates_done, std::int64_t updates, engine::Engine& engine,
                        measure::Ledger& ledger);

  [[nodiscard]] bool has_average() const { return ema_.decay > 0; }
  /// Call it after every update, or after it is in the engine's queue. Every `every` updates the weights join
  /// the average, which the first of these begin. Where an update is skipped, the weights before it join.
  ///
  /// Cost     one pass over two arrays, which a device is not waited for
  void average(std::int64_t updates_done, engine::Engine& engine, measure::Ledger& ledger);
  /// Exchanges the average with the engine's weights, for an evaluation; call it again after that.
  void exchange(engine::Engine& engine);

  /// The array for checkpoints, on the host, to be saved and restored; empty if both are off.
  [[nodiscard]] std::span<float> values() { return values_; }
  /// Call it before values() are read,
  void fetch();
  /// and after they are written.
  void changed();

 private:
  LookaheadOptions lookahead_;
  EmaOptions ema_;
  std::vector<float> values_;
  base::OwnedArray average_;  ///< --ema on a device: there
};

}  // namespace paceline::train
