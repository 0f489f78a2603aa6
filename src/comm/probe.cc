#include "comm/probe.h"

#include <span>

#include "base/buffer.h"
#include "base/clock.h"

namespace paceline::comm {
namespace {

// Small whole numbers: their sums are exact in any order, so a wrong element is wrong beyond doubt. The
// period is no divisor of a segment or block, so a part in the wrong place shows.
constexpr std::size_t kPeriod = 13;

void fill(std::span<float> values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % kPeriod) + static_cast<float>(rank);
}

bool holds_sum(std::span<const float> values, int ranks) {
  const auto n = static_cast<float>(ranks);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != n * static_cast<float>(i % kPeriod) + n * (n - 1) / 2) return false;
  return true;
}

}  // namespace

Probe probe_all_reduce(Communicator& communicator, std::size_t count, int warmup, int repeats) {
  base::Buffer buffer(count * sizeof(float));
  const std::span<float> values = buffer.as<float>();
  Probe probe{.bytes = values.size_bytes(), .seconds = {}, .correct = true};
  double wrong = 0;
  for (int i = 0; i < warmup + repeats; ++i) {
    fill(values, communicator.rank());
    communicator.barrier();
    const auto begin = base::Clock::now();
    communicator.all_reduce(values)->wait();
    double seconds = base::seconds_since(begin);
    if (!holds_sum(values, communicator.size())) wrong = 1;
    communicator.all_reduce(std::span(&seconds, 1), Reduce::max);
    if (i >= warmup) probe.seconds.push_back(seconds);
  }
  communicator.all_reduce(std::span(&wrong, 1), Reduce::max);
  probe.correct = wrong == 0;
  return probe;
}

}  // namespace paceline::comm
