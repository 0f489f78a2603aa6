#pragma once

/// Writes figures of runs in Prometheus's text format. docs/live.md lists them.

#include <span>
#include <string>

#include "serve/run_book.h"

namespace paceline::serve {

/// How many runs are in each state, and the figures of those in progress.
[[nodiscard]] std::string metrics_text(std::span<const Run> runs);

}  // namespace paceline::serve
