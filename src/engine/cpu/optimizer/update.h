#pragma once

/// Applies one update of an optimizer to the weights, range by range of the flat arrays.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/cpu/kernels/kernels.h"
#include "engine/cpu/parallel.h"
#include "engine/engine.h"

namespace paceline::engine::cpu {

/// Flat arrays by graph::Layout; `state` has one for each slot of optimizer state.
struct UpdateArrays {
  float* weights = nullptr;
  const float* gradients = nullptr;
  std::vector<float*> state;
};

/// An update rule at one learning rate, with its numbers worked out for each parameter. A new weight depends
/// on nothing but the same element of the arrays (with LARS and LAMB also on its parameter's norms), so
/// ranges may be cut in any way and shared among threads.
class Update {
 public:
  /// `update` counts from 1. With LARS and LAMB it reads all weights, gradients and moments, for the norms,
  /// on the threads of `pool`. LAMB requires gradients in PyTorch's order.
  Update(const graph::Graph& graph, const graph::Layout& layout, const Kernels& kernels,
         base::ThreadPool& pool, const UpdateRule& rule, double lr, std::int64_t update, UpdateArrays arrays);

  /// Applies the rule to a range of the flat arrays inside the parameter of `slot`. Does nothing if that
  /// parameter does not learn. `gradients` points to the gradient of the range's first element.
  ///
  /// Threads  any number, each on a range of its own
  void apply(int slot, Range range, const float* gradients) const;
  void apply(int slot, Range range) const { apply(slot, range, arrays_.gradients + range.begin); }

  /// The first array of optimizer state; null if the rule has none.
  [[nodiscard]] const float* state() const { return arrays_.state.empty() ? nullptr : arrays_.state.front(); }

  /// Updates the running statistics of batch norms with their momentum.
  void apply_running() const;

 private:
  [[nodiscard]] UpdateNumbers numbers_of(const graph::Slot& slot, double lr, std::int64_t update) const;
  [[nodiscard]] double lars_rate(const graph::Slot& slot, double decay) const;
  [[nodiscard]] double lamb_rate(const graph::Slot& slot, const UpdateNumbers& numbers) const;
  [[nodiscard]] float* state(std::size_t number, std::int64_t begin) const {
    return number < arrays_.state.size() ? arrays_.state[number] + begin : nullptr;
  }

  const graph::Graph& graph_;
  const graph::Layout& layout_;
  const UpdateKernels& kernels_;
  const UpdateRule rule_;
  const UpdateArrays arrays_;
  std::vector<std::optional<UpdateNumbers>> numbers_;  ///< by slot; empty: the parameter does not learn
};

}  // namespace paceline::engine::cpu
