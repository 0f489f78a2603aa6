/// A process that hangs at a place one can name, as on a disk that does not answer, for a program that is
/// started with this in LD_PRELOAD: the one with the rank $HANG_RANK (each, without it) does not come back
/// from opening a file whose path has $HANG_AT in it, or from MPI_Comm_free, the last call of MPI before they
/// connect; the file $HANG_SINCE says since when. With $BUSY_S it computes for so many seconds and goes on
/// then, with $STOP it is stopped as a whole.

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

namespace {

void hang_where_asked(const char* path) {
  const char* rank = ::getenv("OMPI_COMM_WORLD_RANK");
  const char* wanted = ::getenv("HANG_RANK");
  const char* at = ::getenv("HANG_AT");
  const char* since = ::getenv("HANG_SINCE");
  if (path == nullptr || at == nullptr || since == nullptr || std::strstr(path, at) == nullptr) return;
  if (wanted != nullptr && (rank == nullptr || std::strcmp(rank, wanted) != 0)) return;
  ::syscall(SYS_openat, AT_FDCWD, since, O_WRONLY | O_CREAT, 0644);
  const char* busy = ::getenv("BUSY_S");
  if (::getenv("STOP") != nullptr) ::raise(SIGSTOP);
  if (busy == nullptr)
    for (;;) ::pause();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(::atoi(busy));
  while (std::chrono::steady_clock::now() < until) {
  }
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int open_as(const char* name, const char* path, int flags, mode_t mode) {
  hang_where_asked(path);
  return next<int(const char*, int, ...)>(name)(path, flags, mode);
}

FILE* fopen_as(const char* name, const char* path, const char* mode) {
  hang_where_asked(path);
  return next<FILE*(const char*, const char*)>(name)(path, mode);
}

}  // namespace

extern "C" {
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = va_arg(more, mode_t);  // where none was given nobody looks at it
  va_end(more);
  return open_as("open", path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = va_arg(more, mode_t);
  va_end(more);
  return open_as("open64", path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) { return fopen_as("fopen", path, mode); }
int MPI_Comm_free(void* communicator) {
  hang_where_asked("MPI_Comm_free");
  void* const mpi = ::dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD);  // opened by a module, for itself
  return reinterpret_cast<int (*)(void*)>(::dlsym(mpi, "MPI_Comm_free"))(communicator);
}
FILE* fopen64(const char* path, const char* mode) { return fopen_as("fopen64", path, mode); }
}
