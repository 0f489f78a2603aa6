#pragma once

/// Which algorithm computes a convolution fastest on a device: events around runs of all candidates, in
/// turns.

#include <cstddef>
#include <string>
#include <vector>

#include "engine/cuda/runtime.h"

namespace paceline::engine::cuda {

struct MeasuredConvolution {
  std::string algorithm;  ///< the fastest; the one by default unless another is clearly faster
  struct Time {
    std::string algorithm;
    double seconds = 0;  ///< of one run: a median
  };
  std::vector<Time> times;            ///< the one by default first
  std::vector<std::string> left_out;  ///< ConvCandidates::left_out
};

/// Measures on a runtime that nothing else uses meanwhile.
class ConvolutionTimer {
 public:
  /// Requires   `runtime` outlives it
  explicit ConvolutionTimer(Runtime& runtime);

  /// Cost     a GPU: some 50 ms; memory for the largest operands and workspace so far, until the runtime ends
  /// Errors   as Runtime::convolution_candidates; Error(device)
  [[nodiscard]] MeasuredConvolution measure(const ConvProblem& problem);

 private:
  /// Memory of the device that grows.
  struct Block {
    std::byte* first = nullptr;
    std::size_t bytes = 0;
  };
  std::byte* at_least(Block& block, std::size_t bytes);
  [[nodiscard]] double seconds_of(Convolution& convolution, const ConvOperands& operands);

  Runtime& runtime_;
  const Stream stream_;
  const Event begin_, end_;
  Block src_, weight_, dst_, workspace_, sums_, addend_, mask_, values_;
};

}  // namespace paceline::engine::cuda
