#include "measure/step_sample.h"

#include <utility>

namespace paceline::measure {
namespace {

/// Which of its two halves a group of 2^halvings steps keeps: 0 or 1, by the finaliser of MurmurHash3.
std::uint64_t kept_half(std::uint64_t group, int halvings) {
  std::uint64_t bits = group * 64 + static_cast<std::uint64_t>(halvings);
  bits = (bits ^ (bits >> 33)) * 0xff51afd7ed558ccdu;
  bits = (bits ^ (bits >> 33)) * 0xc4ceb9fe1a85ec53u;
  return bits >> 63;
}

}  // namespace

bool is_timed(std::int64_t step, int halvings) {
  auto group = static_cast<std::uint64_t>(step);
  for (int i = 1; i <= halvings; ++i) {
    const std::uint64_t half = group % 2;
    group /= 2;
    if (half != kept_half(group, i)) return false;
  }
  return true;
}

void halve(std::vector<double>& times, int halvings) {
  std::vector<double> kept;
  kept.reserve((times.size() + 1) / 2);
  for (std::size_t group = 0; 2 * group < times.size(); ++group) {
    const std::size_t at = 2 * group + kept_half(group, halvings + 1);
    if (at < times.size()) kept.push_back(times[at]);  // else the group's step is still to come
  }
  kept.shrink_to_fit();
  times = std::move(kept);
}

}  // namespace paceline::measure
