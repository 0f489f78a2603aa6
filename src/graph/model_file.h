#pragma once

/// A model as a TOML file of layers that a user can write; docs/models.md has the grammar and an example.

#include <filesystem>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace paceline::graph {

/// Reads `path` and builds the model for images of shape `input` in `classes` classes.
///
/// Errors   Error(usage) "<file>:<line>: ..." for anything that is wrong in the file, with the nearest known
///          name where a name is wrong; Error(data) when the file cannot be read
[[nodiscard]] Graph read_model_file(const std::filesystem::path& path, Shape input, int classes,
                                    double label_smoothing);

/// The same from text; `source` stands for the file in errors.
[[nodiscard]] Graph parse_model(std::string_view toml, const std::string& source, Shape input, int classes,
                                double label_smoothing);

}  // namespace paceline::graph
