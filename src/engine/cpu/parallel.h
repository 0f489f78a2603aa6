#pragma once

/// Divides work among the threads of this engine.
///
/// How work is divided depends on its size alone, never on the number of threads, and the sums of parts are
/// added in the order of the parts: any number of threads gives the same bits. There are more parts than
/// threads. Each thread begins with a range of neighbouring parts; when it has finished them it takes parts
/// of other threads, so that a slow core does not delay the rest.

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/summation_tree.h"
#include "base/thread_pool.h"

namespace paceline::engine::cpu {

constexpr int kMostRanges = 32;
/// Parts below this number of elements cost more than they gain: 64 KB of floats, about 10 us.
constexpr std::int64_t kRangeElements = 1 << 14;

/// The indices [begin, end).
struct Range {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// The number of parts into which `count` items are divided, of at least `least` items each unless there are
/// fewer.
[[nodiscard]] inline int ranges_of(std::int64_t count, std::int64_t least) {
  return static_cast<int>(std::clamp<std::int64_t>(count / least, 1, kMostRanges));
}

/// Part `part` of `parts`. All parts have nearly the same size, a multiple of `grain` except at the end.
[[nodiscard]] inline Range range_of(std::int64_t count, int part, int parts, std::int64_t grain = 1) {
  const std::int64_t grains = (count + grain - 1) / grain;
  const auto cut = [&](int p) { return std::min(count, grains * p / parts * grain); };
  return {.begin = cut(part), .end = cut(part + 1)};
}

/// The fewest items worth a part, if each has `elements` elements. From 16 on it is a multiple of 16, so that
/// parts of single elements are whole vectors.
[[nodiscard]] inline std::int64_t least_of(std::int64_t elements) {
  const std::int64_t things = std::max<std::int64_t>(1, kRangeElements / elements);
  return things >= 16 ? things / 16 * 16 : things;
}

/// Calls work(index, part) for every part of `count` items. Returns when all are done.
template <typename Work>
void parallel_ranges(base::ThreadPool& pool, std::int64_t count, std::int64_t least, const Work& work) {
  const int parts = ranges_of(count, least);
  const std::int64_t grain = least % 16 == 0 ? 16 : 1;
  pool.run(parts, [&](int index, int) { work(index, range_of(count, index, parts, grain)); });
}

/// Deals tasks, given longest first, to the ranges of `threads` threads. Each range gets long and short
/// tasks, the short ones last.
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

/// The order in which one loop of `threads` threads runs two lists of tasks: each thread's range has its
/// share of the `longer` ones, then about its share of the `shorter` ones, so that both work on the same
/// samples. Indices of the second list follow those of the first.
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

/// Joins shards inside an engine in the same tree that joins them between workers: the bits are equal.
using base::join_as_tree;

/// While it exists, oneDNN (through OpenMP) computes on the calling thread only. This engine divides the work
/// itself, and the barriers of OpenMP spin, which slows other programs.
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
