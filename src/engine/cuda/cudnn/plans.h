#pragma once

/// How a convolution is computed: cuDNN's engines for it, which of them qualify, and a plan of one that does.

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

/// What cuDNN says of an engine before a plan is made.
struct EngineFacts {
  std::int64_t index = -1;  ///< cuDNN's number of it, within this direction and version
  std::string knobs;        ///< "2=5 14=1": tile sizes and the like, by cuDNN's numbers
  bool deterministic = true;
  bool tensor_cores = false;
  bool reduces_precision = false;     ///< converts inputs down, or accumulates in less than fp32
  bool transforms = false;            ///< Winograd or FFT: one or two digits less than plain sums
  bool compiled_at_run_time = false;  ///< takes about a second to be planned
  bool operator==(const EngineFacts&) const = default;
};

/// "engine 62 (2=5 14=1)"
[[nodiscard]] std::string name_of(const EngineFacts& engine);

/// For what this engine is never taken for a convolution of that precision: other bits each time, or less
/// than the precision that was asked for (f32 is without TF32, hence without tensor cores). Nothing when it
/// may be taken.
[[nodiscard]] std::optional<std::string> refusal(const EngineFacts& engine, Precision precision);

/// An engine with its knobs, as the heuristics propose it.
struct EngineConfig {
  Descriptor descriptor;
  EngineFacts facts;
};

/// The engines for a convolution in the order of one kind of heuristics.
class EngineList {
 public:
  /// Cost     some milliseconds; the first of a process reads cuDNN's libraries
  /// Errors   those of finalize_for()
  EngineList(const TargetDevice& device, const ConvGraph& graph, HeuristicsMode mode);

  /// The first engines, at most `most`, with their facts.
  /// Cost     2 ms an engine where the heuristics describe it only now (b, bf16 backward weights)
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
  ConvProblem problem;
  EngineFacts engine;
  std::size_t workspace_bytes = 0;
  std::shared_ptr<const ConvGraph> graph;
  std::vector<Descriptor> descriptors;  ///< the engine's configuration, the plan
  [[nodiscard]] const Descriptor& plan() const { return descriptors.back(); }
};

/// The first engine that qualifies and wants at most `workspace_limit` bytes, in the order of heuristics b,
/// then a, then of those always there; engines that are compiled at run time come after all others. The same
/// on every device of a kind with this version of cuDNN.
///
/// Errors   Error(device) naming the problem and why engines were refused, when none qualifies
[[nodiscard]] Plan first_plan(const TargetDevice& device, const ConvProblem& problem,
                              std::size_t workspace_limit);

/// Up to `most` plans that qualify, the best guess first: heuristics b and a in turn, the same engine with
/// the same knobs once. For who measures them. Of a fused problem there may be none, and each takes about a
/// second. `left_out`, if given, gets those that want more workspace.
///
/// Errors   as first_plan()
[[nodiscard]] std::vector<Plan> plans_to_measure(const TargetDevice& device, const ConvProblem& problem,
                                                 std::size_t workspace_limit, std::size_t most,
                                                 std::vector<std::string>* left_out = nullptr);

/// The name by which records keep a plan's engine: "cudnn-9.19.0-engine-62(2=5,14=1)". Numbers of engines and
/// knobs mean what they mean within one version.
[[nodiscard]] std::string algorithm_of(const CudnnApi& api, const EngineFacts& engine);

/// The plan by the engine of that name.
///
/// Errors   AlgorithmRefused: of another version, not proposed for this problem, or why it does not qualify;
///          Error(device)
[[nodiscard]] Plan named_plan(const TargetDevice& device, const ConvProblem& problem,
                              const std::string& algorithm, std::size_t workspace_limit);

}  // namespace paceline::engine::cuda::cudnn
