#include "engine/engine.h"

namespace paceline::engine {

int state_slots(const UpdateRule& rule) {
  const int momentum = rule.momentum != 0 ? 1 : 0;
  switch (rule.kind) {
    case UpdateKind::sgd:
      return momentum;
    case UpdateKind::lars:
      return 1;
    case UpdateKind::adam:
    case UpdateKind::adamw:
    case UpdateKind::adadelta:
      return 2;
    case UpdateKind::rmsprop:
      return 1 + momentum;
  }
  return 0;
}

}  // namespace paceline::engine
