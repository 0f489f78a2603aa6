#pragma once

/// Work split over this engine's OpenMP threads.

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace paceline::engine::cpu {

/// The part of [0, count) that belongs to `thread` of `threads`, in multiples of `grain` (but for the end).
struct Part {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};
[[nodiscard]] inline Part part_of(std::int64_t count, int thread, int threads, std::int64_t grain = 1) {
  const std::int64_t grains = (count + grain - 1) / grain;
  const auto cut = [&](int t) { return std::min(count, grains * t / threads * grain); };
  return {.begin = cut(thread), .end = cut(thread + 1)};
}

/// Calls work(thread, part) for every part of [0, count), each from its own thread; returns when all are
/// done. The split depends on `threads` alone, so sums by thread have one order. Work must not throw.
template <typename Work>
void parallel_parts(int threads, std::int64_t count, std::int64_t grain, const Work& work) {
  if (threads == 1) {
    work(0, Part{.begin = 0, .end = count});
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) work(thread, part_of(count, thread, threads, grain));
}

/// Tells OpenMP, and through it oneDNN, how many threads this thread may use, for as long as it lives.
class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~ThreadCount() { omp_set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

}  // namespace paceline::engine::cpu
