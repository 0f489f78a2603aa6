#include "train/record/clock_offset.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

namespace paceline::train {
namespace {

double now() { return base::seconds(base::Clock::now().time_since_epoch()); }

std::vector<double> gather(comm::Communicator& communicator, double mine) {
  std::vector<double> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace

ClockOffset clock_offset(comm::Communicator& communicator) {
  constexpr int kRounds = 32;
  const auto me = static_cast<std::size_t>(communicator.rank());
  double most = std::numeric_limits<double>::infinity(), least = -most;
  for (int round = 0; round < kRounds; ++round) {
    communicator.barrier();  // all begin at about the same time, so the bounds are tight
    const auto begun = gather(communicator, now());
    const double ended = now();
    const double ended_at_first = gather(communicator, ended).front();
    most = std::min(most, ended - begun.front());         // rank 0 had begun before this rank ended
    least = std::max(least, begun[me] - ended_at_first);  // this rank had begun before rank 0 ended
  }
  if (communicator.rank() == 0) return {};
  return {.seconds = (most + least) / 2, .error_s = (most - least) / 2};
}

}  // namespace paceline::train
