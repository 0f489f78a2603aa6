#pragma once

/// The concrete engine and communicators for train, which itself names none.

#include <string>

#include "train/run.h"

namespace paceline::cli {

[[nodiscard]] train::Backend make_backend(const std::string& device);

}  // namespace paceline::cli
