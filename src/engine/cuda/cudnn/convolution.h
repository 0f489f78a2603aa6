#pragma once

/// Convolutions by cuDNN: what the runtime of a GPU makes them with.

#include <memory>

#include "engine/cuda/api/cudnn.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/cudnn/plans.h"
#include "engine/cuda/device_runtime.h"

namespace paceline::engine::cuda::cudnn {

/// Owns a handle of cuDNN's on the device that is current when it is made. One thread.
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

/// A convolution by a plan that was made for the connection's handle. Requires: `connection` outlives it.
[[nodiscard]] std::unique_ptr<Convolution> make_convolution(const Connection& connection,
                                                            const NativeStream& streams, Plan plan);

/// cuDNN as a runtime's convolutions, each by the first plan that qualifies within kWorkspaceLimit.
/// Requires: `api` outlives what is opened.
[[nodiscard]] OpenConvolutions open_cudnn(const CudnnApi& api);

}  // namespace paceline::engine::cuda::cudnn
