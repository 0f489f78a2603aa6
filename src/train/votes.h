#pragma once

/// What the ranks tell each other in every step, beside the gradients: a few floats whose sum is the same on
/// all of them (docs/decisions/votes.md).

#include <array>
#include <span>

#include "engine/engine.h"

namespace paceline::train {

/// Of one rank, or summed over all.
struct Votes {
  bool stop = false;        ///< asked to stop
  bool not_finite = false;  ///< the loss is not finite
  bool enough = false;      ///< has measured long enough
  double loss = 0;          ///< sum over samples; where it is not finite 0 is added
};

/// The three flags, then the loss in five parts. A device writes the same (engine.h).
using engine::kVoteFloats;

/// A loss is a multiple of 2^-24 (engine.h), and travels as a whole number in parts of 12 bits: float sums of
/// up to 4096 ranks are exact, so that the sum does not depend on how samples are shared out. A rank's sum of
/// more than 2^35 is told as 2^35.
[[nodiscard]] std::array<float, kVoteFloats> as_floats(const Votes& votes);
/// The votes that such floats, or sums of them, say.
[[nodiscard]] Votes votes_from(std::span<const float> floats);

}  // namespace paceline::train
