#pragma once

/// A ConvPlan holds the kernels of one convolution or dense layer: for each direction it chooses an algorithm
/// and cuts the batch into chunks of samples.
///
/// Kernels usually work on the stored values. They work on float copies, a block of samples at a time, if
/// values are bf16, the machine has no bf16 unit and Winograd is not used.

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/batch_split.h"
#include "engine/cpu/ops/factories.h"

namespace paceline::engine::cpu {

class ConvPlan {
 public:
  /// `has_d_src`: whether the input's gradient is needed. Backward weights is computed if the op learns.
  ///
  /// Errors   Error(device) when no algorithm can compute it
  ConvPlan(const BuildContext& build, const Value& src, const Value& dst, bool has_d_src);

  /// Whether kernels work on stored values, not on float copies.
  [[nodiscard]] bool are_direct() const { return direct_; }
  /// Number of samples in a block of float copies.
  [[nodiscard]] int block() const { return block_; }
  [[nodiscard]] const ChunkKernels<WeightReader>& forward() const { return forward_; }
  [[nodiscard]] const std::optional<ChunkKernels<WeightReader>>& backward() const { return backward_; }
  [[nodiscard]] const std::optional<ChunkKernels<WgradKernel>>& gradient() const { return gradient_; }
  /// Number of partial weight gradients, each over a section of the batch; 0 if the op does not learn.
  [[nodiscard]] int partial_gradients() const { return partial_gradients_; }

  /// Appends the problems of its directions, for the autotuner.
  void list(std::vector<ConvProblem>& problems) const;
  /// Appends a row for each direction.
  void describe(std::vector<KernelChoice>& choices) const;
  /// describe() with measured rates. On float copies the rates are those of the op's whole passes, because
  /// conversions are part of the computation.
  void measure(const OpTraffic& traffic, const std::function<void()>& forward_pass,
               const std::function<void()>& backward_pass, std::vector<KernelChoice>& choices) const;

 private:
  [[nodiscard]] ConvProblem problem(Direction direction) const;
  [[nodiscard]] static const ConvAlgorithm& choose(const BuildContext& build, const ConvProblem& problem);
  /// How the batch is cut for a direction, and by which algorithm.
  struct Cut {
    const ConvAlgorithm& algorithm;
    ConvShape batch;
    int samples = 0;
    bool has_shards = false;
    int threads = 1;
    [[nodiscard]] ConvShape settled(ConvShape chunk) const;
  };
  [[nodiscard]] Cut cut(const BuildContext& build, Direction direction);
  [[nodiscard]] ChunkKernels<WeightReader> readers(const BuildContext& build, Direction direction);
  [[nodiscard]] ChunkKernels<WgradKernel> wgrads(const BuildContext& build);

  const std::string name_;
  const int batch_;
  const bool direct_;
  const ConvShape shape_;
  const int block_;
  std::array<const ConvAlgorithm*, 3> algorithms_ = {};  ///< by direction
  ChunkKernels<WeightReader> forward_;
  std::optional<ChunkKernels<WeightReader>> backward_;
  std::optional<ChunkKernels<WgradKernel>> gradient_;
  int partial_gradients_ = 0;
};

}  // namespace paceline::engine::cpu
