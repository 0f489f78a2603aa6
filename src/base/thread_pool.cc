#include "base/thread_pool.h"

#include <utility>

#include "base/error.h"

namespace paceline::base {
namespace {

/// About 20 us: longer than the gaps inside a step, shorter than anything another program would feel.
constexpr int kSpins = 500;

constexpr std::uint64_t kNoItem = 0xffffffff;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Returns when `value` is no longer `old`: looks a while, then sleeps.
template <typename T>
void wait_while(const std::atomic<T>& value, T old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads, const std::function<void()>& on_start) {
  expects(threads >= 1, "a pool has at least its caller's thread");
  for (int thread = 1; thread < threads; ++thread)
    helpers_.emplace_back([this, thread, on_start] { help(thread, on_start); });
}

ThreadPool::~ThreadPool() {
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
  const std::uint64_t loop = loops_.load(std::memory_order_relaxed) + std::uint64_t{1};
  // Closed first: a late thread must not measure the old loop's ticket by the new loop's count.
  ticket_.store(loop << 32 | kNoItem, std::memory_order_relaxed);
  call_.store(call, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  count_.store(static_cast<std::uint32_t>(count), std::memory_order_release);
  ticket_.store(loop << 32, std::memory_order_release);
  loops_.store(static_cast<std::uint32_t>(loop), std::memory_order_release);
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
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  for (;;) {
    const std::uint32_t count = count_.load(std::memory_order_acquire);
    const Call call = call_.load(std::memory_order_relaxed);
    const void* context = context_.load(std::memory_order_relaxed);
    const auto item = static_cast<std::uint32_t>(ticket & kNoItem);
    if (item >= count) return;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire))
      continue;
    try {
      call(context, static_cast<int>(item), thread);
    } catch (...) {
      if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
    }
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<int>(count)) done_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

}  // namespace paceline::base
