#pragma once

#include "base/error.h"

namespace paceline::base {

/// An error that every rank of a run throws at the same step, because the ranks have agreed on it there: for
/// example, a loss that is not finite. No rank is left waiting for another, so the processes can go on to
/// their next work together.
class AgreedError : public Error {
 public:
  using Error::Error;
};

}  // namespace paceline::base
