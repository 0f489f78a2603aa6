#pragma once

/// Makes and runs convolutions with cuDNN, for a GPU's runtime (device_runtime.h).

#include <memory>

#include "engine/cuda/api/cudnn.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/cudnn/plans.h"
#include "engine/cuda/runtime/device_runtime.h"

namespace paceline::engine::cuda::cudnn {

/// Owns a cuDNN handle for the device that is current when it is made.
///
/// Threads  one
class Connection {
 public:
  /// Errors   Error(device)
  explicit Connection(const CudnnApi& api);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  [[nodiscard]] const CudnnApi& api() const { return api_; }
  [[nodiscard]] Handle handle() const { return handle_; }

 private:
  const CudnnApi& api_;
  Handle handle_ = nullptr;
};

/// A convolution that executes `plan`, which was made for the handle of `connection`.
///
/// Requires  `connection` outlives the result
[[nodiscard]] std::unique_ptr<Convolution> make_convolution(const Connection& connection,
                                                            const NativeStream& streams, Plan plan);

/// A function by which a GPU's runtime opens cuDNN. By default a convolution uses the first plan that
/// qualifies within `workspace_limit` bytes.
///
/// Requires  `api` outlives the result
[[nodiscard]] OpenConvolutions open_cudnn(const CudnnApi& api, std::size_t workspace_limit);

}  // namespace paceline::engine::cuda::cudnn
