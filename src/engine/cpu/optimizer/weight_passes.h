#pragma once

/// What happens to the weights once an update: the optimizer's update, and their way into the orders that the
/// convolutions read. Both in one visit, a tile of weights at a time, where one task packs a tile of weights
/// for all who read it; then the weights are fetched once for three uses (docs/decisions/packing.md).
///
/// Threads  the engine's, by ExecContext::pool

#include <cstdint>
#include <vector>

#include "engine/cpu/conv/weights.h"
#include "engine/cpu/optimizer/update.h"
#include "engine/cpu/program.h"

namespace paceline::engine::cpu {

class WeightPasses {
 public:
  explicit WeightPasses(const Program& program);

  /// All weights into the convolutions' orders.
  void pack(const ExecContext& exec) const;
  /// Everything that learns, and pack().
  void update(const ExecContext& exec, const Update& update) const;

  /// What update() reads and writes, with so many arrays of optimizer state.
  [[nodiscard]] std::int64_t update_bytes(int state_slots) const;

 private:
  struct Pack {
    const ConvWeights* weights = nullptr;
    int number = 0;  ///< of their tasks
    PackTask task;
    [[nodiscard]] std::int64_t bytes() const { return 4 * task.weights.size() + task.packed_bytes; }
  };
  /// Weights that are packed by several tasks, or by none.
  struct Loose {
    int slot = 0;
    Range range;
  };

  std::int64_t elements_ = 0;      ///< of the flat arrays
  std::vector<Pack> first_packs_;  ///< the only ones of their weights, which they update first
  std::vector<Pack> later_packs_;  ///< of loose weights
  std::vector<Loose> loose_;
  std::vector<int> update_order_;   ///< first_packs_, then loose_, as update()'s loop takes them
  std::int64_t scratch_bytes_ = 0;  ///< of any task
};

}  // namespace paceline::engine::cpu
