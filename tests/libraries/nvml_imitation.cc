// A libnvidia-ml.so.1 of two GPUs, for runs of the program as a user has them: what is found in it by name is
// called as NVIDIA declares it. The second GPU has a narrow link, is too hot, and has a stranger on it. With
// NVML_IMITATION_LOST in the environment there is a third GPU between the two, which the driver has lost.

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6, kGpuIsLost = 15;

int which(void* device) { return static_cast<int>(reinterpret_cast<long>(device)) - 1; }

bool has_lost_one() { return std::getenv("NVML_IMITATION_LOST") != nullptr; }

const char* const kBusIds[] = {"00000000:01:00.0", "00000000:C1:00.0"};

int give(unsigned* to, unsigned value) {
  *to = value;
  return kSuccess;
}

int give_text(char* to, unsigned bytes, const char* text) {
  std::snprintf(to, bytes, "%s", text);
  return kSuccess;
}

}  // namespace

extern "C" {

struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct Pci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct Process {
  unsigned pid;
  unsigned long long used_memory;
  unsigned instance, compute_instance;
};

int nvmlInit_v2() { return kSuccess; }
int nvmlShutdown() { return kSuccess; }
const char* nvmlErrorString(int) { return "Unknown Error"; }
int nvmlSystemGetDriverVersion(char* text, unsigned bytes) { return give_text(text, bytes, "580.65.06"); }
int nvmlSystemGetCudaDriverVersion_v2(int* version) { return *version = 13000, kSuccess; }
int nvmlSystemGetProcessName(unsigned pid, char* text, unsigned bytes) {
  return pid == 41 ? give_text(text, bytes, "/usr/bin/python3") : kNotFound;
}
int nvmlDeviceGetCount_v2(unsigned* count) { return give(count, has_lost_one() ? 3 : 2); }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (has_lost_one() && index == 1) return kGpuIsLost;
  if (has_lost_one() && index == 2) index = 1;
  if (index > 1) return kInvalidArgument;
  *device = reinterpret_cast<void*>(static_cast<long>(index) + 1);
  return kSuccess;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  for (unsigned index = 0; index < 2; ++index)
    if (std::strcmp(bus_id, kBusIds[index]) == 0)
      return nvmlDeviceGetHandleByIndex_v2(has_lost_one() ? 2 * index : index, device);
  return kNotFound;
}
int nvmlDeviceGetIndex(void* device, unsigned* index) {
  return give(index, static_cast<unsigned>(which(device)));
}
int nvmlDeviceGetName(void*, char* text, unsigned bytes) {
  return give_text(text, bytes, "NVIDIA H100 80GB HBM3");
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned bytes) {
  return give_text(text, bytes, which(device) == 0 ? "GPU-aaaa1111-0000" : "GPU-bbbb2222-0000");
}
int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  return give_text(pci->bus_id, sizeof pci->bus_id, kBusIds[which(device)]);
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {85'899'345'920ULL, 84'699'345'920ULL, 1'200'000'000ULL};
  return kSuccess;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void*, Utilization* busy) {
  *busy = {97, 40};
  return kSuccess;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) { return give(milliwatts, 650'000); }
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) { return give(milliwatts, 700'000); }
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  static unsigned long long counter = 0;
  return *millijoules = counter += 1000, kSuccess;
}
int nvmlDeviceGetClockInfo(void*, int, unsigned* mhz) { return give(mhz, 1755); }
int nvmlDeviceGetMaxClockInfo(void*, int, unsigned* mhz) { return give(mhz, 1980); }
int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* bits) {
  return *bits = which(device) == 1 ? 0x40 : 0x1, kSuccess;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* generation) { return give(generation, 5); }
int nvmlDeviceGetCurrPcieLinkWidth(void* device, unsigned* width) {
  return give(width, which(device) == 1 ? 8 : 16);
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) { return give(generation, 5); }
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* width) { return give(width, 16); }
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) { return give(celsius, 71); }
int nvmlDeviceGetPerformanceState(void*, int* state) { return *state = 0, kSuccess; }
int nvmlDeviceGetFanSpeed(void*, unsigned*) { return kNotSupported; }
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* processes) {
  *count = which(device) == 1 ? 1 : 0;
  if (*count == 1) processes[0] = {41, 1'100'000'000, 0, 0};
  return kSuccess;
}

}  // extern "C"
