#pragma once

/// Device 0 as the probe uses it: through the same tables and module as the program.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "engine/cuda/api/cuda.h"
#include "engine/cuda/api/cudnn.h"
#include "engine/cuda/cudnn/convolution.h"

namespace paceline::probe {

namespace cuda = paceline::engine::cuda;

/// cuDNN of this machine. Errors   Error(device)
[[nodiscard]] cuda::CudnnApi open_cudnn();

class Gpu {
 public:
  /// Errors   Error(device) without module, driver or device
  Gpu();
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  [[nodiscard]] const cuda::CudaApi& api() const { return api_; }
  [[nodiscard]] std::string name() const;
  /// bf16 where the GPU has units for it.
  [[nodiscard]] engine::Precision precision() const;
  /// Of the GPU's engines (engine/cuda/runtime/runtime.h).
  [[nodiscard]] std::size_t workspace_limit() const;
  [[nodiscard]] cuda::CudaStreamHandle stream() const { return stream_; }
  [[nodiscard]] void* allocate(std::size_t bytes);
  [[nodiscard]] void* allocate_pinned(std::size_t bytes);
  /// Frees what was allocated on the device.
  void free_all();
  void upload(void* dst, const void* src, std::size_t bytes);
  void download(void* dst, const void* src, std::size_t bytes);
  void fill(void* dst, int byte, std::size_t bytes);
  void wait();
  /// Device time of what `work` puts on the stream, in milliseconds.
  [[nodiscard]] double milliseconds(const std::function<void()>& work);
  /// Captures what `work` puts on the stream, without running it.
  [[nodiscard]] cuda::CudaGraphExecHandle capture(const std::function<void()>& work);
  /// Puts what was captured on the stream.
  void replay(cuda::CudaGraphExecHandle captured);
  void check(cuda::CudaStatus status, const char* call) const;

 private:
  const cuda::CudaApi& api_;
  const int capability_;
  cuda::CudaStreamHandle stream_ = nullptr;
  cuda::CudaEventHandle begin_ = nullptr, end_ = nullptr;
  std::vector<void*> memory_, pinned_;
  std::vector<cuda::CudaGraphExecHandle> captured_;
};

/// "engine 62 (2=5 14=1)"
[[nodiscard]] std::string name_of(const cuda::cudnn::EngineFacts& engine);

/// Distinct convolutions and dense layers of resnet18-cifar, three directions each.
[[nodiscard]] std::vector<cuda::ConvProblem> resnet_problems(int batch, engine::Precision precision);

/// Random numbers in [-1, 1) as they lie in memory.
[[nodiscard]] std::vector<std::byte> random_numbers(std::int64_t count, engine::Precision precision,
                                                    std::uint32_t seed);

/// Memory for one convolution after the other. It holds random numbers from the start, since a product of
/// zeros takes less power and less time.
struct Operands {
  Operands(Gpu& gpu, const cuda::ConvProblem& problem, std::size_t workspace);
  cuda::ConvOperands pointers;
  std::size_t src_bytes, dst_bytes, weight_bytes;
};

}  // namespace paceline::probe
