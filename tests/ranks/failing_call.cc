/// A file layer that fails, for a program that is started with this in LD_PRELOAD: of the calls $FAIL_CALL
/// (write, short-write, read, fsync, rename, create, open) on files whose path holds $FAIL_PATH, the
/// $FAIL_FROMth (from 1) and the $FAIL_TIMES - 1 after it end with the error $FAIL_ERRNO. The file $FAIL_SEEN
/// is made when one does. create is an open with O_EXCL. $SLOW_MB_PER_S: writes to files whose path holds
/// $FAIL_PATH take as long as on a disk that takes so many megabytes a second.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

namespace {

long number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atol(text);
}

bool is_of(const char* path) {
  const char* mark = std::getenv("FAIL_PATH");
  return mark != nullptr && path != nullptr && std::strstr(path, mark) != nullptr;
}

bool is_of(int file) {
  char link[64] = "/proc/self/fd/";
  char digits[16];
  int count = 0;
  for (int rest = file; count == 0 || rest > 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  std::size_t at = std::strlen(link);
  while (count > 0) link[at++] = digits[--count];
  link[at] = '\0';
  char path[4096];
  const long length = ::syscall(SYS_readlink, link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  return is_of(path);
}

/// Whether this call of `name` is one that fails.
template <typename Where>
bool fails(const char* name, Where where) {
  static std::atomic<long> seen{0};
  const char* call = std::getenv("FAIL_CALL");
  if (call == nullptr || std::strcmp(call, name) != 0 || !is_of(where)) return false;
  const long now = ++seen, from = number("FAIL_FROM");
  if (now < from || now >= from + number("FAIL_TIMES")) return false;
  if (const char* seen_file = std::getenv("FAIL_SEEN"))
    ::syscall(SYS_close, ::syscall(SYS_open, seen_file, O_WRONLY | O_CREAT, 0644));
  errno = static_cast<int>(number("FAIL_ERRNO"));
  return true;
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t count) {
  if (fails("write", file)) return -1;
  if (count > 1 && fails("short-write", file)) count /= 2;
  if (const long rate = number("SLOW_MB_PER_S"); rate > 0 && is_of(file))
    ::usleep(static_cast<useconds_t>(count / static_cast<size_t>(rate)));
  return ::syscall(SYS_write, file, bytes, count);
}

ssize_t read(int file, void* bytes, size_t count) {
  if (fails("read", file)) return -1;
  return ::syscall(SYS_read, file, bytes, count);
}

int fsync(int file) {
  if (fails("fsync", file)) return -1;
  return static_cast<int>(::syscall(SYS_fsync, file));
}

int rename(const char* from, const char* to) {
  if (fails("rename", to)) return -1;
  return next<int (*)(const char*, const char*)>("rename")(from, to);
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = static_cast<mode_t>((flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, unsigned) : 0);
  va_end(more);
  if (fails((flags & O_EXCL) != 0 ? "create" : "open", path)) return -1;
  return next<int (*)(const char*, int, ...)>("open")(path, flags, mode);
}
}
