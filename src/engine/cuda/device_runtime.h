#pragma once

/// The Runtime of a GPU, over tables of CUDA's and cuDNN's functions.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/api/cuda.h"
#include "engine/cuda/runtime.h"

namespace paceline::engine::cuda {

/// What makes the convolutions of a device.
class ConvolutionLibrary {
 public:
  virtual ~ConvolutionLibrary() = default;
  [[nodiscard]] virtual std::string version() const = 0;  ///< "cuDNN 9.19.0"
  /// As Runtime::make_convolution.
  [[nodiscard]] virtual std::unique_ptr<Convolution> make(const ConvProblem& problem,
                                                          const std::string& algorithm) = 0;
  /// As Runtime::convolution_candidates.
  [[nodiscard]] virtual ConvCandidates candidates(const ConvProblem& problem) = 0;
};

/// The cudaStream_t of a stream.
using NativeStream = std::function<void*(Stream)>;
/// Opens the library for the device that is current, with the streams of its runtime, which outlives it.
using OpenConvolutions = std::function<std::unique_ptr<ConvolutionLibrary>(const NativeStream& streams)>;

class DeviceRuntime final : public Runtime {
 public:
  /// `api` outlives the runtime. `device`: its number among those that are visible; it is there.
  DeviceRuntime(const CudaApi& api, int device, const OpenConvolutions& open_convolutions);
  /// Waits for what the streams were given, then frees all that was allocated. Convolutions must be gone.
  ~DeviceRuntime() override;
  DeviceRuntime(const DeviceRuntime&) = delete;
  DeviceRuntime& operator=(const DeviceRuntime&) = delete;

  [[nodiscard]] DeviceFacts facts() const override;
  /// Takes whole multiples of 2 MiB, as the driver does: the sum of what is asked for is then what it takes.
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override;
  [[nodiscard]] std::byte* allocate_pinned(std::size_t bytes) override;
  /// The device prefers work of later streams to work of the first.
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
  /// In mode ThreadLocal: other workers of the process may do what they like meanwhile.
  [[nodiscard]] CapturedSection capture(Stream stream, const std::function<void()>& post) override;
  void replay(Stream stream, CapturedSection section) override;
  [[nodiscard]] bool is_done(Event event) override;
  [[nodiscard]] double seconds_between(Event begin, Event end) override;
  void synchronize(Stream stream) override;
  void synchronize(Event event) override;
  using Runtime::make_convolution;
  [[nodiscard]] std::unique_ptr<Convolution> make_convolution(const ConvProblem& problem,
                                                              const std::string& algorithm) override;
  [[nodiscard]] ConvCandidates convolution_candidates(const ConvProblem& problem) override;

 private:
  friend class LocatedConvolution;
  /// Makes the device current on this thread: another runtime may have used the thread.
  void enter() const;
  /// Throws Error(device) unless `status` is success. `call`: CUDA's name and what it was given.
  void check(CudaStatus status, const std::string& call) const;
  void check(CudaStatus status, const char* call) const {
    if (status != kCudaSuccess) check(status, std::string(call));
  }
  [[nodiscard]] std::string where() const;
  void copy(Stream stream, void* dst, const void* src, std::size_t bytes, int kind);
  [[nodiscard]] Event make_event(unsigned flags);
  [[nodiscard]] CudaStreamHandle native(Stream stream) const;
  [[nodiscard]] CudaEventHandle native(Event event) const;
  /// Throws `error`, which a library's call has thrown, with device, step and op.
  /// Makes a captured graph ready to start; it is given back whether or not that works.
  [[nodiscard]] CudaGraphExecHandle instantiate(CudaGraphHandle graph) const;
  [[noreturn]] void fail_located(const base::Error& error) const;
  [[noreturn]] void fail_allocation(CudaStatus status, std::size_t bytes) const;

  const CudaApi& api_;
  int device_;
  std::string name_;
  std::vector<void*> memory_, pinned_;
  std::vector<CudaStreamHandle> streams_;
  std::vector<CudaEventHandle> events_;
  std::vector<CudaGraphExecHandle> sections_;
  bool is_capturing_ = false;
  std::unique_ptr<ConvolutionLibrary> convolutions_;
};

/// Memory that an allocation of `bytes` takes on a device.
[[nodiscard]] constexpr std::size_t allocated_bytes(std::size_t bytes) {
  constexpr std::size_t kUnit = std::size_t{2} << 20;
  return bytes == 0 ? kUnit : (bytes + kUnit - 1) / kUnit * kUnit;
}

/// The device that worker `worker` of this host computes on, of `visible`: workers take turns.
[[nodiscard]] constexpr int device_of_worker(int worker, int visible) { return worker % visible; }

}  // namespace paceline::engine::cuda
