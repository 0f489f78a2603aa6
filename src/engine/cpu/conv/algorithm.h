#pragma once

/// A ConvAlgorithm is one way to compute convolutions and dense layers: a row of the table in algorithms.cc.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/cpu/conv/kernel.h"

namespace paceline::engine::cpu {

struct ConvAlgorithm {
  std::string name;         ///< one word; `doctor --kernels`, records and tuning caches use it
  std::string family = {};  ///< groups rows for `doctor`: the bf16 unit that they run on
  /// Why it cannot compute the problem on this machine, as the end of a sentence; empty if it can.
  std::function<std::optional<std::string>(const ConvProblem& problem)> refusal;
  /// Whether it should compute the problem if nothing was measured. Called only if refusal() is empty; the
  /// first row that returns true is taken.
  std::function<bool(const ConvProblem& problem)> prefers;
  /// The condition that prefers() checks, as the end of a sentence. It is shown where prefers() is false.
  std::function<std::string(const ConvProblem& problem)> preference;
  /// Number of samples in a chunk of `batch`. It depends on the shape alone, so that the chunks are the same
  /// for any number of threads and on any machine.
  std::function<int(const ConvShape& batch, Direction direction)> chunk;
  /// Makes the kernel that computes forward or backward data for one chunk. Empty if refusal() refuses both
  /// directions. `like` is null or the kernel of another chunk of the same batch; the new kernel must then
  /// read the weights that `like` packs.
  ///
  /// Errors   Error(device) when a library refuses
  std::function<std::unique_ptr<WeightReader>(const ConvShape& chunk, Direction direction,
                                              const WeightReader* like)>
      make_reader = {};
  /// Makes the kernel that computes backward weights for one chunk. `like` is null or the kernel of another
  /// chunk of the same batch; the new kernel must then write the gradient in the order that `like` writes.
  std::function<std::unique_ptr<WgradKernel>(const ConvShape& chunk, const WgradKernel* like)> make_wgrad =
      {};
  /// Whether it reads and writes bf16 but computes in float, and so needs no bf16 unit.
  bool converts_bf16 = false;
  /// Whether autotuning should skip the shape because the algorithm would be very slow. Empty: never.
  std::function<bool(const ConvShape& shape)> is_hopeless = {};
};

}  // namespace paceline::engine::cpu
