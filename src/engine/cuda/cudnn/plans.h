#pragma once

/// Chooses cuDNN's engine for a convolution: lists the engines that cuDNN proposes, refuses those that do not
/// qualify, and makes a plan with one that does.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/cuda/conv_problem.h"
#include "engine/cuda/cudnn/descriptor.h"
#include "engine/cuda/cudnn/graphs.h"

namespace paceline::engine::cuda::cudnn {

/// What cuDNN says of an engine (its name for an algorithm) before a plan is made.
struct EngineFacts {
  std::int64_t index = -1;  ///< cuDNN's number, valid for one direction and version
  std::string knobs;        ///< "2=5 14=1": the engine's parameters, such as tile sizes, by cuDNN's numbers
  bool deterministic = true;
  bool tensor_cores = false;
  bool reduces_precision = false;     ///< rounds inputs, or accumulates in less than fp32
  bool transforms = false;            ///< Winograd or FFT: one or two digits less accurate than direct sums
  bool compiled_at_run_time = false;  ///< making a plan takes about a second
  bool operator==(const EngineFacts&) const = default;
};

/// Why this engine must not be used at that precision: it is not deterministic, or computes with less than
/// the requested precision (f32 excludes TF32 and therefore tensor cores). Empty if it may be used.
[[nodiscard]] std::optional<std::string> refusal(const EngineFacts& engine, Precision precision);

/// An engine with values for its knobs, as cuDNN's heuristics propose it.
struct EngineConfig {
  Descriptor descriptor;
  EngineFacts facts;
};

/// The engines for a convolution, in the order of one of cuDNN's heuristics.
class EngineList {
 public:
  /// Cost     some milliseconds; the first call of a process also loads cuDNN's libraries
  /// Errors   Error(device)
  EngineList(const TargetDevice& device, const ConvGraph& graph, HeuristicsMode mode);

  /// The first `most` engines (or all, if there are fewer), with their facts.
  ///
  /// Cost     up to 2 ms an engine (heuristics b, bf16 backward weights)
  /// Errors   Error(device)
  [[nodiscard]] std::vector<EngineConfig> first(std::int64_t most) const;
  [[nodiscard]] std::vector<EngineConfig> all() const { return first(count_); }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  Descriptor heuristics_;
  std::int64_t count_ = 0;
};

/// A convolution that is ready to be executed on the device it was planned for.
struct Plan {
  EngineFacts engine;
  std::size_t workspace_bytes = 0;
  std::shared_ptr<const ConvGraph> graph;
  std::vector<Descriptor> descriptors;  ///< the engine's configuration, then the plan
  std::vector<PassedOver> passed_over;  ///< before this engine, because they cannot be compiled
  mutable bool has_run = false;         ///< whether the device has started it once
  [[nodiscard]] const Descriptor& plan() const { return descriptors.back(); }
};

/// A plan with the first engine that qualifies and needs at most `workspace_limit` bytes. The order is:
/// heuristics b, then a, then fallback engines; engines compiled at run time come after all others. All
/// devices of a kind get the same engine, as long as cuDNN's version is the same and their drivers compile
/// the same engines.
///
/// Errors   Error(device) with the problem and the reasons of the refusals, if no engine qualifies
[[nodiscard]] Plan first_plan(const TargetDevice& device, const ConvProblem& problem,
                              std::size_t workspace_limit);

/// Up to `most` plans that qualify, for measuring, the best guess first: heuristics b and a in turn, without
/// repeats. `left_out`, if given, receives the names of engines that need more workspace.
///
/// Errors   those of first_plan()
[[nodiscard]] std::vector<Plan> plans_to_measure(const TargetDevice& device, const ConvProblem& problem,
                                                 std::size_t workspace_limit, std::size_t most,
                                                 std::vector<std::string>* left_out = nullptr);

/// The name of an engine in records: "cudnn-9.19.0-engine-62(2=5,14=1)". It includes the version because
/// cuDNN's numbers of engines and knobs change with it.
[[nodiscard]] std::string algorithm_of(const CudnnApi& api, const EngineFacts& engine);

/// The plan with the engine named `algorithm`.
///
/// Errors   AlgorithmRefused if the engine is of another version, is not proposed for this problem or does
///          not qualify; Error(device)
[[nodiscard]] Plan named_plan(const TargetDevice& device, const ConvProblem& problem,
                              const std::string& algorithm, std::size_t workspace_limit);

}  // namespace paceline::engine::cuda::cudnn
