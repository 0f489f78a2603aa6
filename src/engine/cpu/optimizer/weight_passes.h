#pragma once

/// The passes over all weights, once an update: the optimizer's update, and packing into the orders that the
/// convolutions read.
///
/// If one task packs a tile of weights for all of its readers, the task also updates that tile first, so that
/// its weights are fetched into the cache once (docs/decisions/packing.md).
///
/// Threads  the engine's, by ExecContext::pool

#include <cstdint>
#include <vector>

#include "engine/cpu/conv/plan.h"
#include "engine/cpu/optimizer/update.h"
#include "engine/cpu/program.h"

namespace paceline::engine::cpu {

class WeightPasses {
 public:
  explicit WeightPasses(const Program& program);

  /// Packs all weights.
  void pack(const ExecContext& exec) const;
  /// Like Engine::gradient_squares(). The sum is divided by the parameters' shapes alone, so it is the same
  /// for any number of threads, and on all ranks.
  double gradient_squares(const ExecContext& exec, std::int64_t begin, std::int64_t end) const;
  /// Clips the gradients as `rule` says; returns their norm before.
  ///
  /// Cost     reads the gradients once; if they are too long, reads and writes them once more
  double clip(const ExecContext& exec, const UpdateRule& rule) const;
  /// Updates everything that learns, then packs.
  void update(const ExecContext& exec, const Update& update) const;

  /// Bytes that update() reads and writes, with `state_slots` arrays of optimizer state.
  [[nodiscard]] std::int64_t update_bytes(int state_slots) const;

 private:
  struct Pack {
    const ConvWeights* weights = nullptr;
    int number = 0;  ///< of the task, among those of `weights`
    PackTask task;
    [[nodiscard]] std::int64_t bytes() const { return 4 * task.weights.size() + task.packed_bytes; }
  };
  /// Weights that no task or several tasks pack; they are updated separately.
  struct Loose {
    int slot = 0;
    Range range;
  };

  std::int64_t elements_ = 0;      ///< of the flat arrays
  std::vector<Pack> first_packs_;  ///< PackTask::is_only: they update and pack
  std::vector<Pack> later_packs_;  ///< they pack loose weights, after the update
  std::vector<Loose> loose_;
  std::vector<int> update_order_;   ///< indices of first_packs_, then loose_, in the order of update()
  std::int64_t scratch_bytes_ = 0;  ///< the most that a task needs
  std::vector<Range> learning_;     ///< the ranges of all parameters that learn, in their order
};

}  // namespace paceline::engine::cpu
