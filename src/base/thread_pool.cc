#include "base/thread_pool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>

namespace paceline::base {
namespace {

/// Empty where there is no limit.
std::optional<std::uint64_t> limit_of(decltype(RLIMIT_NPROC) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::string limits_set(const CgroupLimits& cgroup) {
  std::vector<std::string> limits;
  if (const auto threads = limit_of(RLIMIT_NPROC))
    limits.push_back(fmt::format("ulimit -u {} (processes and threads of this user)", *threads));
  if (cgroup.threads)
    limits.push_back(
        fmt::format("pids.max {} (processes and threads of this control group)", *cgroup.threads));
  if (const auto bytes = limit_of(RLIMIT_AS))  // every thread has a stack
    limits.push_back(fmt::format("ulimit -v {} (KiB of addresses)", *bytes / 1024));
  return limits.empty() ? "only that of the machine (kernel.threads-max)"
                        : fmt::format("{}", fmt::join(limits, ", "));
}

}  // namespace

bool stopped_within(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  return wake.wait_for(lock, stop, time, [&] { return stop.stop_requested(); });
}

std::jthread start_thread(std::function<void()> work) { return std::jthread(std::move(work)); }

bool is_refused_thread(const std::system_error& error) {
  return error.code() == std::errc::resource_unavailable_try_again;
}

Error refused_thread(const std::string& which, const std::system_error& error, const CgroupLimits& cgroup) {
  return {
      ErrorKind::device,
      fmt::format("{} could not be started: {}; the limits here: {}; ask for fewer (--workers, --threads, "
                  "--loader-threads) or have the limit raised",
                  which, error.code().message(), limits_set(cgroup))};
}

namespace {

/// About 20 us: longer than the gaps inside a step, and too short to slow other programs.
constexpr int kSpins = 500;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Returns when `value` differs from `old`: spins for a while, then sleeps.
template <typename T>
void wait_while(const std::atomic<T>& value, T old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads, const std::function<void()>& on_start, const StartThread& start)
    : ranges_(static_cast<std::size_t>(std::max(threads, 0))) {
  expects(threads >= 1, "a pool has at least its caller's thread");
  for (int thread = 1; thread < threads; ++thread) {
    try {
      helpers_.push_back(start([this, thread, on_start] { help(thread, on_start); }));
    } catch (const std::system_error& error) {
      end();  // otherwise the destructor would wait forever for the started threads
      throw refused_thread(fmt::format("computing thread {} of {}", thread + 1, threads), error);
    }
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() {
  ends_.store(true, std::memory_order_relaxed);
  loops_.fetch_add(1, std::memory_order_release);
  loops_.notify_all();
}

void ThreadPool::help(int thread, const std::function<void()>& on_start) {
  if (on_start) on_start();
  std::uint32_t seen = 0;
  for (;;) {
    wait_while(loops_, seen);
    seen = loops_.load(std::memory_order_acquire);
    if (ends_.load(std::memory_order_relaxed)) return;
    take_items(thread);
  }
}

void ThreadPool::run_shared(int count, Call call, const void* context) {
  count_.store(count, std::memory_order_relaxed);
  call_.store(call, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  const auto threads = static_cast<int>(ranges_.size());
  for (int thread = 0; thread < threads; ++thread) {
    const auto next = static_cast<std::uint64_t>(first_of(thread, threads, count));
    const auto end = static_cast<std::uint64_t>(first_of(thread + 1, threads, count));
    ranges_[static_cast<std::size_t>(thread)].left.store(next << 32 | end, std::memory_order_release);
  }
  loops_.fetch_add(1, std::memory_order_release);
  loops_.notify_all();
  take_items(0);
  for (int done = done_.load(std::memory_order_acquire); done < count;
       done = done_.load(std::memory_order_acquire))
    wait_while(done_, done);
  if (failed_.exchange(false, std::memory_order_relaxed)) {
    const std::exception_ptr failure = std::exchange(failure_, nullptr);
    std::rethrow_exception(failure);
  }
}

void ThreadPool::take_items(int thread) {
  const auto threads = static_cast<int>(ranges_.size());
  for (int other = 0; other < threads; ++other)
    while (take_one((thread + other) % threads, thread)) {
    }
}

bool ThreadPool::take_one(int from, int thread) {
  auto& range = ranges_[static_cast<std::size_t>(from)].left;
  std::uint64_t left = range.load(std::memory_order_relaxed);
  const bool is_own = from == thread;
  std::uint64_t next = 0, end = 0;
  do {
    next = left >> 32, end = left & 0xffffffff;
    if (next >= end) return false;
  } while (!range.compare_exchange_weak(left, is_own ? left + (std::uint64_t{1} << 32) : left - 1,
                                        std::memory_order_acq_rel, std::memory_order_relaxed));
  // Read only now: the loop that owns this item cannot end before the item is done.
  const Call call = call_.load(std::memory_order_relaxed);
  const void* context = context_.load(std::memory_order_relaxed);
  const int count = count_.load(std::memory_order_relaxed);
  try {
    call(context, static_cast<int>(is_own ? next : end - 1), thread);
  } catch (...) {
    if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
  }
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == count) done_.notify_one();
  return true;
}

BackgroundTasks::~BackgroundTasks() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundTasks::add(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      throw refused_thread(name_, error);
    }
  }
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

bool BackgroundTasks::is_idle() {
  const std::lock_guard lock(mutex_);
  return tasks_.empty();
}

bool BackgroundTasks::wait_until_idle(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, most, [this] { return tasks_.empty(); });
}

double BackgroundTasks::busy_s() {
  const std::lock_guard lock(mutex_);
  return since_ ? seconds_since(*since_) : 0;
}

void BackgroundTasks::rethrow() {
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    error = std::exchange(error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

void BackgroundTasks::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    since_ = Clock::now();
    auto& task = tasks_.front();  // stays where it is: others are added behind it
    lock.unlock();
    std::exception_ptr error;
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    tasks_.pop_front();
    since_.reset();
    changed_.notify_all();
  }
}

}  // namespace paceline::base
