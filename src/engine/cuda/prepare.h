#pragma once

/// Implements engine::prepare() (engine/make.h) for the CUDA engine: chooses cuDNN's algorithms for a run.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/cuda/runtime/runtime.h"
#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::engine::cuda {

// ConvolutionTimer measures which algorithm computes a convolution fastest on a device. The candidates run
// in turns, between timed events.

struct MeasuredConvolution {
  std::string algorithm;  ///< the fastest; the default unless another is clearly faster
  struct Time {
    std::string algorithm;
    double seconds = 0;  ///< of one run; a median
  };
  std::vector<Time> times;              ///< the default first
  std::vector<std::string> left_out;    ///< ConvCandidates::left_out
  std::vector<PassedOver> passed_over;  ///< candidates that the device cannot start
};

/// Allocates its operands once and reuses them for all problems.
class ConvolutionTimer {
 public:
  /// Requires  `runtime` outlives this object, and nothing else uses it meanwhile
  explicit ConvolutionTimer(Runtime& runtime);

  /// Allocates operands for the largest of `problems` at once. Otherwise measure() allocates larger ones as
  /// needed, and the smaller ones stay until the runtime ends.
  void reserve(std::span<const ConvProblem> problems);
  /// The most bytes that reserve() and measure() together keep allocated for `problems`, where a convolution
  /// takes at most `workspace` beside its operands.
  [[nodiscard]] static std::size_t most_bytes(std::span<const ConvProblem> problems, std::size_t workspace);

  /// Runs `algorithm` once, unless it has run before, to see whether the device can start it. Returns why
  /// not; nothing if it can.
  ///
  /// Errors   like Runtime::make_convolution(); Error(device)
  [[nodiscard]] std::optional<std::string> why_not_started(const ConvProblem& problem,
                                                           const std::string& algorithm);

  /// Measures all candidates of `problem`.
  ///
  /// Cost     on a GPU about 50 ms; keeps memory for the largest operands and workspace so far, until the
  ///          runtime ends
  /// Errors   like Runtime::convolution_candidates(); Error(device), also if no candidate can be started
  [[nodiscard]] MeasuredConvolution measure(const ConvProblem& problem);

 private:
  /// Bytes of each operand.
  struct Sizes {
    std::size_t src = 0, dst = 0, weight = 0;
    [[nodiscard]] static Sizes of(const ConvProblem& problem);
    [[nodiscard]] static Sizes largest(std::span<const ConvProblem> problems);
  };
  /// Device memory that grows on demand.
  struct Block {
    std::byte* first = nullptr;
    std::size_t bytes = 0;
  };
  std::byte* at_least(Block& block, std::size_t bytes);
  [[nodiscard]] ConvOperands operands_of(const ConvProblem& problem, std::size_t workspace_bytes);
  [[nodiscard]] double seconds_of(Convolution& convolution, const ConvOperands& operands);

  Runtime& runtime_;
  const Stream stream_;
  const Event begin_, end_;
  Block src_, weight_, dst_, workspace_;
};

/// Chooses the algorithms of the convolutions and dense layers of `graph`, by measuring on `runtime` if
/// `request` says so. Runs each once where only that tells whether the device can start it, and passes over
/// those that it cannot.
///
/// Requires  nothing else uses `runtime` meanwhile
/// Cost      makes a plan for each problem (a layer in one direction); measuring takes about 50 ms for each
///           problem the first time
/// Errors    those of engine::prepare(); Error(device)
[[nodiscard]] PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                                      const KernelRequest& request, Runtime& runtime);

/// engine::auto_precision() (engine/make.h) for GPUs of which the oldest has this compute capability.
[[nodiscard]] AutoPrecision auto_precision(int compute_capability);

}  // namespace paceline::engine::cuda
