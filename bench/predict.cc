// Times what `paceline predict` computes: closed forms, and a simulation of many workers.
//
//   bench_predict
//
// prints the seconds of 30 numbers of workers x 1,000 draws x 25 buckets, with and without timed all-reduces,
// and those of 100,000 workers in 200 steps with the memory that the process ever had.

#include <fmt/core.h>
#include <sys/resource.h>

#include <vector>

#include "analysis/predict/collective_cost.h"
#include "analysis/predict/simulate_workers.h"
#include "base/clock.h"

namespace {

using namespace paceline;

/// A sum of all costs keeps the compiler from leaving them out.
double closed_forms(const analysis::Cluster& cluster) {
  constexpr int kDraws = 1000, kNumbers = 30, kBuckets = 25;
  base::Rng random(1, base::Purpose::bootstrap);
  double sum = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const auto drawn = analysis::draw(cluster, random);
    for (int i = 0; i < kNumbers; ++i)
      for (int bucket = 1; bucket <= kBuckets; ++bucket)
        sum += analysis::all_reduce_cost(drawn, 8 * (i + 1), 1e6 * bucket).seconds;
  }
  return sum;
}

void time_closed_forms(const char* what, const analysis::Cluster& cluster) {
  const auto begin = base::Clock::now();
  const double sum = closed_forms(cluster);
  fmt::print("closed form, {}: {:.3f} s for 30 N, 1,000 draws, 25 buckets (checksum {:.6g})\n", what,
             base::seconds_since(begin), sum);
}

}  // namespace

int main() {
  auto cluster = *analysis::find_preset("dgx-h100");
  time_closed_forms("formulas alone", cluster);
  std::vector<analysis::TimedAllReduce> timed;
  for (double bytes = 4096; bytes < 1e9; bytes *= 2) timed.push_back({64, bytes, 50e-6 + bytes / 150e9});
  analysis::attach(cluster, timed);
  time_closed_forms("with 18 timed sizes", cluster);

  const auto begin = base::Clock::now();
  const auto result = analysis::simulate_workers({.workers = 100000,
                                                  .workers_per_node = 8,
                                                  .steps = 200,
                                                  .own_s = 0.1,
                                                  .common_spread = 0.01,
                                                  .rank_spread = 0.02,
                                                  .rest_spread = 0.03,
                                                  .exposed_s = 0.01,
                                                  .loader_s = 0.09,
                                                  .loader_spread = 0.1,
                                                  .queue = 4});
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("workers: {:.2f} s for 100,000 workers, 200 steps; {:.0f} MB at most (mean wait {:.4f} s)\n",
             base::seconds_since(begin), static_cast<double>(usage.ru_maxrss) / 1e3, result.waiting_s);
}
