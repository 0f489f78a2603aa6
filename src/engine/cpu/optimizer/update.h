#pragma once

/// One update of the weights by a rule, range by range of the flat arrays.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/cpu/kernels/kernels.h"
#include "engine/cpu/parallel.h"
#include "engine/engine.h"

namespace paceline::engine::cpu {

struct UpdateArrays {
  float* weights = nullptr;
  const float* gradients = nullptr;
  std::vector<float*> state;
};

/// The rule at one learning rate, as numbers for each parameter. What an element becomes depends on nothing
/// but itself (and, by LARS, its parameter's norms), so ranges may be cut and shared out at will.
class Update {
 public:
  /// For LARS whole parameters and gradients are read.
  Update(const graph::Graph& graph, const graph::Layout& layout, const Kernels& kernels,
         const UpdateRule& rule, double lr, std::int64_t update, UpdateArrays arrays);

  /// Applies the rule to a range of the flat arrays that belongs to the parameter of `slot`; nothing where
  /// that does not learn. `gradients`: of the range's first element on.
  ///
  /// Threads  any number, each on a range of its own
  void apply(int slot, Range range, const float* gradients) const;
  void apply(int slot, Range range) const { apply(slot, range, arrays_.gradients + range.begin); }

  /// The first array of state; null where the rule keeps none.
  [[nodiscard]] const float* state() const { return arrays_.state.empty() ? nullptr : arrays_.state.front(); }

  /// Running statistics by their batch norm's momentum.
  void apply_running() const;

 private:
  [[nodiscard]] UpdateNumbers numbers_of(const graph::Slot& slot, double lr, std::int64_t update) const;
  [[nodiscard]] double lars_rate(const graph::Slot& slot, double decay) const;

  const graph::Graph& graph_;
  const graph::Layout& layout_;
  const UpdateKernels& kernels_;
  const UpdateRule rule_;
  const UpdateArrays arrays_;
  std::vector<std::optional<UpdateNumbers>> numbers_;  ///< by slot; none: it does not learn
};

}  // namespace paceline::engine::cpu
