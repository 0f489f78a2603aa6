#pragma once

/// A CUDA runtime that has no GPU: memory is the host's, work runs when it is put on a stream, kernels run as
/// loops. A capture records what is put on its stream, and a graph's launch runs that. Any of its calls can
/// be made to fail.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/api/cuda.h"

namespace paceline::engine::cuda::test {

/// One at a time: functions of a C table have no object, so that the table speaks to the one that lives.
class FakeCuda {
 public:
  FakeCuda();
  ~FakeCuda();
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  [[nodiscard]] const CudaApi& api() const { return api_; }

  // What the machine is; may be changed before a call.
  int devices = 2;
  int driver_version = 13000;
  int capability = 90;
  bool has_uuids = true;
  std::size_t memory_bytes = std::size_t{8} << 30;
  /// What memory holds before it is written: NaN of every type.
  std::uint8_t fresh_byte = 0xff;
  /// Of cudaGetDeviceCount, as without a driver.
  CudaStatus count_status = kCudaSuccess;
  /// Of cudaEventQuery, which is no failure: kCudaErrorNotReady while the device is busy.
  CudaStatus query_status = kCudaSuccess;
  /// The device's clock, which events note; a test's work moves it. While it stands at 0 events are 1 ms
  /// apart.
  double now_ms = 0;
  /// Runs a kernel; nothing: launches do nothing.
  std::function<void(int kernel, const void* arguments, const Grid& grid)> run_kernel;

  /// Call number `call`, from 1 on, fails with `status`. 0: none does. The names of errors are no calls.
  int failing_call = 0;
  /// Within a capture, work on a stream fails as if it were none that can be captured.
  bool refuses_captures = false;
  CudaStatus failing_status = kCudaErrorLaunchFailure;

  // What has happened.
  std::vector<std::string> calls;
  int current_device = -1;
  std::set<void*> memory, pinned;
  std::set<CudaStreamHandle> streams;
  std::set<CudaEventHandle> events;
  std::set<CudaGraphHandle> graphs;
  std::set<CudaGraphExecHandle> graph_execs;
  int graph_launches = 0;
  std::size_t used_bytes = 0;
  std::string misuse;  ///< not empty: something was freed twice, or a handle is none

  [[nodiscard]] bool failed() const {
    return failing_call > 0 && std::cmp_less_equal(failing_call, calls.size());
  }
  /// The name of the call that failed.
  [[nodiscard]] std::string failed_call() const {
    return failed() ? calls[static_cast<std::size_t>(failing_call) - 1] : "";
  }
  /// What was made and not given back; empty: nothing.
  [[nodiscard]] std::string left() const;

  /// Work of a library on a stream: it runs, or becomes part of the capture. No call of CUDA's.
  void put(CudaStreamHandle stream, std::function<void()> work);
  /// Counts a call. Returns what it has to return before it does anything: success but when it has to fail.
  [[nodiscard]] CudaStatus called(const char* name);

 private:
  CudaApi api_{};
  CudaStatus last_error_ = kCudaSuccess;
  std::map<void*, std::size_t> sizes_;
  std::map<CudaEventHandle, double> recorded_ms_;
  using Section = std::vector<std::function<void()>>;
  CudaStreamHandle captured_ = nullptr;  ///< null: nothing is captured
  bool capture_is_lost_ = false;
  Section section_;
  std::map<CudaGraphHandle, Section> graph_work_;
  std::map<CudaGraphExecHandle, Section> exec_work_;
  friend struct FakeCudaFunctions;
};

}  // namespace paceline::engine::cuda::test
