#include "engine/cuda/runtime/device_runtime.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "engine/cuda/runtime/device_side_stream.h"
#include "engine/cuda/runtime/load.h"

namespace paceline::engine::cuda {
/// Adds device, step and op to the errors of a convolution.
class LocatedConvolution final : public Convolution {
 public:
  LocatedConvolution(const DeviceRuntime& runtime, std::unique_ptr<Convolution> convolution)
      : runtime_(runtime), convolution_(std::move(convolution)) {}
  [[nodiscard]] std::size_t workspace_bytes() const override { return convolution_->workspace_bytes(); }
  [[nodiscard]] std::string algorithm() const override { return convolution_->algorithm(); }
  [[nodiscard]] std::span<const PassedOver> passed_over() const override {
    return convolution_->passed_over();
  }
  [[nodiscard]] bool is_untried() const override { return convolution_->is_untried(); }
  void run(Stream stream, const ConvOperands& operands) override {
    runtime_.enter();
    try {
      convolution_->run(stream, operands);
    } catch (const base::Error& error) {
      runtime_.fail_located(error);
    }
  }

 private:
  const DeviceRuntime& runtime_;
  std::unique_ptr<Convolution> convolution_;
};

DeviceRuntime::DeviceRuntime(const CudaApi& api, int device, const OpenConvolutions& open_convolutions)
    : api_(api), device_(device) {
  enter();
  std::array<char, 256> name{};
  check(api_.device_name(name.data(), static_cast<int>(name.size()), device_), "cudaGetDeviceProperties");
  name_ = name.data();
  check(api_.load_kernels(), "load_kernels");
  // The destructor does not run if the constructor throws, so allocations are freed here. What is opened last
  // need not be.
  try {
    convolutions_ = open_convolutions([this](Stream stream) -> void* { return native(stream); });
  } catch (const base::Error& error) {
    fail_located(error);
  }
}

DeviceRuntime::~DeviceRuntime() {
  // Errors are ignored here, so that everything is freed; they were or will be thrown elsewhere.
  (void)api_.cudaSetDevice(device_);
  for (auto* stream : streams_) (void)api_.cudaStreamSynchronize(stream);
  convolutions_.reset();
  for (auto* section : sections_) (void)api_.cudaGraphExecDestroy(section);
  for (auto* event : events_) (void)api_.cudaEventDestroy(event);
  for (auto* stream : streams_) (void)api_.cudaStreamDestroy(stream);
  for (void* memory : pinned_) (void)api_.cudaFreeHost(memory);
  for (void* memory : memory_) (void)api_.cudaFree(memory);
  (void)api_.cudaGetLastError();  // clears the error, which does not concern the next runtime
}

void DeviceRuntime::enter() const { check(api_.cudaSetDevice(device_), "cudaSetDevice"); }

std::string DeviceRuntime::where() const {
  std::string text = fmt::format("on GPU {}", device_);
  if (!name_.empty()) text += fmt::format(" ({})", name_);
  return text + place_of(op_);
}

void DeviceRuntime::check(CudaStatus status, const std::string& call) const {
  if (status == kCudaSuccess) return;
  (void)api_.cudaGetLastError();  // clears the error, which the next launch would otherwise report again
  base::fail(base::ErrorKind::device, "--device cuda: {}", describe_cuda_error(api_, status, call, where()));
}

DeviceFacts DeviceRuntime::facts() const {
  enter();
  DeviceFacts facts{.name = name_, .is_gpu = true, .index = device_, .allocated_bytes = allocated_bytes_};
  std::size_t free = 0, total = 0;
  check(api_.cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  facts.memory_bytes = static_cast<std::int64_t>(total);
  facts.free_memory_bytes = static_cast<std::int64_t>(free);
  const auto attribute = [&](int which) {
    int value = 0;
    check(api_.cudaDeviceGetAttribute(&value, which, device_), "cudaDeviceGetAttribute");
    return value;
  };
  facts.compute_capability =
      10 * attribute(kCudaDevAttrComputeCapabilityMajor) + attribute(kCudaDevAttrComputeCapabilityMinor);
  facts.multiprocessors = attribute(kCudaDevAttrMultiProcessorCount);
  int runtime = 0, driver = 0;
  check(api_.cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check(api_.cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  facts.libraries = fmt::format("CUDA {} (driver for {}), {}", cuda_version(runtime), cuda_version(driver),
                                convolutions_->version());
  return facts;
}

void DeviceRuntime::fail_allocation(CudaStatus status, std::size_t bytes) const {
  (void)api_.cudaGetLastError();
  std::size_t free = 0, total = 0;
  const bool known = api_.cudaMemGetInfo(&free, &total) == kCudaSuccess;
  base::fail(base::ErrorKind::device, "--device cuda: {}{}",
             describe_cuda_error(api_, status, fmt::format("cudaMalloc of {:.3f} GB", base::gigabytes(bytes)),
                                 where()),
             known
                 ? fmt::format("; {:.2f} of {:.2f} GB are free; give a smaller batch, or end what else uses "
                               "this GPU (paceline doctor lists it)",
                               base::gigabytes(free), base::gigabytes(total))
                 : "");
}

std::byte* DeviceRuntime::allocate(std::size_t bytes) {
  enter();
  bytes = allocated_bytes(bytes);
  memory_.reserve(memory_.size() + 1);  // so that push_back cannot throw after the allocation
  void* memory = nullptr;
  const auto status = api_.cudaMalloc(&memory, bytes);
  if (status == kCudaErrorMemoryAllocation) fail_allocation(status, bytes);
  check(status, "cudaMalloc");
  memory_.push_back(memory);
  allocated_bytes_ += static_cast<std::int64_t>(bytes);
  return static_cast<std::byte*>(memory);
}

std::byte* DeviceRuntime::allocate_pinned(std::size_t bytes) {
  enter();
  pinned_.reserve(pinned_.size() + 1);
  void* memory = nullptr;
  const auto status = api_.cudaHostAlloc(&memory, bytes == 0 ? 1 : bytes, kCudaHostAllocDefault);
  if (status != kCudaSuccess) check(status, fmt::format("cudaHostAlloc of {} bytes", bytes));
  pinned_.push_back(memory);
  return static_cast<std::byte*>(memory);
}

Stream DeviceRuntime::make_stream() {
  enter();
  streams_.reserve(streams_.size() + 1);
  int least = 0, greatest = 0;
  check(api_.cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  CudaStreamHandle stream = nullptr;
  check(
      api_.cudaStreamCreateWithPriority(&stream, kCudaStreamNonBlocking, streams_.empty() ? least : greatest),
      "cudaStreamCreateWithPriority");
  streams_.push_back(stream);
  return {static_cast<int>(streams_.size()) - 1};
}

Event DeviceRuntime::make_event() { return make_event(kCudaEventDisableTiming); }
Event DeviceRuntime::make_timed_event() { return make_event(kCudaEventDefault); }

Event DeviceRuntime::make_event(unsigned flags) {
  enter();
  events_.reserve(events_.size() + 1);
  CudaEventHandle event = nullptr;
  check(api_.cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags");
  events_.push_back(event);
  return {static_cast<int>(events_.size()) - 1};
}

std::unique_ptr<base::SideStream> DeviceRuntime::make_side_stream(Stream engine) {
  return std::make_unique<DeviceSideStream>(api_, device_, native(engine));
}

CudaStreamHandle DeviceRuntime::native(Stream stream) const {
  base::expects(stream.index >= 0 && stream.index < static_cast<int>(streams_.size()),
                "a stream is one of its runtime's");
  return streams_[static_cast<std::size_t>(stream.index)];
}

CudaEventHandle DeviceRuntime::native(Event event) const {
  base::expects(event.index >= 0 && event.index < static_cast<int>(events_.size()),
                "an event is one of its runtime's");
  return events_[static_cast<std::size_t>(event.index)];
}

void DeviceRuntime::copy(Stream stream, void* dst, const void* src, std::size_t bytes, int kind) {
  if (bytes == 0) return;
  enter();
  check(api_.cudaMemcpyAsync(dst, src, bytes, kind, native(stream)), "cudaMemcpyAsync");
}

void DeviceRuntime::copy_to_device(Stream stream, void* dst, const void* pinned_src, std::size_t bytes) {
  copy(stream, dst, pinned_src, bytes, kCudaMemcpyHostToDevice);
}

void DeviceRuntime::copy_to_host(Stream stream, void* pinned_dst, const void* src, std::size_t bytes) {
  copy(stream, pinned_dst, src, bytes, kCudaMemcpyDeviceToHost);
}

void DeviceRuntime::copy_on_device(Stream stream, void* dst, const void* src, std::size_t bytes) {
  copy(stream, dst, src, bytes, kCudaMemcpyDeviceToDevice);
}

void DeviceRuntime::fill_bytes(Stream stream, void* dst, std::uint8_t value, std::size_t bytes) {
  if (bytes == 0) return;
  enter();
  check(api_.cudaMemsetAsync(dst, value, bytes, native(stream)), "cudaMemsetAsync");
}

void DeviceRuntime::launch(Stream stream, int kernel, const void* arguments, std::size_t bytes,
                           const Grid& grid) {
  enter();
  const auto status = api_.launch(kernel, arguments, bytes, &grid, native(stream));
  if (status != kCudaSuccess)
    check(status, fmt::format("the launch of kernel {} ({} blocks of {} threads)", kernel, grid.blocks,
                              grid.threads));
}

void DeviceRuntime::record(Event event, Stream stream) {
  enter();
  check(api_.cudaEventRecord(native(event), native(stream)), "cudaEventRecord");
}

void DeviceRuntime::wait(Stream stream, Event event) {
  enter();
  check(api_.cudaStreamWaitEvent(native(stream), native(event), 0), "cudaStreamWaitEvent");
}

CapturedSection DeviceRuntime::capture(Stream stream, const std::function<void()>& post) {
  enter();
  sections_.reserve(sections_.size() + 1);
  check(api_.cudaStreamBeginCapture(native(stream), kCudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  CudaGraphHandle graph = nullptr;
  is_capturing_ = true;
  try {
    post();
  } catch (const base::Error& error) {
    is_capturing_ = false;
    // Ends the capture in any case. Its status says whether the capture failed, since libraries throw errors
    // of their own for that.
    const auto status = api_.cudaStreamEndCapture(native(stream), &graph);
    if (graph != nullptr) (void)api_.cudaGraphDestroy(graph);
    (void)api_.cudaGetLastError();
    if (is_of_capture(status)) throw CannotCapture(error.what());
    throw;
  }
  is_capturing_ = false;
  const auto status = api_.cudaStreamEndCapture(native(stream), &graph);
  if (is_of_capture(status)) {
    (void)api_.cudaGetLastError();
    throw CannotCapture(describe_cuda_error(api_, status, "cudaStreamEndCapture", where()));
  }
  check(status, "cudaStreamEndCapture");
  sections_.push_back(instantiate(graph));
  return {static_cast<int>(sections_.size()) - 1};
}

CudaGraphExecHandle DeviceRuntime::instantiate(CudaGraphHandle graph) const {
  CudaGraphExecHandle exec = nullptr;
  const auto status = api_.cudaGraphInstantiate(&exec, graph, 0);
  const auto given_back = api_.cudaGraphDestroy(graph);
  check(status, "cudaGraphInstantiate");
  if (given_back != kCudaSuccess) (void)api_.cudaGraphExecDestroy(exec);
  check(given_back, "cudaGraphDestroy");
  return exec;
}

void DeviceRuntime::replay(Stream stream, CapturedSection section) {
  base::expects(section.index >= 0 && section.index < static_cast<int>(sections_.size()),
                "the runtime captured this section");
  enter();
  check(api_.cudaGraphLaunch(sections_[static_cast<std::size_t>(section.index)], native(stream)),
        "cudaGraphLaunch");
}

bool DeviceRuntime::is_done(Event event) {
  enter();
  const auto status = api_.cudaEventQuery(native(event));
  if (status == kCudaErrorNotReady) {
    (void)api_.cudaGetLastError();  // clears cudaErrorNotReady, which CUDA keeps as an error
    return false;
  }
  check(status, "cudaEventQuery");
  return true;
}

double DeviceRuntime::seconds_between(Event begin, Event end) {
  enter();
  float milliseconds = 0;
  check(api_.cudaEventElapsedTime(&milliseconds, native(begin), native(end)), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

void DeviceRuntime::synchronize(Stream stream) {
  enter();
  check(api_.cudaStreamSynchronize(native(stream)), "cudaStreamSynchronize");
}

void DeviceRuntime::synchronize(Event event) {
  enter();
  check(api_.cudaEventSynchronize(native(event)), "cudaEventSynchronize");
}

std::unique_ptr<Convolution> DeviceRuntime::make_convolution(const ConvProblem& problem,
                                                             const std::string& algorithm) {
  enter();
  try {
    auto made = convolutions_->make(problem, algorithm);
    // A lost GPU compiles nothing either.
    if (!made->passed_over().empty()) check(sticky_status(), "the compiling of a convolution");
    return std::make_unique<LocatedConvolution>(*this, std::move(made));
  } catch (const AlgorithmRefused&) {
    throw;  // not a fault of the device
  } catch (const base::Error& error) {
    fail_located(error);
  }
}

ConvCandidates DeviceRuntime::convolution_candidates(const ConvProblem& problem) {
  enter();
  try {
    return convolutions_->candidates(problem);
  } catch (const base::Error& error) {
    fail_located(error);
  }
}

CudaStatus DeviceRuntime::sticky_status() const {
  // cuDNN has its own CUDA runtime, whose errors ours does not see; but a sticky error is returned by every
  // call that waits for the device. Waiting is forbidden in a capture, and none of its work has run.
  if (is_capturing_) return kCudaSuccess;
  std::size_t free = 0, total = 0;
  const auto status =
      streams_.empty() ? api_.cudaMemGetInfo(&free, &total) : api_.cudaStreamSynchronize(streams_.front());
  (void)api_.cudaGetLastError();
  return is_sticky(status) ? status : kCudaSuccess;
}

void DeviceRuntime::fail_located(const base::Error& error) const {
  // The library may report the failure of an earlier kernel. Without one its own message says more.
  const CudaStatus status = sticky_status();
  std::string text = fmt::format("--device cuda: {}: {}", where(), error.what());
  if (status != kCudaSuccess)
    text += "; " + describe_cuda_error(api_, status, "cudaStreamSynchronize", "");
  else if (const auto* refused = dynamic_cast<const AlgorithmRefused*>(&error))
    throw AlgorithmRefused(text, refused->why());
  throw base::Error(error.kind(), text);
}

}  // namespace paceline::engine::cuda
