#pragma once

#include "base/error.h"

namespace paceline::base {

/// An error that every rank of a run throws at the same step, because the ranks agreed on it there: a loss
/// that is no longer finite on one of them. Nobody waits for anybody, so the processes can do their next work
/// together.
class AgreedError : public Error {
 public:
  using Error::Error;
};

}  // namespace paceline::base
