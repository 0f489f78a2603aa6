#pragma once

/// SimulatedRuntime is a Runtime that computes nothing and predicts how long a GPU would take. It shows
/// whether the engine ever lets the device wait.
///
/// A kernel or convolution takes the longest of three times: its bytes at memory bandwidth, its FLOPs at peak
/// rate, and the duration of the shortest kernel. A copy takes its bytes at link bandwidth. Each call costs
/// time on the host. Work begins when the host has enqueued it, earlier work of its stream is done, the
/// events it waits for are reached and its unit (multiprocessors, or one direction of the link) is free; the
/// unit runs work in the order in which it becomes ready. An engine that waits, or launches more kernels than
/// the device's time can hide, thus shows as an idle device. The rates were measured on an H100 with large
/// work; real kernels of usual sizes are slower than predicted.
///
/// Device memory is reserved addresses: reading or writing it from the host is a segmentation fault. Pinned
/// memory is real and starts as zeros.
///
/// Errors   Error(device) when addresses run out; those of Runtime::capture()
/// Threads  one. The same calls give the same times.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/runtime/recorded_sections.h"
#include "engine/cuda/runtime/runtime.h"

namespace paceline::engine::cuda {

/// The rates of the simulated machine: an H100, and a host that is slow to launch.
namespace simulated {
constexpr double kBytesPerSecond = 3.0e12;         ///< through device memory: a large copy, as measured
constexpr double kBf16ProductsPerSecond = 798e12;  ///< FLOP/s of a large bf16 matrix product, as measured
constexpr double kFp32ProductsPerSecond = 67e12;   ///< FLOP/s without tensor cores, data sheet
constexpr double kLinkBytesPerSecond = 50e9;       ///< PCIe 5.0 x16, pinned memory, each direction
constexpr double kShortestKernelSeconds = 2e-6;    ///< from the begin of a small kernel to that of the next
constexpr double kCopyLatencySeconds = 5e-6;       ///< of a copy over the link, before its first byte
constexpr double kLaunchSeconds = 10e-6;   ///< host time to enqueue a kernel, copy, fill or captured section
constexpr double kCaptureSeconds = 10e-3;  ///< host time to capture a section and make it ready; estimated
constexpr double kEventSeconds = 1e-6;     ///< host time to record an event or to make a stream wait
constexpr double kWakeSeconds = 10e-6;     ///< from the end of the work until the waiting host continues
constexpr double kFillPinnedBytesPerSecond = 10e9;  ///< the host's copy into pinned memory
}  // namespace simulated

/// What does the work; each unit does one thing at a time.
enum class Unit { host, compute, link_in, link_out };
[[nodiscard]] const char* name_of(Unit unit);

/// An interval in which a unit was busy.
struct SimulatedSpan {
  Unit unit = Unit::host;
  std::string op;         ///< the op of set_op() when the work was enqueued or captured
  const char* what = "";  ///< "kernel", "convolution forward", "copy in", "launch", "wait"
  double begin_s = 0, end_s = 0;
  [[nodiscard]] double seconds() const { return end_s - begin_s; }
};

class SimulatedRuntime final : public Runtime {
 public:
  SimulatedRuntime() = default;
  ~SimulatedRuntime() override;
  SimulatedRuntime(const SimulatedRuntime&) = delete;
  SimulatedRuntime& operator=(const SimulatedRuntime&) = delete;

  [[nodiscard]] DeviceFacts facts() const override;
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override;
  [[nodiscard]] std::byte* allocate_pinned(std::size_t bytes) override;
  [[nodiscard]] Stream make_stream() override;
  [[nodiscard]] Event make_event() override;
  [[nodiscard]] Event make_timed_event() override { return make_event(); }

  void copy_to_device(Stream stream, void* dst, const void* pinned_src, std::size_t bytes) override;
  void copy_to_host(Stream stream, void* pinned_dst, const void* src, std::size_t bytes) override;
  void copy_on_device(Stream stream, void* dst, const void* src, std::size_t bytes) override;
  void fill_bytes(Stream stream, void* dst, std::uint8_t value, std::size_t bytes) override;
  using Runtime::launch;
  void launch(Stream stream, int kernel, const void* arguments, std::size_t bytes, const Grid& grid) override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  [[nodiscard]] CapturedSection capture(Stream stream, const std::function<void()>& post) override;
  void replay(Stream stream, CapturedSection section) override;
  [[nodiscard]] bool is_done(Event event) override;
  [[nodiscard]] double seconds_between(Event begin, Event end) override;
  void synchronize(Stream stream) override;
  void synchronize(Event event) override;
  [[nodiscard]] std::unique_ptr<Convolution> make_convolution(const ConvProblem& problem,
                                                              const std::string& algorithm) override;
  [[nodiscard]] ConvCandidates convolution_candidates(const ConvProblem& problem) override;

  /// Enqueues work that takes `seconds` on `unit`.
  void post(Stream stream, Unit unit, const char* what, double seconds);

  // ---- the clock

  /// The host waits for all streams.
  void synchronize_all();
  /// The host's time, and the time at which `unit` will have done all work enqueued so far. Seconds since the
  /// start.
  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] double end_of(Unit unit) const { return end_of_unit_[static_cast<int>(unit)]; }
  /// All intervals since the start or clear_spans(), in the order of enqueuing; those of one unit do not
  /// overlap.
  [[nodiscard]] std::span<const SimulatedSpan> spans() const { return spans_; }
  void clear_spans() { spans_.clear(); }
  /// The number of calls that cost kLaunchSeconds, since the start.
  [[nodiscard]] std::int64_t launches() const { return launches_; }

 private:
  struct Work {
    Unit unit;
    const char* what;
    std::string op;
    double seconds;
  };
  [[nodiscard]] std::byte* map(std::size_t bytes, int protection);
  [[nodiscard]] double& end_of_stream(Stream stream);
  void run(Stream stream, const Work& work);
  /// Reserves the first interval of `seconds`, from `ready` on, in which `unit` is free. Returns its begin.
  [[nodiscard]] double take(Unit unit, double ready, double seconds);
  void spend(const char* what, double seconds);
  /// Fails if a section is being captured, since `call` must not be in one.
  void expect_no_capture(const char* call) const;
  void wait_until(double time);

  double now_ = 0;
  double end_of_unit_[4] = {};
  std::map<double, double> busy_[4];      ///< by unit: begin and end of work that ends after the host's time
  std::vector<double> streams_, events_;  ///< when each is done with its work so far
  std::vector<SimulatedSpan> spans_;
  RecordedSections<Work> sections_;
  std::int64_t launches_ = 0;
  std::vector<std::pair<void*, std::size_t>> mapped_;
};

}  // namespace paceline::engine::cuda
