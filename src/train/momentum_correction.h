#pragma once

/// The momentum of an update whose learning rate is not that of the update before.

#include <cstdint>

#include "engine/engine.h"
#include "train/options.h"
#include "train/schedule.h"

namespace paceline::train {

/// The rule with which update `update` (from 0) is made.
///
/// LARS keeps a velocity that holds the learning rates of the past, v = m v + lr g: after a change of the
/// rate the old part is still that of the old rate. With `--momentum-correction` the part that stays is m
/// times lr / (lr before), so that all of the velocity is in today's rate (Goyal et al. 2017, section 3). The
/// other rules keep gradients without the rate and multiply by it last: they need no correction and get none.
[[nodiscard]] engine::UpdateRule rule_of_update(const Options& options, double peak, std::int64_t update,
                                                const Length& length);

}  // namespace paceline::train
