#include "train/step/momentum_correction.h"

namespace paceline::train {

engine::UpdateRule rule_of_update(const Options& options, double peak, std::int64_t update,
                                  const Length& length) {
  engine::UpdateRule rule = options.rule;
  if (!options.momentum_correction || rule.kind != engine::UpdateKind::lars || update == 0) return rule;
  const double before = learning_rate(options.schedule, peak, update - 1, length);
  if (before > 0) rule.momentum *= learning_rate(options.schedule, peak, update, length) / before;
  return rule;
}

}  // namespace paceline::train
