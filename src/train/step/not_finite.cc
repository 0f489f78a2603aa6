#include "train/step/not_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace paceline::train {
namespace {

/// The sign of NaN has no meaning, but "-nan" would look as if it had.
double without_sign(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

}  // namespace

std::string loss_not_finite(double loss, int rank) {
  if (std::isfinite(loss)) return fmt::format("the loss is no longer finite (on another rank than {})", rank);
  return fmt::format("the loss is no longer finite ({} on rank {})", without_sign(loss), rank);
}

std::string part_not_finite(std::string_view part, double loss) {
  return fmt::format("the {} loss is no longer finite ({})", part, without_sign(loss));
}

bool is_finite_everywhere(std::span<const float> values, comm::Communicator& communicator) {
  double broken =
      std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }) ? 0 : 1;
  communicator.all_reduce(std::span(&broken, 1), comm::Reduce::max);
  return broken == 0;
}

std::string not_finite_sentence(const Divergence& where, std::string_view what) {
  return fmt::format(
      "step {} of {}: {} at learning rate {:g}; {}; try a lower --lr, --warmup{} or another --precision",
      where.step, where.updates, what, where.lr,
      where.last_checkpoint.empty() ? "there is no earlier checkpoint to go back to"
                                    : "the last good checkpoint is " + where.last_checkpoint,
      where.can_go_back ? ", --on-nan rollback" : "");
}

}  // namespace paceline::train
