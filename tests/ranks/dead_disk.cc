/// A disk that stops to answer, for a program that is started with this in LD_PRELOAD: from the moment that
/// the file $DEAD_DISK exists, fsync() does not return.

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

extern "C" int fsync(int file) {
  const char* dead = std::getenv("DEAD_DISK");
  while (dead != nullptr && ::access(dead, F_OK) == 0) ::sleep(1);
  return static_cast<int>(::syscall(SYS_fsync, file));
}
