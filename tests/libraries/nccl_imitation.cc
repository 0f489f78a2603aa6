// A libnccl.so.2 that joins nobody and moves nothing, for processes that hang in it: the function that is
// named by NCCL_HANGS in the environment never returns.

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSuccess = 0;

int returns_unless_named(const char* function) {
  const char* hangs = std::getenv("NCCL_HANGS");
  if (hangs != nullptr && std::strcmp(hangs, function) == 0)
    for (;;) ::pause();
  return kSuccess;
}

}  // namespace

extern "C" {

struct Id {
  char internal[128];
};

int ncclGetVersion(int* version) {
  *version = 22809;
  return kSuccess;
}
int ncclGetUniqueId(Id* id) {
  *id = {};
  return kSuccess;
}
const char* ncclGetErrorString(int) { return "an error"; }
const char* ncclGetLastError(void*) { return ""; }
int ncclCommInitRankConfig(void** comm, int, Id, int, void*) {
  static char any;
  *comm = &any;
  return returns_unless_named("ncclCommInitRankConfig");
}
int ncclCommGetAsyncError(void*, int* state) {
  *state = kSuccess;
  return kSuccess;
}
int ncclCommAbort(void*) { return returns_unless_named("ncclCommAbort"); }
int ncclAllReduce(const void*, void*, std::size_t, int, int, void*, void*) {
  return returns_unless_named("ncclAllReduce");
}
int ncclReduceScatter(const void*, void*, std::size_t, int, int, void*, void*) { return kSuccess; }
int ncclAllGather(const void*, void*, std::size_t, int, void*, void*) { return kSuccess; }
int ncclBroadcast(const void*, void*, std::size_t, int, int, void*, void*) { return kSuccess; }
}
