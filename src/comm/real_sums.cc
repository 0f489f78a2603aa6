#include "comm/real_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/make.h"

namespace paceline::comm {
namespace {

bool fits(const EmulatedLink& link, int ranks, double bytes, const SumSpeed& speed) {
  return link_seconds(link, ranks, static_cast<std::size_t>(bytes)) >=
         kLeastShareOfLink * speed.seconds(ranks, bytes);
}

/// The largest bucket that fits, at most `most` bytes; 0 if none does. A smaller one fits too: the link's
/// time is a constant and a part that is proportional to the bytes, as the sum's is.
double largest_bucket(const EmulatedLink& link, int ranks, double most, const SumSpeed& speed) {
  double fitting = 0, too_large = most;
  if (fits(link, ranks, most, speed)) return most;
  while (too_large - fitting > 1000) {
    const double middle = std::midpoint(fitting, too_large);
    (fits(link, ranks, middle, speed) ? fitting : too_large) = middle;
  }
  return fitting;
}

}  // namespace

double SumSpeed::seconds(int of_ranks, double of_bytes) const {
  return processor_s * (of_ranks - 1) / (ranks - 1) * of_bytes / static_cast<double>(bytes);
}

SumSpeed measure_sums(int ranks, std::int64_t bytes) {
  base::expects(ranks > 1 && bytes >= static_cast<std::int64_t>(sizeof(float)), "there is something to sum");
  constexpr int kTimed = 3;
  auto communicators = make_local(ranks);
  std::vector<double> before(communicators.size());
  std::vector<std::thread> threads;
  for (const auto& communicator : communicators)
    threads.emplace_back([&communicator, &before, bytes] {
      std::vector<float> values(static_cast<std::size_t>(bytes) / sizeof(float));
      communicator->all_reduce(values)->wait();  // touches the memory
      communicator->barrier();
      before[static_cast<std::size_t>(communicator->rank())] = static_cast<double>(std::clock());
      for (int i = 0; i < kTimed; ++i) communicator->all_reduce(values)->wait();
      communicator->barrier();
    });
  for (auto& thread : threads) thread.join();
  const double spent = static_cast<double>(std::clock()) - *std::ranges::min_element(before);
  return {.ranks = ranks, .bytes = bytes, .processor_s = spent / CLOCKS_PER_SEC / kTimed};
}

std::string require_slow_link(const EmulatedLink& link, int ranks, std::span<const std::int64_t> bucket_bytes,
                              const SumSpeed& speed) {
  const auto share = [&](std::int64_t bytes) {
    return speed.seconds(ranks, static_cast<double>(bytes)) /
           link_seconds(link, ranks, static_cast<std::size_t>(bytes));
  };
  const std::int64_t worst = *std::ranges::max_element(bucket_bytes, {}, share);
  const auto bytes = static_cast<double>(worst);
  const double link_s = link_seconds(link, ranks, static_cast<std::size_t>(worst));
  const auto measured = fmt::format(
      "a bucket of {:.3g} MB takes {:.3g} ms of processor time to sum over {} workers here, and {:.3g} ms on "
      "the emulated link",
      bytes / 1e6, 1e3 * speed.seconds(ranks, bytes), ranks, 1e3 * link_s);
  if (fits(link, ranks, bytes, speed)) return measured;
  int most = ranks;
  while (most > 1 && !fits(link, most, bytes, speed)) --most;
  const double largest = largest_bucket(link, ranks, bytes, speed);
  std::string ways = most > 1 ? fmt::format("at most {} workers", most) : "";
  if (largest > 0)
    ways += fmt::format("{}buckets of at most {:.3g} MB", ways.empty() ? "" : ", or ",
                        std::floor(largest / 1e3) / 1e3);
  base::fail(
      base::ErrorKind::usage,
      "--emulate-compute: {}, which must be at least {:g} times as long, so that the sums do not delay "
      "the link; take {}",
      measured, kLeastShareOfLink, ways.empty() ? "a slower --emulate-link" : ways);
}

}  // namespace paceline::comm
