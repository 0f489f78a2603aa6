/// The local all-reduce over message sizes, checked, beside what the memory allows.
///
///     comm_bench [ranks, default 2] [repeats, default 21] [bytes, default 1 KiB to 256 MiB and 45 MB]
///
/// The bound: every one of the N buffers has to be read once and written once, 8 bytes per element and rank,
/// so an all-reduce of X bytes takes at least 2 N X / B. B is what all ranks reach together when each changes
/// a buffer of its own in place, element by element: the same bytes read and written, and nothing to agree
/// about. Both are measured in turns, in one run.

#include <fmt/core.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "base/topology.h"
#include "comm/make.h"
#include "comm/probe.h"
#include "measure/environment.h"
#include "measure/statistics.h"

namespace {

using namespace paceline;

struct Times {
  std::vector<double> all_reduce, update;
};

/// Seconds of `work`, the slowest rank's.
template <typename Work>
double time_one(comm::Communicator& communicator, const Work& work) {
  communicator.barrier();
  const auto begin = base::Clock::now();
  work();
  double seconds = base::seconds_since(begin);
  communicator.all_reduce(std::span(&seconds, 1), comm::Reduce::max);
  return seconds;
}

Times measure_both(comm::Communicator& communicator, std::size_t bytes, int repeats) {
  base::Buffer buffer(bytes);
  const auto values = buffer.as<float>();
  for (float& value : values) value = 1.0f;
  Times times;
  const float same = 1.0f / static_cast<float>(communicator.size());
  for (int i = 0; i < 2 + repeats; ++i) {
    const double reduce = time_one(communicator, [&] { communicator.all_reduce(values)->wait(); });
    const double update = time_one(communicator, [&] {
      for (float& value : values) value *= same;
    });
    if (i < 2) continue;
    times.all_reduce.push_back(reduce);
    times.update.push_back(update);
  }
  return times;
}

void run(comm::Communicator& communicator, const std::vector<int>& cores, int repeats,
         const std::vector<std::size_t>& sizes) {
  (void)base::bind_current_thread(cores);
  const int ranks = communicator.size();
  for (const std::size_t bytes : sizes) {
    const bool correct = comm::probe(communicator, {}, bytes / sizeof(float), 0, 1).correct;
    const auto times = measure_both(communicator, bytes, repeats);
    if (communicator.rank() != 0) continue;
    const auto t = measure::estimate(times.all_reduce), bound = measure::estimate(times.update);
    const double algbw = static_cast<double>(bytes) / t.median / 1e9;
    const double memory = 2.0 * ranks * static_cast<double>(bytes) / bound.median / 1e9;
    fmt::print(
        "{:>12}  {:>9.1f} [{:>9.1f}, {:>9.1f}]  {:>7.2f}  {:>7.2f}  {:>9.1f} ({:>6.2f} GB/s)  {:>6.0f} %  "
        "{}\n",
        bytes, t.median * 1e6, t.low * 1e6, t.high * 1e6, algbw, algbw * comm::bus_factor(ranks),
        bound.median * 1e6, memory, 100 * bound.median / t.median, correct ? "yes" : "NO");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::max(1, std::atoi(argv[1])) : 2;
  const int repeats = argc > 2 ? std::max(1, std::atoi(argv[2])) : 21;
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = 1 << 10; argc <= 3 && bytes <= std::size_t{256} << 20; bytes *= 4)
    sizes.push_back(bytes);
  sizes.push_back(argc > 3 ? static_cast<std::size_t>(std::atoll(argv[3])) : 45'000'000);
  const auto plan = base::plan_cores(ranks, 1);
  const auto environment = measure::environment();
  fmt::print("{}, {} usable cores, load {:.2f}, {}\n{}\nGB = 1e9; median of {} and 95 % interval\n\n",
             environment.cpu, environment.cores, environment.load_before, environment.build, plan.note,
             repeats);
  fmt::print("{:>12}  {:>33}  {:>7}  {:>7}  {:>24}  {:>8}  correct\n", "bytes", "all-reduce us", "algbw",
             "busbw", "the memory's bound us", "of it");
  auto communicators = comm::make_local(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      run(*communicators[static_cast<std::size_t>(rank)], plan.cores[static_cast<std::size_t>(rank)], repeats,
          sizes);
    });
  for (auto& thread : threads) thread.join();
}
