#pragma once

/// What the CUDA engine needs of a device: memory, streams, events, own kernels, convolutions.
///
/// Three implementations: device_runtime.h speaks to a GPU through tables of CUDA's and cuDNN's functions,
/// host_runtime.h runs everything on the processor, streams in any order that events allow,
/// simulated_runtime.h computes nothing and says how long a GPU would take.
///
/// Errors   every call: Error(device) that names call, device and what the library said
/// Threads  one: that of the engine which owns the runtime

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
#include "engine/cuda/stream.h"

namespace paceline::engine::cuda {

/// What is known of a device before anything runs on it.
struct DeviceFacts {
  std::string name;  ///< "NVIDIA H100 80GB HBM3", "processor (no GPU)"
  bool is_gpu = false;
  std::int64_t memory_bytes = 0;       ///< in all
  std::int64_t free_memory_bytes = 0;  ///< now, of the whole device: other processes count
  int compute_capability = 0;          ///< 90 for 9.0; 0 for no GPU
  int multiprocessors = 1;
  std::string libraries;  ///< "CUDA 13.0 (driver 580.65), cuDNN 9.19.0"
};

/// Work that this device cannot capture, as what() says; it runs when it is put on a stream as usual.
class CannotCapture : public base::Error {
 public:
  explicit CannotCapture(const std::string& text) : Error(base::ErrorKind::device, text) {}
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  /// What the engine is at: the sentences of errors name it. Step -1 and an empty op are left out.
  void set_step(std::int64_t step) { step_ = step; }
  void set_op(std::string_view op) { op_ = op; }

  [[nodiscard]] virtual DeviceFacts facts() const = 0;

  /// Memory on the device, aligned to 256 bytes, contents unspecified; it is freed with the runtime.
  [[nodiscard]] virtual std::byte* allocate(std::size_t bytes) = 0;
  /// Memory of the host that copies to and from the device may read and write while the host goes on.
  [[nodiscard]] virtual std::byte* allocate_pinned(std::size_t bytes) = 0;

  [[nodiscard]] virtual Stream make_stream() = 0;
  [[nodiscard]] virtual Event make_event() = 0;
  /// An event that also notes when it was reached: seconds_between().
  [[nodiscard]] virtual Event make_timed_event() = 0;
  /// A stream for collectives beside `engine`, with work of its own kinds (base/side_stream.h); nullptr: this
  /// runtime has none to give.
  [[nodiscard]] virtual std::unique_ptr<base::SideStream> make_side_stream(Stream engine) {
    (void)engine;
    return nullptr;
  }

  // What follows puts work on a stream and returns at once. Memory that is named must stay as it is until
  // the work is done.

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

  /// `event` marks what `stream` has been given so far.
  virtual void record(Event event, Stream stream) = 0;
  /// What `stream` is given from now on begins after `event`, as it was recorded last.
  virtual void wait(Stream stream, Event event) = 0;

  // Captured sections: work that is recorded once and started again by one call.

  /// Calls `post` and keeps what it puts on `stream`, in order; nothing of it runs. `post` may put kernels,
  /// convolutions, copies and fills on this one stream: it must not wait, record, allocate or use another.
  /// Arguments stay as they are now: what changes from run to run is read from memory. Kept as long as the
  /// runtime.
  ///
  /// Errors   CannotCapture, and nothing is kept; Error(device) for a section that breaks the rules above
  [[nodiscard]] virtual CapturedSection capture(Stream stream, const std::function<void()>& post) = 0;
  /// Puts a captured section on `stream`.
  virtual void replay(Stream stream, CapturedSection section) = 0;

  // These look at what is done, and do not wait.

  /// Whether `event`, as it was recorded last, has been reached; also where it never was recorded.
  [[nodiscard]] virtual bool is_done(Event event) = 0;
  /// From one timed event to another on the device's clock; about 0.5 us exact on a GPU.
  /// Requires   both have been reached
  [[nodiscard]] virtual double seconds_between(Event begin, Event end) = 0;

  // These block the host.

  virtual void synchronize(Stream stream) = 0;
  virtual void synchronize(Event event) = 0;

  /// A convolution by the algorithm of that name; by none, the one that follows from the problem, the kind of
  /// device and the libraries' versions alone, which a fused one does not have. Deterministic;
  /// workspace within kWorkspaceLimit.
  ///
  /// Errors   AlgorithmRefused; Error(device) naming the problem when no implementation qualifies
  [[nodiscard]] virtual std::unique_ptr<Convolution> make_convolution(const ConvProblem& problem,
                                                                      const std::string& algorithm) = 0;
  [[nodiscard]] std::unique_ptr<Convolution> make_convolution(const ConvProblem& problem) {
    return make_convolution(problem, {});
  }
  /// Cost     a GPU: some 10 ms; make_convolution() of these costs nothing until the next call
  /// Errors   as make_convolution()
  [[nodiscard]] virtual ConvCandidates convolution_candidates(const ConvProblem& problem) = 0;

 protected:
  std::int64_t step_ = -1;
  std::string op_;
};

/// The most that a convolution may take beside its operands.
constexpr std::size_t kWorkspaceLimit = std::size_t{256} << 20;

}  // namespace paceline::engine::cuda
