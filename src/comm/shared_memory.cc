#include "comm/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <random>
#include <utility>

#include "base/descriptor.h"

namespace paceline::comm {
namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "processes share no locks");

/// Checks without a pause, since a small message takes less time than some pauses.
constexpr int kEager = 100;
constexpr long kLookAgainNs = 20'000'000;  ///< interval at which a sleeping thread calls keep_waiting

void pause_process() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

std::optional<SharedMemory> SharedMemory::create(std::size_t bytes) {
  std::random_device random;
  SharedMemory memory(fmt::format("/paceline-{}-{:08x}{:08x}", ::getpid(), random(), random()));
  const base::Descriptor file(::shm_open(memory.name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  memory.owns_name_ = file.is_open();
  // Not ftruncate, which promises pages that may not exist; touching them would end a process with SIGBUS.
  if (!file.is_open() || ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)) != 0 ||
      !memory.map(file.get(), bytes))
    return std::nullopt;
  return memory;
}

std::optional<SharedMemory> SharedMemory::open(const std::string& name, std::size_t bytes) {
  SharedMemory memory(name);
  const base::Descriptor file(::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0600));
  if (!file.is_open() || !memory.map(file.get(), bytes)) return std::nullopt;
  return memory;
}

bool SharedMemory::map(int descriptor, std::size_t bytes) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) return false;
  bytes_ = {static_cast<std::byte*>(mapped), bytes};
  return true;
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(bytes_, other.bytes_);
  std::swap(owns_name_, other.owns_name_);
  return *this;
}

SharedMemory::~SharedMemory() {
  remove_name();
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

void SharedMemory::remove_name() {
  if (std::exchange(owns_name_, false)) ::shm_unlink(name_.c_str());
}

// The raising thread stores the count, then checks for sleepers; a sleeping thread registers, then checks the
// count. In one total order (seq_cst) at least one of the two sees the other.

void Signal::raise(std::uint32_t to) {
  count.store(to, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) == 0) return;
  ::syscall(SYS_futex, &count, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
}

bool wait(Signal& signal, std::uint32_t target, SpinLimits limits,
          const std::function<bool()>& keep_waiting) {
  for (int look = 0; look < limits.looks; ++look) {
    if (signal.has(target)) return true;
    if (look > kEager) pause_process();
  }
  for (int turn = 0; turn < limits.yields; ++turn) {
    if (signal.has(target)) return true;
    ::sched_yield();
  }
  while (!signal.has(target)) {
    signal.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = signal.count.load(std::memory_order_seq_cst);
    if (static_cast<std::int32_t>(seen - target) < 0) {
      const timespec longest{0, kLookAgainNs};
      ::syscall(SYS_futex, &signal.count, FUTEX_WAIT, seen, &longest, nullptr, 0);
    }
    signal.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (!signal.has(target) && !keep_waiting()) return false;
  }
  return true;
}

}  // namespace paceline::comm
