#pragma once

/// Reads a model from a TOML file of layers; docs/models.md has the grammar and an example.

#include <filesystem>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace paceline::graph {

/// Reads `path` and builds the model for images of shape `input` in `classes` classes.
///
/// Errors   Error(usage) "<file>:<line>: ..." for a fault in the file, with the nearest known name for a
///          wrong name; Error(data) when the file cannot be read
[[nodiscard]] Graph read_model_file(const std::filesystem::path& path, Shape input, int classes,
                                    double label_smoothing);

/// The same from text; errors name `source` instead of the file.
[[nodiscard]] Graph parse_model(std::string_view toml, const std::string& source, Shape input, int classes,
                                double label_smoothing);

}  // namespace paceline::graph
