#pragma once

/// The part of NCCL's C interface that is used, without its header: constants, opaque types, and a table of
/// functions.
///
/// The values are those of NCCL 2; tests/comm/nccl/api_test.cc compares them with its header, if there
/// is one. All calls go through the table, so that a test can replace the library and let each call fail.

#include <climits>
#include <cstddef>
#include <string>

#include "base/shared_library.h"

namespace paceline::comm::nccl {

using Status = int;  ///< ncclResult_t
using Comm = struct OpaqueComm*;

constexpr Status kSuccess = 0;
constexpr Status kUnhandledCudaError = 1;
constexpr Status kInProgress =
    7;                          ///< of a call that does not block: ncclCommGetAsyncError says when it is over
constexpr int kFloat32 = 7;     ///< ncclDataType_t
constexpr int kSum = 0;         ///< ncclRedOp_t
constexpr int kOldest = 21800;  ///< the first version with `blocking` and maxCTAs

struct UniqueId {  ///< ncclUniqueId
  char internal[128];
};

/// ncclConfig_t as of 2.18, and one member that is younger. Later versions recognise it by its size and use
/// defaults for their other members.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = kOldest;
  int blocking = 0;                ///< is_blocking(): 1
  int cga_cluster_size = INT_MIN;  ///< INT_MIN, here and below: NCCL chooses
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
  /// Before 2.26 padding, whose bytes 2.26 takes for a traffic class: it has no other sign than the size.
  int traffic_class = INT_MIN;
};
static_assert(offsetof(Config, traffic_class) == 44 && sizeof(Config) == 48, "no padding that NCCL may read");

/// Members have NCCL's names and meanings. `stream` is a cudaStream_t.
struct Api {
  Status (*ncclGetVersion)(int* version) = nullptr;
  Status (*ncclGetUniqueId)(UniqueId*) = nullptr;
  const char* (*ncclGetErrorString)(Status) = nullptr;
  const char* (*ncclGetLastError)(Comm) = nullptr;
  Status (*ncclCommInitRankConfig)(Comm*, int ranks, UniqueId, int rank, Config*) = nullptr;
  Status (*ncclCommGetAsyncError)(Comm, Status* state) = nullptr;
  /// Ends all work in progress and frees the communicator. The only way to end it without waiting for peers.
  Status (*ncclCommAbort)(Comm) = nullptr;
  Status (*ncclAllReduce)(const void* src, void* dst, std::size_t count, int type, int op, Comm,
                          void* stream) = nullptr;
  Status (*ncclReduceScatter)(const void* src, void* dst, std::size_t count_of_dst, int type, int op, Comm,
                              void* stream) = nullptr;
  Status (*ncclAllGather)(const void* src, void* dst, std::size_t count_of_src, int type, Comm,
                          void* stream) = nullptr;
  Status (*ncclBroadcast)(const void* src, void* dst, std::size_t count, int type, int root, Comm,
                          void* stream) = nullptr;
};

/// NCCL of at least 2.18, opened once per process and searched as in base/shared_library.h.
///
/// Threads  any
/// Errors   Error(device), one sentence: it is missing and how to get it, or it is too old
[[nodiscard]] const Api& open_nccl();

/// The table of NCCL's functions in `library`.
///
/// Errors   Error(device) naming a function that it lacks
[[nodiscard]] Api nccl_api(const base::SharedLibrary& library);

/// What installs NCCL for a driver that supports CUDA up to `driver`, such as 12080; 0: unknown.
[[nodiscard]] const char* install_command(int driver);

/// Whether NCCL_COMM_BLOCKING=1 asks for calls that block: NCCL then overrides Config::blocking. From 2.23 on
/// a call that does not block starts a thread, and the thread what the call is for.
[[nodiscard]] bool is_blocking(const base::EnvironmentLookup& environment = base::process_environment());

/// Fixes NCCL's choice of algorithms through this process's environment: NCCL_ALGO=Ring, NCCL_PROTO=Simple,
/// NCCL_NVLS_ENABLE=0, unless the user has set them. Then the order of additions is the same in every run
/// with the same buckets and ranks. Call it before NCCL starts, while no other thread reads the environment.
/// Returns a sentence that says what was set.
[[nodiscard]] std::string make_deterministic();

/// "2.28.9"
[[nodiscard]] std::string version_text(int version);

/// "ncclAllReduce: unhandled cuda error (last error: ...)". `comm` may be null.
[[nodiscard]] std::string describe_error(const Api& api, Comm comm, Status status, const char* call);

}  // namespace paceline::comm::nccl
