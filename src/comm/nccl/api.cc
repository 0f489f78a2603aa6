#include "comm/nccl/api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace paceline::comm::nccl {
namespace {

/// The version of CUDA that NVIDIA's driver supports, such as 12080; 0 without a driver.
int cuda_of_driver() {
  int (*version)(int*) = nullptr;
  int found = 0;
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return 0;
  return base::SharedLibrary{.handle = driver}.find("cuDriverGetVersion", version) && version(&found) == 0
             ? found
             : 0;
}

const base::LibraryWanted& wanted() {
  static const base::LibraryWanted one{.kind = base::ErrorKind::device,
                                       .asked = "nccl",
                                       .file = "libnccl.so.2",
                                       .product = "NCCL 2.18 or later",
                                       .install = install_command(cuda_of_driver())};
  return one;
}

std::string refusal(const base::SharedLibrary& library) {
  Status (*version)(int*) = nullptr;
  int found = 0;
  if (!library.find("ncclGetVersion", version) || version(&found) != kSuccess)
    return "it does not report its version";
  return found >= kOldest ? "" : "it is NCCL " + version_text(found);
}

}  // namespace

const Api& open_nccl() {
  static const Api api =
      nccl_api(base::find_library(wanted(), base::library_folders(base::process_environment()), refusal));
  return api;
}

Api nccl_api(const base::SharedLibrary& library) {
  Api api;
  const auto find = [&](const char* name, auto& function) {
    if (!library.find(name, function))
      base::fail(base::ErrorKind::device, "nccl: {} has no {}; install {}, for example: {}", library.path,
                 name, wanted().product, wanted().install);
  };
#define PACELINE_FIND(name) find(#name, api.name)  // written once: the names cannot differ
  PACELINE_FIND(ncclGetVersion);
  PACELINE_FIND(ncclGetUniqueId);
  PACELINE_FIND(ncclGetErrorString);
  PACELINE_FIND(ncclGetLastError);
  PACELINE_FIND(ncclCommInitRankConfig);
  PACELINE_FIND(ncclCommGetAsyncError);
  PACELINE_FIND(ncclCommAbort);
  PACELINE_FIND(ncclAllReduce);
  PACELINE_FIND(ncclReduceScatter);
  PACELINE_FIND(ncclAllGather);
  PACELINE_FIND(ncclBroadcast);
#undef PACELINE_FIND
  return api;
}

const char* install_command(int driver) {
  return driver > 0 && driver < 13000 ? "pip install nvidia-nccl-cu12" : "pip install nvidia-nccl-cu13";
}

bool is_blocking(const base::EnvironmentLookup& environment) {
  const char* const asked = environment("NCCL_COMM_BLOCKING");
  return asked != nullptr && std::string_view(asked) == "1";
}

std::string make_deterministic() {
  std::string text;
  for (const auto& [name, value] : {std::pair{"NCCL_ALGO", "Ring"}, std::pair{"NCCL_PROTO", "Simple"},
                                    std::pair{"NCCL_NVLS_ENABLE", "0"}}) {
    ::setenv(name, value, 0);
    text += fmt::format("{}{}={}", text.empty() ? "--deterministic: GPUs add up with " : ", ", name,
                        std::getenv(name));
  }
  return text;
}

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string describe_error(const Api& api, Comm comm, Status status, const char* call) {
  std::string text = fmt::format("{}: {}", call, api.ncclGetErrorString(status));
  if (const char* last = api.ncclGetLastError(comm); last != nullptr && *last != '\0')
    text += fmt::format(" ({})", last);
  return text;
}

}  // namespace paceline::comm::nccl
