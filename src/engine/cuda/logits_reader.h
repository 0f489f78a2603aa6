#pragma once

/// Copies the logits of an evaluation to the host.

#include <cstddef>
#include <span>

#include "engine/cuda/ops/compiled_op.h"
#include "engine/cuda/program.h"

namespace paceline::engine::cuda {

class LogitsReader {
 public:
  /// Fills `logits` [count][classes] from the last pass: the mean over the views of each of `count` samples,
  /// as the loss used it.
  ///
  /// Cost     waits for the compute stream; the first call allocates pinned memory for a batch
  void read(const Program& program, const ExecContext& exec, int count, int views, std::span<double> logits);

 private:
  std::byte* pinned_ = nullptr;  ///< null until the first read(): training has none
};

}  // namespace paceline::engine::cuda
