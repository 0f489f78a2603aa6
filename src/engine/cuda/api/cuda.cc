#include "engine/cuda/api/cuda.h"

namespace paceline::engine::cuda {
namespace {

/// What to do about an error of a machine or program that is not set up for its GPU; empty for other errors.
std::string next_step(CudaStatus status) {
  switch (status) {
    case 3:
      return "the driver did not start: see whether nvidia-smi works for this user, and start containers with "
             "GPUs (docker run --gpus all)";
    case 34:
      return "the libcuda.so.1 that the loader finds is the CUDA toolkit's stub, which only serves linking: "
             "take the folder stubs out of LD_LIBRARY_PATH";
    case 46:
      return "another process has the GPU for itself (compute mode exclusive), or MPS takes no more clients: "
             "end that process, which nvidia-smi lists, or let several share it (nvidia-smi --compute-mode=0)";
    case 209:
    case 222:
      return "this build has no kernels for this kind of GPU, or the driver is too old to compile them: build "
             "them for all kinds (./x build --all-gpus), or install a newer driver";
    case 802:
      return "GPUs behind NVSwitch (HGX, DGX) need the service nvidia-fabricmanager, in the driver's version: "
             "systemctl start nvidia-fabricmanager";
    case 803:
      return "libcuda.so.1 and the kernel's driver are of different versions, as after an update: restart the "
             "machine, or the container with the host's driver";
    case 804:
      return "the package cuda-compat serves GPUs of data centres only: take its folder out of "
             "LD_LIBRARY_PATH, and install a newer driver if this one is too old";
    case 999:
      return "the kernel's module nvidia_uvm may not be loaded, or be broken after a suspend: run nvidia-modprobe "
             "-u as root, or restart the machine";
    default:
      return "";
  }
}

}  // namespace

bool is_sticky(CudaStatus status) {
  switch (status) {  // errors after which, by CUDA's documentation, the process must be terminated
    case 214:        // ECC uncorrectable
    case 220:        // NVLink uncorrectable
    case 226:        // contained
    case 700:        // illegal address
    case 702:        // launch timeout
    case 709:        // context is destroyed
    case 710:        // assert
    case 714:        // hardware stack error
    case 715:        // illegal instruction
    case 716:        // misaligned address
    case 717:        // invalid address space
    case 718:        // invalid program counter
    case 719:        // launch failure
    case 721:        // tensor memory leak
    case 810:        // the server of MPS ended this client
      return true;
    default:
      return false;
  }
}

std::string describe_cuda_error(const CudaApi& api, CudaStatus status, const std::string& call,
                                const std::string& where) {
  const char* text = api.cudaGetErrorString(status);
  const char* name = api.cudaGetErrorName(status);
  const std::string step =
      is_sticky(status) ? "earlier work on the GPU may be the cause; the GPU is lost to this process, which "
                          "must end: --resume goes on from the last checkpoint"
                        : next_step(status);
  return fmt::format("{} failed{}{}: {} ({}){}{}", call, where.empty() ? "" : " ", where,
                     text == nullptr ? "unknown error" : text,
                     name == nullptr ? fmt::format("{}", status) : fmt::format("{}, {}", name, status),
                     step.empty() ? "" : "; ", step);
}

}  // namespace paceline::engine::cuda
