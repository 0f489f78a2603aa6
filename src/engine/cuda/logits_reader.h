#pragma once

/// Logits of an evaluation, brought to the host.

#include <cstddef>
#include <span>

#include "engine/cuda/ops/compiled_op.h"
#include "engine/cuda/program.h"

namespace paceline::engine::cuda {

class LogitsReader {
 public:
  /// `logits` [count][classes]: of the last pass, as the loss read them; of each of `count` samples the mean
  /// over its views.
  ///
  /// Cost     waits for the compute stream; the first call allocates pinned memory for a batch
  void read(const Program& program, const ExecContext& exec, int count, int views, std::span<double> logits);

 private:
  std::byte* pinned_ = nullptr;  ///< null until somebody asks: no training does
};

}  // namespace paceline::engine::cuda
