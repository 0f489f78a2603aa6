#pragma once

/// A model of layers that trains in a second.

namespace paceline::cli {

inline constexpr const char* kSmallModel = R"(
[[layer]]
op = "conv2d"
name = "conv1"
channels = 8
kernel = 3
stride = 2
padding = 1
[[layer]]
op = "batch_norm"
name = "bn1"
[[layer]]
op = "relu"
[[layer]]
op = "dense"
name = "fc"
features = "classes"
)";

}  // namespace paceline::cli
