#pragma once

/// Makes models by name or from TOML files of layers.

#include <string>
#include <vector>

#include "graph/graph.h"

namespace paceline::graph {

/// "mnist-cnn", "resnet18", "resnet18-cifar", "resnet8-cifar".
[[nodiscard]] std::vector<std::string> model_names();

/// The model for images of shape `input` in `classes` classes. A name ending in ".toml" is a model file
/// (docs/models.md).
///
/// Parameter names are torchvision's. Trainable elements (3 channels, mnist-cnn 1; 10 classes):
/// resnet18-cifar 11,173,962 · resnet18 11,181,642 (1,000 classes: 11,689,512) · mnist-cnn at 28x28 1,199,882
/// · resnet8-cifar 78,042.
///
/// Errors   Error(usage) for an unknown name (with the nearest one) or an input too small for the model
[[nodiscard]] Graph make_model(const std::string& name_or_file, Shape input, int classes,
                               double label_smoothing);

}  // namespace paceline::graph
