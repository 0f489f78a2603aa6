// Our side of onnx_export.py: exports models with random weights, and computes their logits for random
// images.
//
//     onnx_run DIRECTORY DEVICE MODEL..      DEVICE: one of the engines; MODEL: of the zoo, "every-op" or
//                                            "odd-shapes"
//
// For each it writes DIRECTORY/<model>.onnx, <model>.images.f32 (values from 0 to 1, [N, C, H, W]) and
// <model>.logits.f32 ([N, classes]), raw little-endian arrays, and prints "MODEL N C H W CLASSES".

#include <fmt/core.h>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "engine/make.h"
#include "engine/reference/toy.h"
#include "graph/initialise.h"
#include "graph/onnx/export.h"
#include "graph/zoo.h"

namespace {

using namespace paceline;
namespace fs = std::filesystem;

constexpr int kImages = 3;
constexpr int kClasses = 10;

/// What pools, pads and dense layers do at their edges.
graph::Graph odd_shapes() {
  graph::OpBuilder model("odd-shapes");
  const int image = model.input({3, 23, 18});
  // Rounded up: the last window reaches beyond the image, beyond the padding, or begins where none may.
  int value =
      model.conv2d(image, "conv", {.channels = 4, .kernel = {3, 5}, .padding = {0, 2}, .dilation = {2, 1}});
  value = model.silu(model.batch_norm(value, "bn"));
  std::vector<int> pooled;
  for (const bool counts : {true, false})
    for (const bool ceil : {true, false})
      for (const graph::Pair padding : {graph::Pair(0), graph::Pair(1), graph::Pair(1, 0)}) {
        const int one = model.average_pool(
            value,
            {.kernel = {3, 2}, .stride = {3, 3}, .padding = padding, .ceil = ceil, .count_padding = counts});
        pooled.push_back(model.adaptive_average_pool(one, {4, 5}));
      }
  for (const bool ceil : {true, false})
    for (const graph::Pair padding : {graph::Pair(0), graph::Pair(1), graph::Pair(0, 1)})
      pooled.push_back(model.adaptive_average_pool(
          model.max_pool(value, {.kernel = {2, 3}, .stride = {3, 2}, .padding = padding, .ceil = ceil}),
          {4, 5}));
  // Behind a pad, whose zeros are above the values of silu that are below zero.
  for (const bool is_before : {true, false}) {
    const int padded =
        is_before ? model.pad(value, {.top = 1, .left = 2}) : model.pad(value, {.bottom = 1, .right = 2});
    pooled.push_back(model.adaptive_average_pool(padded, {4, 5}));  // even windows
    pooled.push_back(model.adaptive_average_pool(model.max_pool(padded, {.kernel = 2, .stride = 1}), {4, 5}));
    const int dense = model.dense(padded, is_before ? "each" : "each2", {.features = 4, .flatten = false});
    pooled.push_back(model.adaptive_average_pool(dense, {4, 5}));
  }
  value = model.concat(pooled);                        // 96 channels
  value = model.adaptive_average_pool(value, {2, 5});  // even windows
  value = model.adaptive_average_pool(value, {5, 3});  // more than there are, and uneven
  value = model.pad(value, {.top = 2, .bottom = -1, .left = -1, .right = 1, .front = -3, .back = 3});
  value = model.channel_shuffle(value, 8);
  value =
      model.conv2d(value, "grouped", {.channels = 24, .kernel = 3, .stride = 2, .padding = 1, .groups = 12});
  const int trunk = model.relu(value);
  // Dense layers: features beside images.
  const int pool = model.global_average_pool(trunk);
  int factor = model.sigmoid(model.dense(pool, "factor", {.features = 24, .bias = false}));
  const int left = model.slice(factor, {.channels = 8}),
            right = model.slice(factor, {.begin = 8, .channels = 16});
  factor = model.concat({right, left});
  const int scaled = model.mul(trunk, factor), both = model.add(factor, pool);
  value = model.concat({model.adaptive_average_pool(scaled, 1), both, model.mul(factor, factor)});
  value = model.relu6(model.batch_norm(model.dense(value, "hidden", {.features = 12}), "hidden_bn"));
  value = model.add(value, model.dense(scaled, "flat", {.features = 12}));
  // Logits that no dense layer makes, of names that the file has for itself.
  value = model.conv2d(model.adaptive_average_pool(model.pad(value, {}), 1), "logits",
                       {.channels = 6, .kernel = 1, .bias = true});
  model.loss(value, 0);
  return model.finish();
}

graph::Graph graph_named(const std::string& name) {
  if (name == "every-op") return engine::toy::every_op(0.3);
  if (name == "odd-shapes") return odd_shapes();
  return graph::make_model(name, graph::usual_input(name), kClasses, 0);
}

/// Running statistics become those of the last step, so that logits stay small in deep networks.
void take_statistics_at_once(graph::Graph& graph) {
  for (graph::Node& node : graph.nodes)
    if (auto* norm = std::get_if<graph::BatchNorm>(&node.op)) norm->momentum = 1;
}

/// Away from 0 and 1, which would hide a mix-up.
void shift_small_arrays(const graph::Graph& graph, const graph::Layout& layout, std::span<float> weights) {
  base::Rng rng(2, base::Purpose::test, 0);
  for (const auto& slot : layout.slots) {
    const auto role = graph.parameters[static_cast<std::size_t>(slot.parameter)].role;
    if (role == graph::Role::weight || !graph::is_trainable(role)) continue;
    for (std::int64_t i = 0; i < slot.elements; ++i)
      weights[static_cast<std::size_t>(slot.offset + i)] += 0.1F * rng.normal();
  }
}

void write(const fs::path& path, std::span<const float> values) {
  base::write_file(path, std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
}

void run(const fs::path& directory, const std::string& device, const std::string& name) {
  auto graph = graph_named(name);
  take_statistics_at_once(graph);
  const graph::Shape& shape = graph.input_shape();
  const int classes = graph.classes();

  const std::vector<float> mean(static_cast<std::size_t>(shape.channels), 0.45F);
  std::vector<float> stddev;
  for (int c = 0; c < shape.channels; ++c) stddev.push_back(0.2F + 0.05F * static_cast<float>(c));
  // Planes for the file, innermost channels for the engine.
  std::vector<float> planes(static_cast<std::size_t>(kImages * shape.elements())), images(planes.size());
  base::Rng rng(1, base::Purpose::test, 0);
  const auto pixels = static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width);
  const auto channels = static_cast<std::size_t>(shape.channels);
  for (std::size_t at = 0; at < planes.size(); ++at) {
    const auto image = at / (channels * pixels), c = at / pixels % channels, pixel = at % pixels;
    planes[at] = static_cast<float>(rng.below(256)) / 255.0F;
    images[(image * pixels + pixel) * channels + c] = (planes[at] - mean[c]) / stddev[c];
  }
  std::vector<std::int32_t> labels;
  for (int i = 0; i < kImages; ++i) labels.push_back(i % classes);

  engine::CompileOptions options;
  options.batch = kImages;
  options.threads = 2;
  options.rule = {.momentum = 0, .weight_decay = 0};
  const auto engine = engine::compile(device, graph, options);
  graph::initialise(engine->graph(), engine->layout(), 1, engine->weights());
  shift_small_arrays(engine->graph(), engine->layout(), engine->weights());
  engine->weights_changed();
  (void)engine->forward({.images = images, .labels = labels});
  engine->backward({});
  engine->update(options.rule, 0, 1);
  std::vector<double> logits(static_cast<std::size_t>(kImages * classes));
  (void)engine->evaluate(images, labels, kImages, 1, logits);
  engine->fetch();

  write(directory / (name + ".images.f32"), planes);
  write(directory / (name + ".logits.f32"), std::vector<float>(logits.begin(), logits.end()));
  base::write_file(directory / (name + ".onnx"),
                   graph::onnx::export_model(engine->graph(), engine->layout(), engine->weights(),
                                             {.mean = mean,
                                              .stddev = stddev,
                                              .version = "test",
                                              .description = name,
                                              .metadata = {{"model", name}}}));
  fmt::print("{} {} {} {} {} {}\n", name, kImages, shape.channels, shape.height, shape.width, classes);
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count < 4) base::fail(base::ErrorKind::usage, "onnx_run DIRECTORY DEVICE MODEL..");
    for (int i = 3; i < count; ++i) run(words[1], words[2], words[i]);
  } catch (const base::Error& error) {
    fmt::print(stderr, "onnx_run: {}\n", error.what());
    return 1;
  }
  return 0;
}
