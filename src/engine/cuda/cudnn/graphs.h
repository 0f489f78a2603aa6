#pragma once

/// Describes a convolution to cuDNN as an operation graph: three tensors (NHWC and KRSC), the geometry, and
/// the operation of its direction.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "engine/cuda/conv_problem.h"
#include "engine/cuda/cudnn/descriptor.h"

namespace paceline::engine::cuda::cudnn {

/// The device for which plans are made: the device of a handle, or one that exists only as a description.
class TargetDevice {
 public:
  /// The device on which `handle` was created.
  TargetDevice(const CudnnApi& api, Handle handle) : api_(&api), handle_(handle) {}
  /// A device with these properties. Needs neither device nor driver; the plans cannot run.
  TargetDevice(const CudnnApi& api, Descriptor properties) : api_(&api), properties_(std::move(properties)) {}

  [[nodiscard]] const CudnnApi& api() const { return *api_; }
  // Each sets the device in a descriptor that is not finalised yet.
  void apply_to_graph(Descriptor& graph) const;
  void apply_to_heuristics(Descriptor& heuristics) const;
  void apply_to_plan(Descriptor& plan) const;

 private:
  const CudnnApi* api_;
  Handle handle_ = nullptr;
  std::optional<Descriptor> properties_;  ///< empty if there is a handle
};

/// Sizes and strides, in elements, in cuDNN's order: [N, C, H, W], weights [K, C, R, S].
struct TensorLayout {
  std::array<std::int64_t, 4> sizes{};
  std::array<std::int64_t, 4> strides{};
  [[nodiscard]] std::int64_t elements() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
};

struct ConvTensors {
  TensorLayout src, weight, dst;
};

/// The tensors of a convolution, channels last.
[[nodiscard]] ConvTensors conv_tensors(const ConvProblem& problem);

/// Refuses tensors that cuDNN would interpret differently: weights whose channels mean another number of
/// groups, channels that are not contiguous, sizes that do not fit together.
///
/// Errors   Error(device) with problem, tensor, rule and value
void check(const ConvTensors& tensors, const ConvProblem& problem);

/// The tensors' ids in a variant pack, cuDNN's list of addresses for an execution.
constexpr std::int64_t kSrcId = 1, kWeightId = 2, kDstId = 3;
/// In bytes; every address passed to cuDNN is a multiple of it.
constexpr std::int64_t kTensorAlignment = 16;

/// An operation graph with its descriptors, which refer to one another and must live as long as the graph.
struct ConvGraph {
  Descriptor src, weight, dst, geometry, operation, graph;
};

/// Checks problem and tensors, then describes them to cuDNN.
///
/// Errors   Error(device)
[[nodiscard]] ConvGraph make_conv_graph(const TargetDevice& device, const ConvProblem& problem,
                                        const ConvTensors& tensors);

}  // namespace paceline::engine::cuda::cudnn
