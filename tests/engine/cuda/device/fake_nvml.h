#pragma once

/// An NVML with made-up GPUs, any of whose calls can fail.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/cuda/nvml/api.h"

namespace paceline::engine::cuda {

// What nobody but an imitation says.
constexpr NvmlStatus NVML_ERROR_DRIVER_NOT_LOADED = 9, NVML_ERROR_TIMEOUT = 10, NVML_ERROR_UNKNOWN = 999;
constexpr int NVML_NVLINK_DEVICE_TYPE_GPU = 0;

}  // namespace paceline::engine::cuda

namespace paceline::engine::cuda::test {

struct FakeGpu {
  std::string name = "NVIDIA H100 80GB HBM3";
  std::string bus_id;
  std::vector<std::string> nvlinks;  ///< bus id at the other end of each; "switch"
  std::vector<NvmlProcess> processes;
  bool lost = false;  ///< it has no handle
  std::string uuid = "GPU-4f2a";
  unsigned utilisation = 3, milliwatts = 71'400, sm_mhz = 1980, celsius = 35;
  unsigned long long millijoules = 5'000'000, reasons = 0;
  unsigned generation = 5, width = 16;  ///< of PCIe, now; at most 5 and 16
  unsigned long long ecc_errors = 0;
  bool has_failed_rows = false;
};

/// One at a time, as FakeCuda.
class FakeNvml {
 public:
  explicit FakeNvml(std::vector<FakeGpu> gpus);
  ~FakeNvml();
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  [[nodiscard]] NvmlApi api() const;

  std::vector<FakeGpu> gpus;
  std::map<unsigned, std::string> process_names;
  std::vector<std::pair<int, int>> xids;  ///< (GPU, number): told to who waits for events
  int failing_call = 0;                   ///< from 1 on; 0: none. Names of errors are no calls
  NvmlStatus failing_status = NVML_ERROR_UNKNOWN;
  std::vector<std::string> calls;
  int started = 0, ended = 0;

  [[nodiscard]] bool failed() const {
    return failing_call > 0 && calls.size() >= static_cast<std::size_t>(failing_call);
  }
  [[nodiscard]] std::string failed_call() const {
    return failed() ? calls[static_cast<std::size_t>(failing_call) - 1] : "";
  }
  [[nodiscard]] NvmlStatus called(const char* name);
};

}  // namespace paceline::engine::cuda::test
