/// The local all-reduce over message sizes, checked, beside its yardstick: all ranks copying the same number
/// of bytes with memcpy at the same time, which reads and writes as much memory in total.
///
///     comm_bench [ranks, default 2] [repeats, default 21]

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
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

/// Seconds of each repetition in which every rank copies `bytes`; the slowest rank's.
std::vector<double> time_copies(comm::Communicator& communicator, std::size_t bytes, int repeats) {
  base::Buffer from(bytes), to(bytes);
  from.fill_zero();
  to.fill_zero();
  std::vector<double> samples;
  for (int i = 0; i < 2 + repeats; ++i) {
    communicator.barrier();
    const auto begin = base::Clock::now();
    std::memcpy(to.data(), from.data(), bytes);
    double seconds = base::seconds_since(begin);
    communicator.all_reduce(std::span(&seconds, 1), comm::Reduce::max);
    if (i >= 2) samples.push_back(seconds);
  }
  return samples;
}

void run(comm::Communicator& communicator, const std::vector<int>& cores, int repeats) {
  (void)base::bind_current_thread(cores);
  const int ranks = communicator.size();
  for (std::size_t bytes = 1 << 10; bytes <= std::size_t{256} << 20; bytes *= 4) {
    const auto probe = comm::probe_all_reduce(communicator, bytes / sizeof(float), 3, repeats);
    const auto copies = time_copies(communicator, bytes, repeats);
    if (communicator.rank() != 0) continue;
    const auto t = measure::estimate(probe.seconds), yardstick = measure::estimate(copies);
    const double algbw = static_cast<double>(bytes) / t.median / 1e9;
    fmt::print("{:>12}  {:>9.1f} [{:>9.1f}, {:>9.1f}]  {:>7.2f}  {:>7.2f}  {:>9.1f}  {:>6.0f} %  {}\n", bytes,
               t.median * 1e6, t.low * 1e6, t.high * 1e6, algbw, algbw * comm::bus_factor(ranks),
               yardstick.median * 1e6, 100 * yardstick.median / t.median, probe.correct ? "yes" : "NO");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::max(1, std::atoi(argv[1])) : 2;
  const int repeats = argc > 2 ? std::max(1, std::atoi(argv[2])) : 21;
  const auto plan = base::plan_cores(ranks, 1);
  const auto environment = measure::environment();
  fmt::print("{}, {} usable cores, load {:.2f}, {}\n{}\nGB = 1e9; median of {} and 95 % interval\n\n",
             environment.cpu, environment.cores, environment.load_before, environment.build, plan.note,
             repeats);
  fmt::print("{:>12}  {:>33}  {:>7}  {:>7}  {:>9}  {:>8}  correct\n", "bytes", "all-reduce us", "algbw",
             "busbw", "memcpy us", "of it");
  auto communicators = comm::make_local(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      run(*communicators[static_cast<std::size_t>(rank)], plan.cores[static_cast<std::size_t>(rank)],
          repeats);
    });
  for (auto& thread : threads) thread.join();
}
