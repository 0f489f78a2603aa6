#pragma once

/// A Runtime with a clock in place of a device: nothing is computed, everything has a predicted duration.
///
/// A kernel or convolution, fused or not, takes the larger of its two floors, bytes through
/// memory and products, and no less than the shortest kernel does; a copy takes its bytes over the link. The
/// host pays for each call. Work begins when the host has put it there, its stream has come so far, the
/// events it waits for have passed and what carries it out (multiprocessors, either direction of the link) is
/// free; what is ready first goes first. So an engine that waits, or launches more than a device's time can
/// hide, shows as a device that idles. The rates are those that were seen on an H100 for large work; a real
/// kernel of a real size is slower, and this clock does not know it.
///
/// Device memory is addresses alone: whoever reads or writes it from the host ends with a fault. Pinned
/// memory is there, and holds zeros until the host writes it.
///
/// Errors   Error(device) when addresses run out, and as Runtime::capture
/// Threads  one. The same calls give the same times.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/recorded_sections.h"
#include "engine/cuda/runtime.h"

namespace paceline::engine::cuda {

/// The simulated machine: an H100, and a host that is slow to launch.
namespace simulated {
constexpr double kBytesPerSecond = 3.0e12;         ///< through device memory: a large copy, as measured
constexpr double kBf16ProductsPerSecond = 798e12;  ///< FLOP/s of a large bf16 matrix product, as measured
constexpr double kFp32ProductsPerSecond = 67e12;   ///< FLOP/s without tensor cores, data sheet
constexpr double kLinkBytesPerSecond = 50e9;       ///< PCIe 5.0 x16, pinned memory, each direction
constexpr double kShortestKernelSeconds = 2e-6;    ///< from the begin of a small kernel to that of the next
constexpr double kCopyLatencySeconds = 5e-6;       ///< of a copy over the link, before its bytes
constexpr double kLaunchSeconds = 10e-6;  ///< of the host, for a kernel, copy, fill or captured section
constexpr double kEventSeconds = 1e-6;    ///< of the host, to record an event or have a stream wait
constexpr double kWakeSeconds = 10e-6;    ///< of the host, from the end of what it waited for
constexpr double kFillPinnedBytesPerSecond = 10e9;  ///< the host's copy into pinned memory before the link's
}  // namespace simulated

/// What carries work out; each does one thing at a time.
enum class Unit { host, compute, link_in, link_out };
[[nodiscard]] const char* name_of(Unit unit);

/// Something that took time.
struct SimulatedSpan {
  Unit unit = Unit::host;
  std::string op;         ///< of set_op() when it was put there, or when it was captured
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
  using Runtime::make_convolution;
  [[nodiscard]] std::unique_ptr<Convolution> make_convolution(const ConvProblem& problem,
                                                              const std::string& algorithm) override;
  [[nodiscard]] ConvCandidates convolution_candidates(const ConvProblem& problem) override;

  /// Puts work of `seconds` on a stream.
  void post(Stream stream, Unit unit, const char* what, double seconds);

  // ---- the clock

  /// The host waits for all that any stream was given.
  void synchronize_all();
  /// Where the host is, and when `unit` will have done all that it was given so far. Seconds from the start.
  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] double end_of(Unit unit) const { return end_of_unit_[static_cast<int>(unit)]; }
  /// Everything since the start or clear_spans(), as it was put there; those of one unit do not overlap.
  [[nodiscard]] std::span<const SimulatedSpan> spans() const { return spans_; }
  void clear_spans() { spans_.clear(); }
  /// Calls that the host paid a launch for, since the start.
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
  /// The first time from `ready` on at which `unit` has nothing else to do for so long; it is taken.
  [[nodiscard]] double take(Unit unit, double ready, double seconds);
  void spend(const char* what, double seconds);
  /// Refuses what must not be in a section.
  void expect_no_capture(const char* call) const;
  void wait_until(double time);

  double now_ = 0;
  double end_of_unit_[4] = {};
  std::map<double, double> busy_[4];      ///< by unit: begin and end of what is not over for the host
  std::vector<double> streams_, events_;  ///< when they will have come so far
  std::vector<SimulatedSpan> spans_;
  RecordedSections<Work> sections_;
  std::int64_t launches_ = 0;
  std::vector<std::pair<void*, std::size_t>> mapped_;
};

}  // namespace paceline::engine::cuda
