/// A system that refuses a thread, for a program that is started with this in LD_PRELOAD: the one that would
/// be number $REFUSE_THREAD (from 1), and all after it, as where `ulimit -u` is met.

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*),
                              void* argument) {
  static std::atomic<int> asked{0};
  const char* first = std::getenv("REFUSE_THREAD");
  if (first != nullptr && ++asked >= std::atoi(first)) return EAGAIN;
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, work, argument);
}
