#pragma once

/// One way to compute convolutions and dense layers: a row of the table in algorithms.cc.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/cpu/conv/kernel.h"

namespace paceline::engine::cpu {

struct ConvAlgorithm {
  std::string name;         ///< one word: in the tuning cache, and what `doctor --kernels` calls it
  std::string family = {};  ///< what several rows have in common, for `doctor`: the unit of bf16 tiles
  /// Why it cannot compute the problem on this machine, as the end of a sentence; empty: it can.
  std::function<std::optional<std::string>(const ConvProblem& problem)> refusal;
  /// Whether it is taken where nothing was measured. Asked only where refusal() is empty; the first row that
  /// says yes wins.
  std::function<bool(const ConvProblem& problem)> prefers;
  /// What prefers() asks for, as the end of a sentence: said where it says no.
  std::function<std::string(const ConvProblem& problem)> preference;
  /// Samples of a chunk of `batch`. By the shape alone: any number of threads, on any machine, cuts alike.
  std::function<int(const ConvShape& batch, Direction direction)> chunk;
  /// The kernel for one chunk, forward or backward data; empty where refusal() refuses both. `like`: the
  /// kernel of another chunk of the same batch, whose packed weights this one reads; or null.
  ///
  /// Errors   Error(device) when a library refuses
  std::function<std::unique_ptr<WeightReader>(const ConvShape& chunk, Direction direction,
                                              const WeightReader* like)>
      make_reader = {};
  /// The same for backward weights. `like`: whose order of the gradient this one writes; or null.
  std::function<std::unique_ptr<WgradKernel>(const ConvShape& chunk, const WgradKernel* like)> make_wgrad =
      {};
  /// It computes bf16 values in float on the way, so it wants no bf16 unit.
  bool converts_bf16 = false;
  /// Not worth timing: it would take long, to no end. Empty: always worth it.
  std::function<bool(const ConvShape& shape)> is_hopeless = {};
};

}  // namespace paceline::engine::cpu
