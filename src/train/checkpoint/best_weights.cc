#include "train/checkpoint/best_weights.h"

#include <algorithm>
#include <span>

namespace paceline::train {

void BestWeights::keep() {
  if (communicator_.rank() != 0) return;
  const auto weights = engine_.weights();
  weights_.assign(weights.begin(), weights.end());
}

void BestWeights::read(const std::filesystem::path& file) {
  weights_.resize(engine_.weights().size());
  read_weights(file, engine_.graph(), engine_.layout(), weights_);
}

void BestWeights::put_back() {
  engine_.fetch();  // a device's engine accepts weights only after its own were fetched
  const auto weights = engine_.weights();
  if (communicator_.rank() == 0) std::copy(weights_.begin(), weights_.end(), weights.begin());
  communicator_.broadcast(std::as_writable_bytes(weights), 0);
  engine_.weights_changed();
}

}  // namespace paceline::train
