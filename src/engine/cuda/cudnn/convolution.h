#pragma once

/// Makes and runs convolutions with cuDNN, for a GPU's runtime (device_runtime.h).

#include <map>
#include <memory>
#include <mutex>
#include <vector>

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

/// Keeps cuDNN handles of GPUs, each with the plans that it made, from one runtime of a process to the
/// next. Making the plans of a model takes most of a second, and a study opens the GPU anew several times for
/// each of its cells.
///
/// Threads  any
class KeptPlans {
 public:
  struct Planner;  ///< a handle and its plans
  KeptPlans();
  ~KeptPlans();
  KeptPlans(const KeptPlans&) = delete;
  KeptPlans& operator=(const KeptPlans&) = delete;

  /// One of GPU `device` that no runtime uses; null if there is none.
  [[nodiscard]] std::unique_ptr<Planner> take(int device);
  void give_back(int device, std::unique_ptr<Planner> planner);

 private:
  std::mutex mutex_;
  std::map<int, std::vector<std::unique_ptr<Planner>>> idle_;
};

/// A function by which a GPU's runtime opens cuDNN. By default a convolution uses the first plan that
/// qualifies within `workspace_limit` bytes. `kept`: where the runtime of GPU `device` finds and leaves
/// plans; null: they end with it.
///
/// Requires  `api` and `kept` outlive the result and its libraries
[[nodiscard]] OpenConvolutions open_cudnn(const CudnnApi& api, std::size_t workspace_limit,
                                          KeptPlans* kept = nullptr, int device = 0);

}  // namespace paceline::engine::cuda::cudnn
