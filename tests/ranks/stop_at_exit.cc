/// A process that is stopped in the moment of its exit, for a program that is started with this in
/// LD_PRELOAD: the one with the rank $STOP_AT_EXIT, once main() has returned.

#include <signal.h>

#include <cstdlib>
#include <cstring>

__attribute__((destructor)) static void stop_at_exit() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* wanted = std::getenv("STOP_AT_EXIT");
  if (rank != nullptr && wanted != nullptr && std::strcmp(rank, wanted) == 0) ::raise(SIGSTOP);
}
