#pragma once

/// Runs in progress for Prometheus, in its text format.

#include <span>
#include <string>

#include "serve/run_book.h"

namespace paceline::serve {

[[nodiscard]] std::string metrics_text(std::span<const Run> runs);

}  // namespace paceline::serve
