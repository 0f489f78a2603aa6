#pragma once

/// A convolution as cuDNN's operation graph: three tensors in NHWC and KRSC, the geometry, the operation in
/// its direction; and behind it, where that is wanted, what ConvProblem::has_statistics and
/// has_masked_sums say.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/cuda/conv_problem.h"
#include "engine/cuda/cudnn/descriptor.h"

namespace paceline::engine::cuda::cudnn {

/// For which device plans are made: that of a handle, or one that is only described.
class TargetDevice {
 public:
  /// The device on which `handle` was created.
  [[nodiscard]] static TargetDevice of(const CudnnApi& api, Handle handle);
  /// A device by cuDNN's text of its properties; needs neither device nor driver. Such plans cannot run.
  /// Errors   Error(device) when cuDNN does not accept the text
  [[nodiscard]] static TargetDevice described(const CudnnApi& api, std::string_view json);
  /// Device number `device` of the process, by its description.
  [[nodiscard]] static TargetDevice numbered(const CudnnApi& api, int device);

  [[nodiscard]] const CudnnApi& api() const { return *api_; }
  /// The text that describes it. Requires: it is described or numbered.
  [[nodiscard]] std::string json() const;
  // Each tells a descriptor, that is not yet finalised, for which device it is.
  void apply_to_graph(Descriptor& graph) const;
  void apply_to_heuristics(Descriptor& heuristics) const;
  void apply_to_plan(Descriptor& plan) const;

 private:
  TargetDevice(const CudnnApi& api, Handle handle) : api_(&api), handle_(handle) {}
  TargetDevice(const CudnnApi& api, Descriptor properties) : api_(&api), properties_(std::move(properties)) {}

  const CudnnApi* api_;
  Handle handle_ = nullptr;
  std::optional<Descriptor> properties_;  ///< nothing where there is a handle
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

/// The tensors of a convolution as they lie: channels last.
[[nodiscard]] ConvTensors conv_tensors(const ConvProblem& problem);

/// Refuses what cuDNN would compute as something else: weights for fewer channels than the input has (it
/// takes them as a grouped convolution), channels that do not lie beside one another, tensors that do not
/// fit.
///
/// Errors   Error(device) that names problem, tensor, rule and value
void check(const ConvTensors& tensors, const ConvProblem& problem);

/// The tensors' names in a variant pack.
constexpr std::int64_t kSrcId = 1, kWeightId = 2, kDstId = 3, kSumsId = 4, kProductsId = 5, kAddendId = 6,
                       kMaskId = 7, kValuesId = 8;
/// In bytes; what is handed to cuDNN starts at multiples of it.
constexpr std::int64_t kTensorAlignment = 16;

/// Descriptors refer to one another, so that all live as long as the graph.
struct ConvGraph {
  Descriptor src, weight, dst, geometry, operation, graph;
  std::vector<std::unique_ptr<Descriptor>> more = {};  ///< tensors and operations behind it
  ConvProblem problem = {};
};

/// Finalizes `descriptor`, which belongs to the graph of `problem`.
///
/// Errors   AlgorithmRefused: the problem is fused, and this cuDNN cannot compute it on this GPU.
/// Error(device)
void finalize_for(Descriptor& descriptor, const CudnnApi& api, const ConvProblem& problem);

/// Checks problem and tensors, then describes them to cuDNN.
///
/// Errors   those of finalize_for()
[[nodiscard]] ConvGraph make_conv_graph(const TargetDevice& device, const ConvProblem& problem,
                                        const ConvTensors& tensors);

}  // namespace paceline::engine::cuda::cudnn
