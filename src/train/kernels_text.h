#pragma once

/// The algorithms of a run as checkpoints keep them: one JSON object, from product to algorithm.

#include <string>

#include "engine/engine.h"

namespace paceline::train {

[[nodiscard]] std::string as_text(const engine::KernelAlgorithms& algorithms);
/// Nothing of an empty text. Errors   Error(data) naming `where`, a file
[[nodiscard]] engine::KernelAlgorithms algorithms_from(const std::string& text, const std::string& where);

}  // namespace paceline::train
