#pragma once

/// Runtime is the interface through which the CUDA engine uses a device: memory, streams, events, kernels,
/// convolutions.
///
/// There are three implementations. device_runtime.h drives a GPU through CUDA and cuDNN. host_runtime.h
/// computes on the processor, with streams in any order that events allow. The tests' simulated_runtime.h
/// computes nothing, and predicts how long a GPU would take.
///
/// Errors   every call: Error(device) with call, device and the library's message
/// Threads  one: that of the engine that owns the runtime

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/side_stream.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/kernels/table.h"
#include "engine/cuda/runtime/stream.h"

namespace paceline::engine::cuda {

/// What is known of a device, and what its memory holds at the moment.
struct DeviceFacts {
  std::string name;  ///< "NVIDIA H100 80GB HBM3", "processor (no GPU)"
  bool is_gpu = false;
  int index = 0;                       ///< among the visible devices
  std::int64_t memory_bytes = 0;       ///< total
  std::int64_t free_memory_bytes = 0;  ///< of the whole device, so that other processes reduce it
  std::int64_t allocated_bytes = 0;    ///< by allocate() of this runtime
  int compute_capability = 0;          ///< 90 for 9.0; 0 for no GPU
  int multiprocessors = 1;
  std::string libraries;  ///< "CUDA 13.0 (driver 580.65), cuDNN 9.19.0"
};

/// Thrown for work that this device cannot capture; what() says why. The work can still be launched as usual.
class CannotCapture : public base::Error {
 public:
  explicit CannotCapture(const std::string& text) : Error(base::ErrorKind::device, text) {}
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  /// Sets the step and op that error messages name. Step -1 and an empty op are left out.
  void set_step(std::int64_t step) { step_ = step; }
  void set_op(std::string_view op) { op_ = op; }
  static constexpr std::int64_t kWarmUp = -2;  ///< the step of a warm-up

  /// Promises that from now on nothing is allocated, captured or run for the first time; or takes it back. On
  /// devices of one process that copy to one another these may wait for the collectives of all of them.
  void seal(bool is_sealed) { is_sealed_ = is_sealed; }

  [[nodiscard]] virtual DeviceFacts facts() const = 0;

  /// Memory on the device, aligned to 256 bytes, contents unspecified. It is freed with the runtime.
  [[nodiscard]] virtual std::byte* allocate(std::size_t bytes) = 0;
  /// Host memory that asynchronous copies to and from the device can use. It is freed with the runtime.
  [[nodiscard]] virtual std::byte* allocate_pinned(std::size_t bytes) = 0;

  [[nodiscard]] virtual Stream make_stream() = 0;
  [[nodiscard]] virtual Event make_event() = 0;
  /// An event that also records when it was reached, for seconds_between().
  [[nodiscard]] virtual Event make_timed_event() = 0;
  /// A stream for collectives beside stream `engine` (base/side_stream.h); null if this runtime has none.
  [[nodiscard]] virtual std::unique_ptr<base::SideStream> make_side_stream(Stream engine) {
    (void)engine;
    return nullptr;
  }

  // The following calls enqueue work on a stream and return at once. The memory that they name must stay
  // valid, and what they read unchanged, until the work is done.

  virtual void copy_to_device(Stream stream, void* dst, const void* pinned_src, std::size_t bytes) = 0;
  virtual void copy_to_host(Stream stream, void* pinned_dst, const void* src, std::size_t bytes) = 0;
  virtual void copy_on_device(Stream stream, void* dst, const void* src, std::size_t bytes) = 0;
  virtual void fill_bytes(Stream stream, void* dst, std::uint8_t value, std::size_t bytes) = 0;
  /// Runs kernel number `kernel` of kernels/table.h on `arguments`, which are copied.
  virtual void launch(Stream stream, int kernel, const void* arguments, std::size_t bytes,
                      const Grid& grid) = 0;
  template <typename Kernel>
  void launch(Stream stream, const Kernel& kernel) {
    launch(stream, kKernelNumber<Kernel>, &kernel, sizeof kernel, kernel.grid());
  }

  /// `event` is reached when all work enqueued on `stream` so far is done.
  virtual void record(Event event, Stream stream) = 0;
  /// Work enqueued on `stream` from now on begins after `event`, as recorded last, is reached.
  virtual void wait(Stream stream, Event event) = 0;

  // Captured sections (CUDA graphs): work that is recorded once and then started by one call.

  /// Calls `post` and records what it enqueues on `stream`, in order, without running it. `post` may enqueue
  /// kernels, convolutions, copies and fills on this stream; it must not wait, record events, allocate or use
  /// another stream. Arguments are recorded too: what changes from replay to replay must be read from device
  /// memory. Sections are kept as long as the runtime.
  ///
  /// Errors   CannotCapture, and nothing is kept; Error(device) for a section that breaks these rules
  [[nodiscard]] virtual CapturedSection capture(Stream stream, const std::function<void()>& post) = 0;
  /// Enqueues a captured section on `stream`.
  virtual void replay(Stream stream, CapturedSection section) = 0;

  // The following calls do not wait.

  /// Whether `event`, as recorded last, has been reached; true if it was never recorded.
  [[nodiscard]] virtual bool is_done(Event event) = 0;
  /// The time between two timed events on the device's clock; exact to about 0.5 us on a GPU.
  ///
  /// Requires  both have been reached
  [[nodiscard]] virtual double seconds_between(Event begin, Event end) = 0;

  // The following calls block the host until the work of `stream`, or `event`, is done.

  virtual void synchronize(Stream stream) = 0;
  virtual void synchronize(Event event) = 0;

  /// Makes a convolution with the algorithm named `algorithm`. An empty name means the default, which depends
  /// only on the problem, the kind of device and the versions of the libraries. The convolution is
  /// deterministic and needs at most workspace_limit() of workspace.
  ///
  /// Errors   AlgorithmRefused; Error(device) with the problem if no implementation qualifies
  [[nodiscard]] virtual std::unique_ptr<Convolution> make_convolution(const ConvProblem& problem,
                                                                      const std::string& algorithm) = 0;
  /// The algorithms that are worth measuring for `problem`.
  ///
  /// Cost     on a GPU about 10 ms; making these convolutions is then free until the next call
  /// Errors   like make_convolution()
  [[nodiscard]] virtual ConvCandidates convolution_candidates(const ConvProblem& problem) = 0;

 protected:
  /// ", in step 12, op conv1", for messages.
  [[nodiscard]] std::string place_of(const std::string& op) const {
    const std::string step = step_ >= 0         ? ", in step " + std::to_string(step_)
                             : step_ == kWarmUp ? ", in the warm-up"
                                                : "";
    return step + (op.empty() ? op : ", op " + op);
  }

  std::int64_t step_ = -1;
  std::string op_;
  bool is_sealed_ = false;
};

/// Whether a GPU of this compute capability has units for bf16, or for fp16. 0, no GPU: loops compute both.
[[nodiscard]] constexpr bool has_bf16_units(int compute_capability) {
  return compute_capability == 0 || compute_capability >= 80;
}
[[nodiscard]] constexpr bool has_f16_units(int compute_capability) {
  return compute_capability == 0 || compute_capability >= 70;
}

/// The most bytes of workspace that a convolution may use on a device with `memory_bytes` in all: a sixteenth
/// of them in steps of 256 MB, from 256 MB to 2 GB.
///
/// Workspace grows with the batch. Where the limit refuses the engine that cuDNN proposes first, the next one
/// may be many times slower (fp32 at batch 512 under a limit of 256 MB: 6 times on an H200).
[[nodiscard]] constexpr std::size_t workspace_limit(std::int64_t memory_bytes) {
  constexpr std::int64_t kUnit = std::int64_t{256} << 20;
  return static_cast<std::size_t>(std::clamp(memory_bytes / 16 / kUnit, std::int64_t{1}, std::int64_t{8}) *
                                  kUnit);
}

}  // namespace paceline::engine::cuda
