#include "train/slow_disk.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace {

std::atomic<std::int64_t> next_ms{0};

}  // namespace

// The linker takes this one before the C library's.
extern "C" int fsync(int descriptor) {
  if (const auto time = next_ms.exchange(0); time > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(time));
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

namespace paceline::train {

SlowDisk::SlowDisk(std::chrono::milliseconds time) { next_ms = time.count(); }
SlowDisk::~SlowDisk() { next_ms = 0; }
bool SlowDisk::was_slow() const { return next_ms == 0; }

}  // namespace paceline::train
