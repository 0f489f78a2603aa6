#include "graph/zoo.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/nearest.h"
#include "graph/builder.h"
#include "graph/model_file.h"

namespace paceline::graph {
namespace {

/// Two 3x3 convolutions and a shortcut (He et al., 2016), with torchvision's names under `prefix`.
int basic_block(Builder& model, int src, const std::string& prefix, int channels, int stride) {
  int branch = model.conv2d(src, prefix + ".conv1", {.channels = channels, .stride = stride, .padding = 1});
  branch = model.batch_norm(branch, prefix + ".bn1");
  branch = model.relu(branch, prefix + ".relu1");
  branch = model.conv2d(branch, prefix + ".conv2", {.channels = channels, .padding = 1});
  branch = model.batch_norm(branch, prefix + ".bn2");
  int shortcut = src;
  if (stride != 1 || model.shape_of(src).channels != channels) {
    shortcut =
        model.conv2d(src, prefix + ".downsample.0", {.channels = channels, .kernel = 1, .stride = stride});
    shortcut = model.batch_norm(shortcut, prefix + ".downsample.1");
  }
  return model.relu(model.add(branch, shortcut, prefix + ".add"), prefix + ".relu2");
}

struct Stage {
  int channels = 0;
  int blocks = 1;
};

/// Stages layer1, layer2, ... (each but the first halves the image), pooling and the classifier.
Graph residual_body(Builder& model, int value, const std::vector<Stage>& stages, int classes,
                    double smoothing) {
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    for (int block = 0; block < stages[stage].blocks; ++block)
      value = basic_block(model, value, fmt::format("layer{}.{}", stage + 1, block), stages[stage].channels,
                          stage > 0 && block == 0 ? 2 : 1);
  value = model.global_average_pool(value, "avgpool");
  value = model.dense(value, "fc", {.features = classes});
  model.loss(value, smoothing);
  return model.finish();
}

/// The stem for small images: one 3x3 convolution, without stride or pooling.
int small_image_stem(Builder& model, Shape input, int channels) {
  int value = model.conv2d(model.input(input), "conv1", {.channels = channels, .padding = 1});
  return model.relu(model.batch_norm(value, "bn1"), "relu");
}

const std::vector<Stage> kResnet18 = {{64, 2}, {128, 2}, {256, 2}, {512, 2}};

Graph resnet18_cifar(Shape input, int classes, double smoothing) {
  Builder model("resnet18-cifar");
  return residual_body(model, small_image_stem(model, input, 64), kResnet18, classes, smoothing);
}

/// One basic block per stage and a quarter of the width: for studies that must finish in minutes.
Graph resnet8_cifar(Shape input, int classes, double smoothing) {
  Builder model("resnet8-cifar");
  return residual_body(model, small_image_stem(model, input, 16), {{16, 1}, {32, 1}, {64, 1}}, classes,
                       smoothing);
}

Graph resnet18(Shape input, int classes, double smoothing) {
  Builder model("resnet18");
  int value =
      model.conv2d(model.input(input), "conv1", {.channels = 64, .kernel = 7, .stride = 2, .padding = 3});
  value = model.relu(model.batch_norm(value, "bn1"), "relu");
  value = model.max_pool(value, {.kernel = 3, .stride = 2, .padding = 1}, "maxpool");
  return residual_body(model, value, kResnet18, classes, smoothing);
}

Graph mnist_cnn(Shape input, int classes, double smoothing) {
  Builder model("mnist-cnn");
  int value = model.conv2d(model.input(input), "conv1", {.channels = 32, .bias = true});
  value = model.relu(value);
  value = model.conv2d(value, "conv2", {.channels = 64, .bias = true});
  value = model.relu(value);
  value = model.max_pool(value, {.kernel = 2, .stride = 2});
  value = model.dropout(value, {.probability = 0.25});
  value = model.dense(value, "fc1", {.features = 128});
  value = model.relu(value);
  value = model.dropout(value, {.probability = 0.5});
  value = model.dense(value, "fc2", {.features = classes});
  model.loss(value, smoothing);
  return model.finish();
}

struct ModelRow {
  const char* name;
  Graph (*make)(Shape input, int classes, double smoothing);
};
constexpr ModelRow kModels[] = {
    {"mnist-cnn", mnist_cnn},
    {"resnet18", resnet18},
    {"resnet18-cifar", resnet18_cifar},
    {"resnet8-cifar", resnet8_cifar},
};

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelRow& row : kModels) names.emplace_back(row.name);
  return names;
}

Graph make_model(const std::string& name, Shape input, int classes, double label_smoothing) {
  if (name.ends_with(".toml")) return read_model_file(name, input, classes, label_smoothing);
  for (const ModelRow& row : kModels)
    if (name == row.name) return row.make(input, classes, label_smoothing);
  base::fail(base::ErrorKind::usage, "model '{}' is not known{} (a file of layers ends in .toml)", name,
             base::suggestion(name, model_names()));
}

}  // namespace paceline::graph
