#pragma once

/// Work split over this engine's threads.
///
/// How work is cut depends on its size alone, never on the number of threads: sums by part are joined in the
/// order of the parts, so any number of threads gives the same bits. There are more parts than threads: each
/// has a range of neighbouring ones, whoever has finished takes from the others, so that a thread whose core
/// is busy elsewhere does not hold them up.

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/summation_tree.h"
#include "base/thread_pool.h"

namespace paceline::engine::cpu {

constexpr int kMostRanges = 32;
/// Elements below which cutting costs more than it gives: 64 KB of floats, about 10 us.
constexpr std::int64_t kRangeElements = 1 << 14;

struct Range {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// Into how many parts `count` things are cut, of at least `least` each (but for a short whole).
[[nodiscard]] inline int ranges_of(std::int64_t count, std::int64_t least) {
  return static_cast<int>(std::clamp<std::int64_t>(count / least, 1, kMostRanges));
}

/// One of them: of nearly equal size, in multiples of `grain` (but for the end).
[[nodiscard]] inline Range range_of(std::int64_t count, int part, int parts, std::int64_t grain = 1) {
  const std::int64_t grains = (count + grain - 1) / grain;
  const auto cut = [&](int p) { return std::min(count, grains * p / parts * grain); };
  return {.begin = cut(part), .end = cut(part + 1)};
}

/// The least of things that have `elements` elements each: in whole vectors of 16 where things are that
/// small.
[[nodiscard]] inline std::int64_t least_of(std::int64_t elements) {
  const std::int64_t things = std::max<std::int64_t>(1, kRangeElements / elements);
  return things >= 16 ? things / 16 * 16 : things;
}

/// Calls work(index, part) for every part of `count` things; returns when all are done.
template <typename Work>
void parallel_ranges(base::ThreadPool& pool, std::int64_t count, std::int64_t least, const Work& work) {
  const int parts = ranges_of(count, least);
  const std::int64_t grain = least % 16 == 0 ? 16 : 1;
  pool.run(parts, [&](int index, int) { work(index, range_of(count, index, parts, grain)); });
}

/// Tasks sorted by length, the longest first, dealt to the ranges of `threads` threads: each has long ones
/// and short ones, and the short ones last.
template <typename Task>
[[nodiscard]] std::vector<Task> dealt(const std::vector<Task>& longest_first, int threads) {
  const auto count = static_cast<int>(longest_first.size());
  const auto first_of = [&](int thread) { return base::ThreadPool::first_of(thread, threads, count); };
  std::vector<Task> tasks(longest_first.size());
  auto next = longest_first.begin();
  for (int turn = 0; next != longest_first.end(); ++turn)
    for (int thread = threads - 1; thread >= 0; --thread)
      if (const int at = first_of(thread) + turn; at < first_of(thread + 1))
        tasks[static_cast<std::size_t>(at)] = *next++;
  return tasks;
}

/// Two lists of tasks as one loop of `threads` threads, the long ones first: each thread's range has its part
/// of `longer`, then about its part of `shorter`, so that both go over the same samples. Numbers of the
/// second list follow those of the first.
[[nodiscard]] inline std::vector<int> in_ranges(int longer, int shorter, int threads) {
  const auto first_of = [&](int thread, int count) {
    return base::ThreadPool::first_of(thread, threads, count);
  };
  std::vector<int> order;
  int next_longer = 0, next_shorter = 0;
  for (int thread = 0; thread < threads; ++thread)
    while (static_cast<int>(order.size()) < first_of(thread + 1, longer + shorter)) {
      const bool is_longer = next_longer < first_of(thread + 1, longer) || next_shorter == shorter;
      order.push_back(is_longer ? next_longer++ : longer + next_shorter++);
    }
  return order;
}

/// Shards joined here have the bits of shards joined by workers.
using base::join_as_tree;

/// Keeps oneDNN (through OpenMP) on the calling thread for as long as it lives: this engine cuts the work
/// itself, and OpenMP's barriers spin in the way of other programs.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace paceline::engine::cpu
