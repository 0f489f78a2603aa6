#include "train/step/allreduce_peak.h"

#include <memory>
#include <vector>

#include "measure/statistics.h"

namespace paceline::train {

double allreduce_peak(comm::Communicator& communicator, const Buckets& buckets, base::Array gradients) {
  constexpr int kTries = 6;  // the first one touches memory and is not counted
  gradients.memory->fill(gradients, 0);
  std::vector<double> durations;
  for (int i = 0; i < kTries; ++i) {
    communicator.barrier();
    std::vector<std::unique_ptr<comm::Pending>> pending;
    const auto begin = base::Clock::now();
    for (std::size_t bucket = 0; bucket < buckets.count(); ++bucket)
      pending.push_back(
          communicator.all_reduce(gradients.subarray(static_cast<std::size_t>(buckets.begin(bucket)),
                                                     static_cast<std::size_t>(buckets.bytes(bucket) / 4))));
    for (const auto& one : pending) one->wait();
    double seconds = base::seconds(pending.back()->timing().done - begin);
    communicator.all_reduce(std::span(&seconds, 1),
                            comm::Reduce::min);  // the last rank to arrive did not wait
    if (i > 0) durations.push_back(seconds);
  }
  const double ranks = communicator.size();
  const double algbw = static_cast<double>(gradients.bytes()) / measure::estimate(durations).median;
  return algbw * 2 * (ranks - 1) / ranks / 1e9;
}

}  // namespace paceline::train
