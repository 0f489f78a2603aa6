#pragma once

/// A copy of all arrays that a checkpoint holds, from which it is written while the training goes on.

#include "base/buffer.h"
#include "engine/engine.h"
#include "train/checkpoint.h"

namespace paceline::train {

/// Threads  one takes it; once it is taken, any number of readers
class Snapshot {
 public:
  /// Copies `arrays`. The first takes the memory, which later ones use again.
  ///
  /// Cost     one copy: at about 5 GB/s, 20 ms for the 90 MB of a ResNet-18 with momentum
  void take(const TrainingArrays& arrays);
  /// Requires: one was taken.
  [[nodiscard]] const TrainingArrays& arrays() const { return arrays_; }

  /// Bytes of the copy of a training with `flat_bytes` of weights.
  [[nodiscard]] static std::int64_t planned_bytes(std::int64_t flat_bytes, const engine::UpdateRule& rule,
                                                  bool has_slow_weights);

 private:
  base::Buffer copy_;
  TrainingArrays arrays_;  ///< of the copy
};

}  // namespace paceline::train
