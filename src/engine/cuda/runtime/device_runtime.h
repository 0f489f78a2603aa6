#pragma once

/// The Runtime of a GPU. It calls CUDA and cuDNN through tables of function pointers.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/api/cuda.h"
#include "engine/cuda/runtime/runtime.h"

namespace paceline::engine::cuda {

/// Makes the convolutions of a device (cuDNN, or a test's imitation).
class ConvolutionLibrary {
 public:
  virtual ~ConvolutionLibrary() = default;
  [[nodiscard]] virtual std::string version() const = 0;  ///< "cuDNN 9.19.0"
  /// Like Runtime::make_convolution().
  [[nodiscard]] virtual std::unique_ptr<Convolution> make(const ConvProblem& problem,
                                                          const std::string& algorithm) = 0;
  /// Like Runtime::convolution_candidates().
  [[nodiscard]] virtual ConvCandidates candidates(const ConvProblem& problem) = 0;
};

/// Returns the cudaStream_t of a Stream.
using NativeStream = std::function<void*(Stream)>;
/// Opens the library for the current device. `streams` looks up streams of the runtime, which outlives the
/// library.
using OpenConvolutions = std::function<std::unique_ptr<ConvolutionLibrary>(const NativeStream& streams)>;

class DeviceRuntime final : public Runtime {
 public:
  /// `device`: its index among the visible devices.
  ///
  /// Requires  the device exists; `api` outlives the runtime
  DeviceRuntime(const CudaApi& api, int device, const OpenConvolutions& open_convolutions);
  /// Waits for the work of all streams, then frees all memory. Convolutions must be destroyed before.
  ~DeviceRuntime() override;
  DeviceRuntime(const DeviceRuntime&) = delete;
  DeviceRuntime& operator=(const DeviceRuntime&) = delete;

  [[nodiscard]] DeviceFacts facts() const override;
  /// Rounds up to a multiple of 2 MiB, as the driver does, so that the memory plan equals what is used.
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override;
  [[nodiscard]] std::byte* allocate_pinned(std::size_t bytes) override;
  /// Streams after the first get a higher priority than the first.
  [[nodiscard]] Stream make_stream() override;
  [[nodiscard]] Event make_event() override;
  [[nodiscard]] Event make_timed_event() override;
  [[nodiscard]] std::unique_ptr<base::SideStream> make_side_stream(Stream engine) override;

  void copy_to_device(Stream stream, void* dst, const void* pinned_src, std::size_t bytes) override;
  void copy_to_host(Stream stream, void* pinned_dst, const void* src, std::size_t bytes) override;
  void copy_on_device(Stream stream, void* dst, const void* src, std::size_t bytes) override;
  void fill_bytes(Stream stream, void* dst, std::uint8_t value, std::size_t bytes) override;
  using Runtime::launch;
  void launch(Stream stream, int kernel, const void* arguments, std::size_t bytes, const Grid& grid) override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  /// Captures in mode ThreadLocal, so that other workers of the process are not restricted meanwhile.
  [[nodiscard]] CapturedSection capture(Stream stream, const std::function<void()>& post) override;
  void replay(Stream stream, CapturedSection section) override;
  [[nodiscard]] bool is_done(Event event) override;
  [[nodiscard]] double seconds_between(Event begin, Event end) override;
  void synchronize(Stream stream) override;
  void synchronize(Event event) override;
  [[nodiscard]] std::unique_ptr<Convolution> make_convolution(const ConvProblem& problem,
                                                              const std::string& algorithm) override;
  [[nodiscard]] ConvCandidates convolution_candidates(const ConvProblem& problem) override;

 private:
  friend class LocatedConvolution;
  /// Makes the device current on this thread, which another runtime may have used before.
  void enter() const;
  /// Throws Error(device) unless `status` is success. `call`: CUDA's name of the function, with its
  /// arguments.
  void check(CudaStatus status, const std::string& call) const;
  void check(CudaStatus status, const char* call) const {
    if (status != kCudaSuccess) check(status, std::string(call));
  }
  [[nodiscard]] std::string where() const;
  void copy(Stream stream, void* dst, const void* src, std::size_t bytes, int kind);
  [[nodiscard]] Event make_event(unsigned flags);
  [[nodiscard]] CudaStreamHandle native(Stream stream) const;
  [[nodiscard]] CudaEventHandle native(Event event) const;
  /// Makes a captured graph ready to launch. Destroys `graph` in any case.
  [[nodiscard]] CudaGraphExecHandle instantiate(CudaGraphHandle graph) const;
  /// The error after which the GPU is lost to this process; success if it works.
  [[nodiscard]] CudaStatus sticky_status() const;
  /// Throws `error` of a library's call again, with device, step and op in its text. An AlgorithmRefused
  /// stays one unless the GPU is lost.
  [[noreturn]] void fail_located(const base::Error& error) const;
  [[noreturn]] void fail_allocation(CudaStatus status, std::size_t bytes) const;

  const CudaApi& api_;
  int device_;
  std::string name_;
  std::vector<void*> memory_, pinned_;
  std::int64_t allocated_bytes_ = 0;  ///< of memory_
  std::vector<CudaStreamHandle> streams_;
  std::vector<CudaEventHandle> events_;
  std::vector<CudaGraphExecHandle> sections_;
  bool is_capturing_ = false;
  std::unique_ptr<ConvolutionLibrary> convolutions_;
};

/// The memory that an allocation of `bytes` uses on a device: a multiple of 2 MiB.
[[nodiscard]] constexpr std::size_t allocated_bytes(std::size_t bytes) {
  constexpr std::size_t kUnit = std::size_t{2} << 20;
  return bytes == 0 ? kUnit : (bytes + kUnit - 1) / kUnit * kUnit;
}

/// The device of worker `worker` of this host, of `visible` devices.
[[nodiscard]] constexpr int device_of_worker(int worker, int visible) { return worker % visible; }

}  // namespace paceline::engine::cuda
