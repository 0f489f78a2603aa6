#pragma once

/// Corrects the momentum when the learning rate changes between two updates.

#include <cstdint>

#include "engine/engine.h"
#include "train/given/options.h"
#include "train/given/schedule.h"

namespace paceline::train {

/// The rule for update `update` (from 0).
///
/// LARS keeps a velocity that contains past learning rates, v = m v + lr g, so after a change the old part
/// still has the old rate. With `--momentum-correction` the old part is multiplied by m times lr / (previous
/// lr), so that all of the velocity has the current rate (Goyal et al. 2017, section 3). The other rules keep
/// gradients without the rate and multiply by it last, so they need no correction.
[[nodiscard]] engine::UpdateRule rule_of_update(const Options& options, double peak, std::int64_t update,
                                                const Length& length);

}  // namespace paceline::train
