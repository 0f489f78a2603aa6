#pragma once

/// A copy of all arrays of a checkpoint, from which it is written while the training continues.

#include "base/buffer.h"
#include "engine/engine.h"
#include "train/checkpoint/checkpoint.h"

namespace paceline::train {

/// Threads  one calls take(); afterwards any number may read
class Snapshot {
 public:
  /// Copies `arrays`. The first call allocates; later ones reuse the memory.
  ///
  /// Cost     one copy: at about 5 GB/s, 20 ms for the 90 MB of a ResNet-18 with momentum
  void take(const TrainingArrays& arrays);
  /// The copy. Requires take().
  [[nodiscard]] const TrainingArrays& arrays() const { return arrays_; }

  /// Bytes of the copy for `flat_bytes` of weights.
  [[nodiscard]] static std::int64_t planned_bytes(std::int64_t flat_bytes, const engine::UpdateRule& rule,
                                                  bool has_slow_weights);

 private:
  base::Buffer copy_;
  TrainingArrays arrays_;  ///< of the copy
};

}  // namespace paceline::train
