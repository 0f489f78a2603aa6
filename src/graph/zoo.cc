#include "graph/zoo.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "graph/ops.h"

namespace paceline::graph {

using base::ErrorKind;
using base::expects;
using base::fail;

namespace {

/// A larger array fits into no machine: this is 256 GB of floats.
constexpr double kMostElements = 0x1p36;

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

int Builder::append(Attributes op, std::vector<int> inputs, std::string name,
                    const ParameterNames& parameters) {
  const OpRule& rule = rule_of(op);
  const int index = static_cast<int>(graph_.nodes.size());
  expects((index == 0) == std::holds_alternative<Input>(op), "the input, and only it, is the first op");
  expects(index == 0 || !graph_.nodes.back().as<SoftmaxCrossEntropy>(), "nothing follows the loss");
  expects(rule.inputs == kSeveral ? inputs.size() >= 2 : static_cast<int>(inputs.size()) == rule.inputs,
          "an op has as many inputs as its rule says");

  std::vector<Shape> src;
  for (const int input : inputs) {
    expects(input >= 0 && input < index, "an op's inputs are earlier nodes");
    src.push_back(graph_.nodes[static_cast<std::size_t>(input)].shape);
  }
  if (name.empty()) name = unique_name(std::string(rule.kind));
  require_usable_name(rule.kind, name);

  Node node{.name = std::move(name),
            .op = std::move(op),
            .inputs = std::move(inputs),
            .shape = {},
            .parameters = {}};
  const OpSite site{node.name, node.op, src};
  node.shape = rule.shape(site);
  if (const auto* conv = node.as<Conv2d>(); conv && conv->init == Init::whiten && node.inputs.front() != 0)
    fail(ErrorKind::usage,
         "conv2d '{}': init \"whiten\" is for a layer on the image itself, but its input is '{}'; take "
         "another init",
         node.name, graph_.nodes[static_cast<std::size_t>(node.inputs.front())].name);
  add_parameters(node, site, parameters);
  require_possible_size(node);
  names_.insert(node.name);
  graph_.nodes.push_back(std::move(node));
  return index;
}

void Builder::add_parameters(Node& node, const OpSite& site, const ParameterNames& names) {
  const OpRule& rule = rule_of(node.op);
  const auto rules = rule.parameters != nullptr ? rule.parameters(site) : std::vector<ParameterRule>{};
  const std::pair<std::string_view, const std::string&> given[] = {{"weight", names.weight},
                                                                   {"bias", names.bias}};
  for (const auto& [suffix, name] : given)
    if (!name.empty() && std::ranges::find(rules, suffix, &ParameterRule::suffix) == rules.end())
      fail(ErrorKind::usage, "{} '{}': '{}' names a parameter, but it has none of that kind; remove it",
           rule.kind, node.name, suffix);
  for (const ParameterRule& parameter : rules) {
    const auto own = std::ranges::find(given, parameter.suffix, [](const auto& pair) { return pair.first; });
    node.parameters.push_back(static_cast<int>(graph_.parameters.size()));
    graph_.parameters.push_back(
        {.name = parameter_name(site, parameter.suffix, own != std::end(given) ? own->second : ""),
         .shape = parameter.shape,
         .role = parameter.role,
         .node = static_cast<int>(graph_.nodes.size()),
         .rate = parameter.rate});
  }
}

std::string Builder::parameter_name(const OpSite& site, std::string_view suffix, const std::string& given) {
  std::string name = given.empty() ? fmt::format("{}.{}", site.name, suffix) : given;
  const std::string_view kind = rule_of(site.op).kind;
  const auto is_plain = [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
           (letter >= 'A' && letter <= 'Z') || letter == '.' || letter == '_' || letter == '-';
  };
  if (!given.empty() && !std::ranges::all_of(given, is_plain))  // a checkpoint's text lists them
    fail(
        ErrorKind::usage,
        "{} '{}': the name of a parameter must be of letters, digits, '.', '_' and '-', but is '{}'; correct it",
        kind, site.name, given);
  require_free_prefix(kind, name);
  if (!parameter_names_.insert(name).second)
    fail(ErrorKind::usage,
         "{} '{}': the names of parameters must differ, but an earlier op has '{}'; choose another", kind,
         site.name, name);
  return name;
}

void Builder::require_usable_name(std::string_view kind, const std::string& name) const {
  if (names_.contains(name))
    fail(ErrorKind::usage,
         "{} '{}': the name must be used once in model '{}', but an earlier op has it; choose another", kind,
         name, graph_.name);
  require_free_prefix(kind, name);
}

void Builder::require_free_prefix(std::string_view kind, const std::string& name) {
  // In checkpoints, arrays with these prefixes stand beside the parameters of all ops.
  for (const std::string_view prefix : {"optimizer.", "lookahead.", "ema."})
    if (name.starts_with(prefix))
      fail(
          ErrorKind::usage,
          "{} '{}': names that begin with '{}' are those of the optimizer's arrays in checkpoints; choose another",
          kind, name, prefix);
}

void Builder::require_possible_size(const Node& node) {
  for (const int index : node.parameters) {
    double elements = 1;
    for (const auto extent : graph_.parameters[static_cast<std::size_t>(index)].shape)
      elements *= static_cast<double>(extent);
    elements_ += elements;
  }
  if (elements_ <= kMostElements && node.shape.elements() <= kMostElements) return;
  fail(ErrorKind::usage,
       "model '{}': up to '{}' it has {:.2g} weights, and one sample has {:.2g} values there; at most {:.2g} "
       "of each are possible: take fewer channels or features",
       graph_.name, node.name, elements_, static_cast<double>(node.shape.elements()), kMostElements);
}

const Shape& Builder::shape_of(int node) const {
  expects(node >= 0 && node < static_cast<int>(graph_.nodes.size()), "the node exists");
  return graph_.nodes[static_cast<std::size_t>(node)].shape;
}

Graph Builder::finish() {
  if (graph_.nodes.empty() || !graph_.nodes.back().as<SoftmaxCrossEntropy>())
    fail(ErrorKind::usage, "model '{}': its last op must be the loss, but is {}; end it with loss(...)",
         graph_.name, graph_.nodes.empty() ? "missing" : "'" + graph_.nodes.back().name + "'");
  std::vector<bool> used(graph_.nodes.size(), false);
  used.back() = true;
  for (const Node& node : graph_.nodes)
    for (const int input : node.inputs) used[static_cast<std::size_t>(input)] = true;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      fail(ErrorKind::usage,
           "model '{}': every op must lead to the loss, but no op uses '{}'; name it as an input or remove "
           "it",
           graph_.name, graph_.nodes[i].name);
  return std::exchange(graph_, {});
}

std::string Builder::unique_name(const std::string& kind) {
  for (int& number = last_numbers_[kind];;) {
    std::string name = kind + std::to_string(++number);
    if (!names_.contains(name)) return name;
  }
}

std::vector<std::string> models_in_code() { return base::texts_of(kModels, &ModelRow::name); }

std::vector<std::string> model_names() {
  std::vector<std::string> names = models_in_code();
  for (const ModelText& file : zoo_files()) names.emplace_back(file.name);
  return names;
}

std::optional<Shape> recorded_input_of(const std::string& name_or_file) {
  if (name_or_file.ends_with(".toml")) return recorded_input(base::read_file(name_or_file), name_or_file);
  for (const ModelText& file : zoo_files())
    if (name_or_file == file.name) return recorded_input(file.text, name_or_file);
  return std::nullopt;
}

Shape usual_input(const std::string& name_or_file) {
  if (const auto recorded = recorded_input_of(name_or_file)) return *recorded;
  const std::string name = std::filesystem::path(name_or_file).filename().string();
  if (name.starts_with("mnist")) return {1, 28, 28};
  return name.find("cifar") != std::string::npos ? Shape{3, 32, 32} : Shape{3, 224, 224};
}

Graph make_model(const std::string& name, Shape input, int classes, double label_smoothing) {
  if (name.ends_with(".toml"))
    return parse_model(base::read_file(name), name, input, classes, label_smoothing);
  for (const ModelRow& row : kModels)
    if (name == row.name) return row.make(input, classes, label_smoothing);
  for (const ModelText& file : zoo_files())
    if (name == file.name)
      return parse_model(file.text, fmt::format("{} (a model of this program)", name), input, classes,
                         label_smoothing);
  base::fail(base::ErrorKind::usage, "model '{}' is not known{} (a file of layers ends in .toml)", name,
             base::suggestion(name, model_names()));
}

void set_class_weights(Graph& graph, std::vector<double> weights) {
  expects(
      std::ssize(weights) == graph.classes() && std::ranges::all_of(weights, [](double w) { return w > 0; }),
      "each class has a weight above 0");
  std::get<SoftmaxCrossEntropy>(graph.nodes.back().op).class_weights = std::move(weights);
}

}  // namespace paceline::graph
