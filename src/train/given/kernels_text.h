#pragma once

/// Converts the algorithms of a run to the text in checkpoints and back: one JSON object from convolution
/// problem (layer shape and direction) to algorithm.

#include <string>

#include "engine/engine.h"

namespace paceline::train {

[[nodiscard]] std::string as_text(const engine::KernelAlgorithms& algorithms);
/// Parses it; an empty text has no algorithms.
///
/// Errors   Error(data) naming `where`, a file
[[nodiscard]] engine::KernelAlgorithms algorithms_from(const std::string& text, const std::string& where);

}  // namespace paceline::train
