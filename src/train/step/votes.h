#pragma once

/// What the ranks exchange in every step besides the gradients: a few floats whose sum is the same on all of
/// them (docs/decisions/votes.md).

#include <array>
#include <span>

#include "engine/engine.h"

namespace paceline::train {

/// The votes of one rank, or their sum over all.
struct Votes {
  bool stop = false;        ///< asked to stop
  bool not_finite = false;  ///< the loss is not finite
  bool enough = false;      ///< has measured long enough
  double loss = 0;          ///< sum over samples; a sum that is not finite counts as 0
};

/// Three flags, then the loss in five parts. Devices write the same format (engine.h).
using engine::kVoteFloats;

/// A loss is a multiple of 2^-24 (engine.h) and is sent as an integer in parts of 12 bits. Float sums of
/// these over up to 4096 ranks are exact, so the sum does not depend on how samples are distributed. A rank's
/// sum above 2^35 is sent as 2^35.
[[nodiscard]] std::array<float, kVoteFloats> as_floats(const Votes& votes);
/// The votes in such floats, or in sums of them.
[[nodiscard]] Votes votes_from(std::span<const float> floats);

}  // namespace paceline::train
