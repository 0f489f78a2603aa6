#pragma once

/// Devices as cuDNN wants them described, so that plans can be made for them where there is none.
///
/// cuDNN 9 asks for exactly these 23 keys. The figures are of NVIDIA's data sheets and of the table of
/// compute capabilities in CUDA's programming guide; pciDeviceId and cudaDeviceId are of no device.

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "engine/cuda/cudnn/graphs.h"

namespace paceline::engine::cuda::cudnn::test {

struct DescribedDevice {
  const char* short_name;
  const char* name;
  int capability;  ///< 900 for 9.0
  int multiprocessors;
  int shared_bytes_of_block;  ///< the most that a block may ask for
  int blocks_of_multiprocessor, threads_of_multiprocessor;
  std::int64_t memory_bytes, cache_bytes;
  int clock_khz, memory_clock_khz;
};

inline constexpr DescribedDevice kH100 = {"H100", "NVIDIA H100 80GB HBM3", 900,      132,     227 << 10, 32,
                                          2048,   std::int64_t{80} << 30,  50 << 20, 1980000, 2619000};
inline constexpr DescribedDevice kA100 = {"A100", "NVIDIA A100-SXM4-80GB", 800,      108,     163 << 10, 32,
                                          2048,   std::int64_t{80} << 30,  40 << 20, 1410000, 1593000};
inline constexpr DescribedDevice kB200 = {"B200", "NVIDIA B200",           1000,      148,     227 << 10, 32,
                                          2048,   std::int64_t{180} << 30, 126 << 20, 1965000, 3996000};
inline constexpr DescribedDevice kT4 = {
    "T4", "Tesla T4", 750, 40, 64 << 10, 16, 1024, std::int64_t{15} << 30, 4 << 20, 1590000, 5001000};
inline constexpr DescribedDevice kRtx2080Ti = {
    "RTX2080Ti", "NVIDIA GeForce RTX 2080 Ti", 750,        68,      64 << 10, 16,
    1024,        std::int64_t{11} << 30,       5632 << 10, 1545000, 7000000};
inline constexpr DescribedDevice kA10 = {"A10", "NVIDIA A10",           860,     72,      99 << 10, 16,
                                         1536,  std::int64_t{22} << 30, 6 << 20, 1695000, 6251000};
inline constexpr DescribedDevice kL4 = {
    "L4", "NVIDIA L4", 890, 58, 99 << 10, 24, 1536, std::int64_t{22} << 30, 48 << 20, 2040000, 6251000};
inline constexpr DescribedDevice kRtx4090 = {
    "RTX4090", "NVIDIA GeForce RTX 4090", 890,      128,     99 << 10, 24,
    1536,      std::int64_t{24} << 30,    72 << 20, 2520000, 10501000};
inline constexpr DescribedDevice kRtx5090 = {
    "RTX5090", "NVIDIA GeForce RTX 5090", 1200,     170,     99 << 10, 24,
    1536,      std::int64_t{32} << 30,    96 << 20, 2407000, 14001000};
/// All of them.
inline constexpr DescribedDevice kDescribedDevices[] = {kH100, kA100, kB200,    kT4,     kRtx2080Ti,
                                                        kA10,  kL4,   kRtx4090, kRtx5090};

inline std::string json_of(const DescribedDevice& device) {
  return fmt::format(
      R"({{"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
      R"("multiProcessorCount":{},"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
      R"("maxSharedMemoryPerBlockOptin":{},"reservedSharedMemoryPerBlock":{},"maxRegistersPerSM":65536,)"
      R"("maxCtasPerSM":{},"maxThreadsPerBlock":1024,"maxThreadsPerSM":{},"totalGlobalMem":{},)"
      R"("pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"smClockRateKHz":{},"memClockRateKHz":{},)"
      R"("l2CacheSize":{},"deviceName":"{}","deviceVer":{},"driverVer":13000,"cudaDeviceId":0}})",
      device.multiprocessors, device.shared_bytes_of_block, device.capability < 800 ? 0 : 1024,
      device.blocks_of_multiprocessor, device.threads_of_multiprocessor, device.memory_bytes,
      device.clock_khz, device.memory_clock_khz, device.cache_bytes, device.name, device.capability);
}

/// A device given by cuDNN's JSON text of its properties.
///
/// Errors   Error(device) if cuDNN does not accept the text
inline TargetDevice target_of(const CudnnApi& api, std::string_view json) {
  Descriptor properties({&api, "a described device"}, DescriptorType::device_properties);
  properties.set(Attribute::device_properties_json, json).finalize();
  return {api, std::move(properties)};
}

}  // namespace paceline::engine::cuda::cudnn::test
