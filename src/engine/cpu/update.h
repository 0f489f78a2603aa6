#pragma once

/// Applies an update rule to the flat arrays, on a pool's threads.

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "engine/cpu/kernels/kernels.h"
#include "engine/engine.h"

namespace paceline::engine::cpu {

struct UpdateArrays {
  float* weights = nullptr;
  const float* gradients = nullptr;
  std::vector<float*> state;
};

/// One pass: trainable parameters by the rule, running statistics by their batch norm's momentum.
/// Results do not depend on the pool.
void apply_update(const graph::Graph& graph, const graph::Layout& layout, const Kernels& kernels,
                  base::ThreadPool& pool, const UpdateRule& rule, double lr, std::int64_t update,
                  const UpdateArrays& arrays);

}  // namespace paceline::engine::cpu
