#include "engine/cuda/simulated_runtime.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/kernels/traffic.h"

namespace paceline::engine::cuda {
namespace {

using TrafficOf = std::int64_t (*)(const void* arguments);

template <typename Kernel>
std::int64_t traffic_of_bytes(const void* arguments) {
  Kernel kernel;
  std::memcpy(&kernel, arguments, sizeof kernel);
  return traffic_of(kernel);
}

template <std::size_t... number>
constexpr auto traffic_table(std::index_sequence<number...>) {
  return std::array<TrafficOf, sizeof...(number)>{traffic_of_bytes<std::tuple_element_t<number, Kernels>>...};
}
constexpr auto kTraffic = traffic_table(std::make_index_sequence<kKernelCount>{});

double seconds_of_bytes(double bytes) {
  return std::max(simulated::kShortestKernelSeconds, bytes / simulated::kBytesPerSecond);
}

double seconds_of(const ConvProblem& problem) {
  const double products = 2.0 * static_cast<double>(problem.dst_elements()) * problem.kernel_height *
                          problem.kernel_width * problem.channels_in;
  const bool is_short = problem.precision != Precision::f32;
  const auto bytes = static_cast<double>(
      (is_short ? 2 : 4) * (problem.src_elements() + problem.dst_elements() + problem.weight_elements()));
  return std::max(seconds_of_bytes(bytes), products / (is_short ? simulated::kBf16ProductsPerSecond
                                                                : simulated::kFp32ProductsPerSecond));
}

const char* what_of(ConvDirection direction) {
  switch (direction) {
    case ConvDirection::forward:
      return "convolution forward";
    case ConvDirection::backward_data:
      return "convolution backward data";
    case ConvDirection::backward_weights:
      break;
  }
  return "convolution backward weights";
}

constexpr const char* kSimulated = "simulated";

class SimulatedConvolution final : public Convolution {
 public:
  SimulatedConvolution(SimulatedRuntime& runtime, const ConvProblem& problem)
      : runtime_(runtime), what_(what_of(problem.direction)), seconds_(seconds_of(problem)) {}
  [[nodiscard]] std::size_t workspace_bytes() const override { return 0; }
  [[nodiscard]] std::string algorithm() const override { return kSimulated; }
  void run(Stream stream, const ConvOperands&) override {
    runtime_.post(stream, Unit::compute, what_, seconds_);
  }

 private:
  SimulatedRuntime& runtime_;
  const char* const what_;
  const double seconds_;
};

}  // namespace

const char* name_of(Unit unit) {
  constexpr const char* kNames[] = {"host", "compute", "copies in", "copies out"};
  return kNames[static_cast<int>(unit)];
}

SimulatedRuntime::~SimulatedRuntime() {
  for (const auto& [memory, bytes] : mapped_) ::munmap(memory, bytes);
}

DeviceFacts SimulatedRuntime::facts() const {
  constexpr std::int64_t kMemory = 80'000'000'000;
  return {.name = "simulated H100",
          .is_gpu = true,
          .memory_bytes = kMemory,
          .free_memory_bytes = kMemory,
          .compute_capability = 90,
          .multiprocessors = 132,
          .libraries = "a clock"};
}

std::byte* SimulatedRuntime::map(std::size_t bytes, int protection) {
  expect_no_capture("an allocation");
  bytes = std::max<std::size_t>(bytes, 1);
  void* memory = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    base::fail(base::ErrorKind::device, "simulated GPU: no {} bytes of address space are left", bytes);
  mapped_.emplace_back(memory, bytes);
  return static_cast<std::byte*>(memory);
}
std::byte* SimulatedRuntime::allocate(std::size_t bytes) { return map(bytes, PROT_NONE); }
std::byte* SimulatedRuntime::allocate_pinned(std::size_t bytes) { return map(bytes, PROT_READ | PROT_WRITE); }

Stream SimulatedRuntime::make_stream() {
  expect_no_capture("a new stream");
  streams_.push_back(now_);
  return {static_cast<int>(streams_.size()) - 1};
}
Event SimulatedRuntime::make_event() {
  expect_no_capture("a new event");
  events_.push_back(0);
  return {static_cast<int>(events_.size()) - 1};
}

double& SimulatedRuntime::end_of_stream(Stream stream) {
  base::expects(stream.index >= 0 && stream.index < static_cast<int>(streams_.size()),
                "the runtime made this stream");
  return streams_[static_cast<std::size_t>(stream.index)];
}

// ---- the host's time

void SimulatedRuntime::spend(const char* what, double seconds) {
  spans_.push_back({.unit = Unit::host, .op = op_, .what = what, .begin_s = now_, .end_s = now_ + seconds});
  now_ += seconds;
}

void SimulatedRuntime::wait_until(double time) {
  spend("wait", std::max(0.0, time - now_) + simulated::kWakeSeconds);
}

void SimulatedRuntime::expect_no_capture(const char* call) const {
  if (sections_.is_recording())
    base::fail(base::ErrorKind::device,
               "simulated GPU, op {}: {} must not be in a captured section; this is an error of the engine, "
               "please report it",
               op_, call);
}

// ---- work

double SimulatedRuntime::take(Unit unit, double ready, double seconds) {
  auto& busy = busy_[static_cast<int>(unit)];
  while (!busy.empty() && busy.begin()->second <= now_) busy.erase(busy.begin());
  double begin = ready;
  for (const auto& [from, to] : busy) {
    if (begin + seconds <= from) break;
    begin = std::max(begin, to);
  }
  busy.emplace(begin, begin + seconds);
  double& end = end_of_unit_[static_cast<int>(unit)];
  end = std::max(end, begin + seconds);
  return begin;
}

void SimulatedRuntime::run(Stream stream, const Work& work) {
  double& end = end_of_stream(stream);
  const double begin = take(work.unit, std::max(now_, end), work.seconds);
  end = begin + work.seconds;
  spans_.push_back(
      {.unit = work.unit, .op = work.op, .what = work.what, .begin_s = begin, .end_s = begin + work.seconds});
}

void SimulatedRuntime::post(Stream stream, Unit unit, const char* what, double seconds) {
  const Work work{.unit = unit, .what = what, .op = op_, .seconds = seconds};
  if (sections_.is_recording()) {
    if (!(stream == sections_.stream())) expect_no_capture("work of another stream");
    return sections_.add(work);
  }
  spend("launch", simulated::kLaunchSeconds);
  ++launches_;
  run(stream, work);
}

void SimulatedRuntime::copy_to_device(Stream stream, void*, const void*, std::size_t bytes) {
  if (bytes == 0) return;
  const auto count = static_cast<double>(bytes);
  if (!sections_.is_recording()) spend("fill pinned memory", count / simulated::kFillPinnedBytesPerSecond);
  post(stream, Unit::link_in, "copy in",
       simulated::kCopyLatencySeconds + count / simulated::kLinkBytesPerSecond);
}
void SimulatedRuntime::copy_to_host(Stream stream, void*, const void*, std::size_t bytes) {
  if (bytes == 0) return;
  post(stream, Unit::link_out, "copy out",
       simulated::kCopyLatencySeconds + static_cast<double>(bytes) / simulated::kLinkBytesPerSecond);
}
void SimulatedRuntime::copy_on_device(Stream stream, void*, const void*, std::size_t bytes) {
  if (bytes > 0) post(stream, Unit::compute, "copy", seconds_of_bytes(2 * static_cast<double>(bytes)));
}
void SimulatedRuntime::fill_bytes(Stream stream, void*, std::uint8_t, std::size_t bytes) {
  if (bytes > 0) post(stream, Unit::compute, "fill", seconds_of_bytes(static_cast<double>(bytes)));
}

void SimulatedRuntime::launch(Stream stream, int kernel, const void* arguments, std::size_t, const Grid&) {
  base::expects(kernel >= 0 && kernel < kKernelCount, "the kernel is in the table");
  const std::int64_t bytes = kTraffic[static_cast<std::size_t>(kernel)](arguments);
  post(stream, Unit::compute, "kernel", seconds_of_bytes(static_cast<double>(bytes)));
}

std::unique_ptr<Convolution> SimulatedRuntime::make_convolution(const ConvProblem& problem,
                                                                const std::string& algorithm) {
  check(problem);
  if (!algorithm.empty() && algorithm != kSimulated)
    throw AlgorithmRefused(problem, algorithm, "is not an algorithm of the simulated GPU");
  return std::make_unique<SimulatedConvolution>(*this, problem);
}

ConvCandidates SimulatedRuntime::convolution_candidates(const ConvProblem& problem) {
  check(problem);
  return {.algorithms = {kSimulated}, .left_out = {}};
}

// ---- order

void SimulatedRuntime::record(Event event, Stream stream) {
  expect_no_capture("the record of an event");
  spend("record", simulated::kEventSeconds);
  events_[static_cast<std::size_t>(event.index)] = end_of_stream(stream);
}

void SimulatedRuntime::wait(Stream stream, Event event) {
  expect_no_capture("a wait for an event");
  spend("order", simulated::kEventSeconds);
  double& end = end_of_stream(stream);
  end = std::max(end, events_[static_cast<std::size_t>(event.index)]);
}

CapturedSection SimulatedRuntime::capture(Stream stream, const std::function<void()>& post) {
  expect_no_capture("a section");
  const CapturedSection section = sections_.record(stream, post);
  spend("capture", simulated::kCaptureSeconds);
  return section;
}

void SimulatedRuntime::replay(Stream stream, CapturedSection section) {
  expect_no_capture("a section");
  spend("launch", simulated::kLaunchSeconds);
  ++launches_;
  for (const Work& work : sections_.at(section)) run(stream, work);
}

bool SimulatedRuntime::is_done(Event event) {
  expect_no_capture("a look at an event");
  spend("order", simulated::kEventSeconds);
  return events_[static_cast<std::size_t>(event.index)] <= now_;
}
double SimulatedRuntime::seconds_between(Event begin, Event end) {
  spend("order", simulated::kEventSeconds);
  return events_[static_cast<std::size_t>(end.index)] - events_[static_cast<std::size_t>(begin.index)];
}

void SimulatedRuntime::synchronize(Stream stream) {
  expect_no_capture("a wait of the host");
  wait_until(end_of_stream(stream));
}
void SimulatedRuntime::synchronize(Event event) {
  expect_no_capture("a wait of the host");
  wait_until(events_[static_cast<std::size_t>(event.index)]);
}
void SimulatedRuntime::synchronize_all() {
  expect_no_capture("a wait of the host");
  double last = now_;
  for (const double end : streams_) last = std::max(last, end);
  wait_until(last);
}

}  // namespace paceline::engine::cuda
