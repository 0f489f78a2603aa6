#include "engine/cuda/runtime/device_side_stream.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>

#include "engine/cuda/kernels/table.h"
#include "engine/cuda/runtime/stream.h"

namespace paceline::engine::cuda {
namespace {

/// Hexadecimal digits; empty if all bytes are 0, as where a driver knows none.
std::string uuid_text(std::span<const unsigned char> bytes) {
  if (std::ranges::all_of(bytes, [](unsigned char byte) { return byte == 0; })) return "";
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

DeviceSideStream::DeviceSideStream(const CudaApi& api, int device, CudaStreamHandle engine)
    : api_(api), device_(device), engine_(engine) {
  try {
    enter();
    std::array<char, 64> id{};
    check(api_.cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), device_),
          "cudaDeviceGetPCIBusId");
    bus_id_ = id.data();
    std::array<unsigned char, 16> uuid{};
    check(api_.device_uuid(uuid.data(), device_), "cudaGetDeviceProperties");
    uuid_ = uuid_text(uuid);
    int least = 0, greatest = 0;
    check(api_.cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    stream_ = make_stream(greatest);
    idle_ = make_stream(greatest);
    engine_came_ = make_event(kCudaEventDisableTiming);
    anchor_ = make_event(kCudaEventDefault);
  } catch (...) {
    free();
    throw;
  }
}

DeviceSideStream::~DeviceSideStream() { free(); }

void DeviceSideStream::free() noexcept {
  (void)api_.cudaSetDevice(device_);
  if (stream_ != nullptr) (void)api_.cudaStreamSynchronize(stream_);
  for (const Mark& mark : marks_) (void)api_.cudaEventDestroy(mark.event);
  for (auto* event : {engine_came_, anchor_})
    if (event != nullptr) (void)api_.cudaEventDestroy(event);
  for (auto* stream : {stream_, idle_})
    if (stream != nullptr) (void)api_.cudaStreamDestroy(stream);
  (void)api_.cudaGetLastError();
}

void DeviceSideStream::check(CudaStatus status, const char* call) const {
  if (status == kCudaSuccess) return;
  (void)api_.cudaGetLastError();
  base::fail(base::ErrorKind::device, "--device cuda: {}",
             describe_cuda_error(api_, status, call,
                                 fmt::format("on GPU {}, on the stream of its collectives", device_)));
}

CudaStreamHandle DeviceSideStream::make_stream(int priority) const {
  CudaStreamHandle stream = nullptr;
  check(api_.cudaStreamCreateWithPriority(&stream, kCudaStreamNonBlocking, priority),
        "cudaStreamCreateWithPriority");
  return stream;
}

CudaEventHandle DeviceSideStream::make_event(unsigned flags) const {
  CudaEventHandle event = nullptr;
  check(api_.cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags");
  return event;
}

void DeviceSideStream::enter() const { check(api_.cudaSetDevice(device_), "cudaSetDevice"); }

void DeviceSideStream::follow_engine() {
  enter();
  check(api_.cudaEventRecord(engine_came_, engine_), "cudaEventRecord");
  check(api_.cudaStreamWaitEvent(stream_, engine_came_, 0), "cudaStreamWaitEvent");
}

void DeviceSideStream::engine_follows(int mark) {
  enter();
  check(api_.cudaStreamWaitEvent(engine_, at(mark).event, 0), "cudaStreamWaitEvent");
}

void DeviceSideStream::tree_sum(float* first, int parts, std::size_t stride, std::size_t count, float* dst) {
  enter();
  for_each_tree_level(first, parts, stride, count, dst, [&](const ArrayTreeLevel& level) {
    const Grid grid = level.grid();
    check(api_.launch(kKernelNumber<ArrayTreeLevel>, &level, sizeof level, &grid, stream_),
          "the launch of a sum over ranks");
  });
}

int DeviceSideStream::make_mark() {
  enter();
  marks_.reserve(marks_.size() + 1);
  marks_.push_back({.event = make_event(kCudaEventDefault)});
  return static_cast<int>(marks_.size()) - 1;
}

void DeviceSideStream::set(int mark) {
  enter();
  Mark& one = marks_[static_cast<std::size_t>(mark)];
  one.is_set = true;
  one.is_before_anchor = false;
  check(api_.cudaEventRecord(one.event, stream_), "cudaEventRecord");
}

bool DeviceSideStream::is_done(int mark) const {
  if (!at(mark).is_set) return true;
  enter();
  const auto status = api_.cudaEventQuery(at(mark).event);
  if (status == kCudaErrorNotReady) {
    (void)api_.cudaGetLastError();  // clears cudaErrorNotReady, which CUDA keeps as an error
    return false;
  }
  check(status, "cudaEventQuery");
  return true;
}

void DeviceSideStream::wait(int mark) {
  enter();
  check(api_.cudaEventSynchronize(at(mark).event), "cudaEventSynchronize");
}

void DeviceSideStream::renew_anchor() {
  for (std::size_t mark = 0; mark < marks_.size(); ++mark)
    marks_[mark].is_before_anchor = is_done(static_cast<int>(mark));
  check(api_.cudaEventRecord(anchor_, idle_), "cudaEventRecord");
  check(api_.cudaEventSynchronize(anchor_), "cudaEventSynchronize");
  anchor_at_ = base::Clock::now();
}

base::TimePoint DeviceSideStream::done_at(int mark) {
  enter();
  if (!at(mark).is_before_anchor) renew_anchor();
  float milliseconds = 0;
  check(api_.cudaEventElapsedTime(&milliseconds, at(mark).event, anchor_), "cudaEventElapsedTime");
  return anchor_at_ - std::chrono::duration_cast<base::Clock::duration>(
                          std::chrono::duration<double, std::milli>(milliseconds));
}

}  // namespace paceline::engine::cuda
