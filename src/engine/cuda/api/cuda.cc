#include "engine/cuda/api/cuda.h"

namespace paceline::engine::cuda {

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
  return fmt::format("{} failed{}{}: {} ({}){}", call, where.empty() ? "" : " ", where,
                     text == nullptr ? "unknown error" : text,
                     name == nullptr ? fmt::format("{}", status) : fmt::format("{}, {}", name, status),
                     is_sticky(status)
                         ? "; earlier work on the GPU may be the cause; the GPU is lost to this "
                           "process, which must end: --resume goes on from the last checkpoint"
                         : "");
}

}  // namespace paceline::engine::cuda
