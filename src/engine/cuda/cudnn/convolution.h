#pragma once

/// Convolutions by cuDNN: what a Runtime of a GPU returns from make_convolution().

#include <functional>
#include <memory>

#include "engine/cuda/api/cudnn.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/cudnn/plans.h"

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

/// The cudaStream_t that is behind a Stream.
using CudaStreamOf = std::function<void*(Stream)>;

/// The convolution by the first plan that qualifies, with at most `workspace_limit` bytes beside its
/// operands. Unmeasured engines that are compiled at run time are not taken: each would take about a second
/// to plan. Requires: `connection` outlives it.
///
/// Errors   Error(device) that names problem and call, or why no engine qualifies
[[nodiscard]] std::unique_ptr<Convolution> make_convolution(const Connection& connection,
                                                            CudaStreamOf cuda_stream_of,
                                                            const ConvProblem& problem,
                                                            std::size_t workspace_limit);

/// The same by a plan that was chosen otherwise, made for the connection's handle.
[[nodiscard]] std::unique_ptr<Convolution> make_convolution(const Connection& connection,
                                                            CudaStreamOf cuda_stream_of, Plan plan);

}  // namespace paceline::engine::cuda::cudnn
