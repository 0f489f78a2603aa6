#pragma once

/// Which algorithm computes a convolution fastest on a device: events around runs of all candidates, in
/// turns.

#include <cstddef>
#include <span>
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

  /// Takes memory for the operands of the largest of `problems` at once: what measure() has to let grow stays
  /// beside it until the runtime ends.
  void reserve(std::span<const ConvProblem> problems);
  /// What reserve() takes, and the most workspace.
  [[nodiscard]] static std::size_t most_bytes(std::span<const ConvProblem> problems);

  /// Cost     a GPU: some 50 ms; memory for the largest operands and workspace so far, until the runtime ends
  /// Errors   as Runtime::convolution_candidates; Error(device)
  [[nodiscard]] MeasuredConvolution measure(const ConvProblem& problem);

 private:
  /// Bytes of each operand.
  struct Sizes {
    std::size_t src = 0, dst = 0, weight = 0, sums = 0, mask = 0, values = 0, addend = 0;
    [[nodiscard]] static Sizes of(const ConvProblem& problem);
    [[nodiscard]] static Sizes largest(std::span<const ConvProblem> problems);
  };
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
