#include "train/step/votes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/error.h"

namespace paceline::train {
namespace {

constexpr std::size_t kFlags = 3;
constexpr int kBitsOfPart = 12;
constexpr int kBitsOfFraction = 24;
constexpr double kMostLoss = 0x1p35;  ///< 59 bits, which five parts hold

}  // namespace

std::array<float, kVoteFloats> as_floats(const Votes& votes) {
  std::array<float, kVoteFloats> floats{votes.stop ? 1.0f : 0.0f, votes.not_finite ? 1.0f : 0.0f,
                                        votes.enough ? 1.0f : 0.0f};
  const double loss = std::isfinite(votes.loss) ? std::clamp(votes.loss, 0.0, kMostLoss) : 0;
  auto left = static_cast<std::uint64_t>(std::llround(std::ldexp(loss, kBitsOfFraction)));
  for (std::size_t part = kFlags; part < kVoteFloats; ++part, left >>= kBitsOfPart)
    floats[part] = static_cast<float>(left & ((std::uint64_t{1} << kBitsOfPart) - 1));
  return floats;
}

Votes votes_from(std::span<const float> floats) {
  base::expects(floats.size() == kVoteFloats, "votes have a fixed number of floats");
  Votes votes{.stop = floats[0] > 0, .not_finite = floats[1] > 0, .enough = floats[2] > 0};
  for (std::size_t part = kVoteFloats; part-- > kFlags;)
    votes.loss = std::ldexp(votes.loss, kBitsOfPart) + static_cast<double>(floats[part]);
  votes.loss = std::ldexp(votes.loss, -kBitsOfFraction);
  return votes;
}

}  // namespace paceline::train
