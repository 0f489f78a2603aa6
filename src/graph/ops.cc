#include "graph/ops.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/error.h"

namespace paceline::graph {
namespace {

Shape same_shape(const OpSite& site) { return site.src[0]; }

Shape input_shape(const OpSite& site) {
  const Shape& src = site.as<Input>().shape;
  if (src.channels < 1 || src.height < 1 || src.width < 1)
    base::fail(
        base::ErrorKind::usage,
        "input: channels, height and width must be at least 1, but are {}; check the data set's image size",
        text(src));
  return src;
}

Shape dense_shape(const OpSite& site) {
  const auto& dense = site.as<Dense>();
  if (dense.features < 1)
    base::fail(base::ErrorKind::usage,
               "dense '{}': features must be at least 1, but is {}; say how many it makes", site.name,
               dense.features);
  check_rates(site, dense.rates);
  if (dense.init == Init::dirac || dense.init == Init::whiten)
    base::fail(base::ErrorKind::usage,
               "dense '{}': init \"dirac\" and \"whiten\" are for conv2d; leave init out or take \"zero\"",
               site.name);
  const Shape& src = site.src[0];
  return dense.flatten ? Shape{dense.features, 1, 1} : Shape{dense.features, src.height, src.width};
}

/// Elements of the input that one output element reads.
std::int64_t dense_inputs(const OpSite& site) {
  return site.as<Dense>().flatten ? site.src[0].elements() : site.src[0].channels;
}

std::vector<ParameterRule> dense_parameters(const OpSite& site) {
  const auto& dense = site.as<Dense>();
  std::vector<ParameterRule> rules = {
      {"weight", {dense.features, dense_inputs(site)}, Role::weight, dense.rates.weight}};
  if (dense.bias) rules.push_back({"bias", {dense.features}, Role::bias, dense.rates.bias});
  return rules;
}

std::int64_t dense_multiply_adds(const OpSite& site, const Shape& dst) {
  return dst.elements() * dense_inputs(site);
}

Shape batch_norm_shape(const OpSite& site) {
  const auto& norm = site.as<BatchNorm>();
  if (!(norm.epsilon > 0) || !(norm.momentum > 0 && norm.momentum <= 1))
    base::fail(
        base::ErrorKind::usage,
        "batch_norm '{}': epsilon must be above 0 and momentum in (0, 1], but they are {} and {}; PyTorch's "
        "defaults are 1e-5 and 0.1",
        site.name, norm.epsilon, norm.momentum);
  if (norm.init != Init::usual && norm.init != Init::zero)
    base::fail(base::ErrorKind::usage,
               "batch_norm '{}': its weight starts as usual (1) or at zero; other ways are for convolutions: "
               "correct 'init'",
               site.name);
  check_rates(site, norm.rates);
  return site.src[0];
}

std::vector<ParameterRule> batch_norm_parameters(const OpSite& site) {
  const std::int64_t channels = site.src[0].channels;
  const Rates& rates = site.as<BatchNorm>().rates;
  return {{"weight", {channels}, Role::norm_weight, rates.weight},
          {"bias", {channels}, Role::norm_bias, rates.bias},
          {"running_mean", {channels}, Role::running_mean},
          {"running_var", {channels}, Role::running_var}};
}

Shape pad_shape(const OpSite& site) {
  const auto& pad = site.as<Pad>();
  const Shape& src = site.src[0];
  const auto side = [&](const char* what, int size, int before, int after) {
    const std::int64_t kept = std::int64_t{size} + std::min(before, 0) + std::min(after, 0);
    const std::int64_t made = std::int64_t{size} + before + after;
    if (kept < 1 || made > std::int64_t{1} << 28)
      base::fail(base::ErrorKind::usage,
                 "pad '{}': it must keep some of its input's {} {}, but adds {} and {}; correct them",
                 site.name, size, what, before, after);
    return static_cast<int>(made);
  };
  return {side("channels", src.channels, pad.front, pad.back), side("rows", src.height, pad.top, pad.bottom),
          side("columns", src.width, pad.left, pad.right)};
}

Shape add_shape(const OpSite& site) {
  if (site.src[0] != site.src[1])
    base::fail(base::ErrorKind::usage,
               "add '{}': both inputs must have one shape, but have {} and {}; give the shortcut a 1x1 "
               "convolution with the same stride and channels as the branch",
               site.name, text(site.src[0]), text(site.src[1]));
  return site.src[0];
}

Shape mul_shape(const OpSite& site) {
  const Shape &left = site.src[0], &right = site.src[1];
  if (right != left && right != Shape{.channels = left.channels})
    base::fail(base::ErrorKind::usage,
               "mul '{}': the second input must have the first one's shape {}, or be [{},1,1], a factor for "
               "each channel, but is {}; exchange the inputs, or pool the second one first",
               site.name, text(left), left.channels, text(right));
  return left;
}

Shape concat_shape(const OpSite& site) {
  Shape dst = site.src[0];
  for (const Shape& src : site.src.subspan(1)) {
    if (src.height != dst.height || src.width != dst.width)
      base::fail(
          base::ErrorKind::usage,
          "concat '{}': all inputs must have one height and width, but the first is {} and another {}; "
          "give both the same stride before",
          site.name, text(site.src[0]), text(src));
    dst.channels += src.channels;
  }
  return dst;
}

Shape slice_shape(const OpSite& site) {
  const auto& slice = site.as<Slice>();
  const Shape& src = site.src[0];
  if (slice.begin < 0 || slice.channels < 1 || slice.begin > src.channels - slice.channels)
    base::fail(base::ErrorKind::usage,
               "slice '{}': begin and channels must lie within the {} channels of its input, but are {} and "
               "{}; correct them",
               site.name, src.channels, slice.begin, slice.channels);
  return {slice.channels, src.height, src.width};
}

Shape channel_shuffle_shape(const OpSite& site) {
  const int groups = site.as<ChannelShuffle>().groups, channels = site.src[0].channels;
  if (groups < 1 || channels % groups != 0)
    base::fail(base::ErrorKind::usage,
               "channel_shuffle '{}': groups must divide the {} channels of its input, but is {}; take the "
               "number of groups of the convolution before",
               site.name, channels, groups);
  return site.src[0];
}

/// Of dropout and stochastic_depth.
template <typename Drop>
Shape drop_shape(const OpSite& site) {
  const double probability = site.as<Drop>().probability;
  if (!(probability >= 0 && probability < 1))
    base::fail(base::ErrorKind::usage, "{} '{}': probability must be in [0, 1), but is {}; {} is common",
               rule_of(site.op).kind, site.name, probability, Drop{}.probability);
  return site.src[0];
}

Shape softmax_cross_entropy_shape(const OpSite& site) {
  const Shape& src = site.src[0];
  const double smoothing = site.as<SoftmaxCrossEntropy>().label_smoothing;
  if (src.height != 1 || src.width != 1 || src.channels < 2)
    base::fail(base::ErrorKind::usage,
               "softmax_cross_entropy '{}': its input must be one number for each of 2 or more classes, but "
               "is {}; end the model with a dense layer of as many features as classes",
               site.name, text(src));
  if (!(smoothing >= 0 && smoothing < 1))
    base::fail(base::ErrorKind::usage,
               "softmax_cross_entropy '{}': label smoothing must be in [0, 1), but is {}; 0.1 is common",
               site.name, smoothing);
  return {1, 1, 1};
}

/// The gradient of these is a function of the output; all others need the input.
template <typename Op>
constexpr Saved kept_by_elementwise(const Op&) {
  const bool is_of_dst = std::is_same_v<Op, Relu> || std::is_same_v<Op, Relu6> ||
                         std::is_same_v<Op, Sigmoid> || std::is_same_v<Op, Tanh>;
  return {.src = !is_of_dst, .dst = is_of_dst};
}

OpRule named(OpRule rule, std::string_view kind) {
  rule.kind = kind;
  return rule;
}

std::vector<Shape> input_shapes(const Graph& graph, const Node& node) {
  std::vector<Shape> shapes;
  for (const int input : node.inputs) shapes.push_back(graph.nodes[static_cast<std::size_t>(input)].shape);
  return shapes;
}

}  // namespace

OpRule make_rule(const Input&) { return {.inputs = 0, .shape = input_shape}; }

OpRule make_rule(const Dense&) {
  return {.saved = {.src = true},
          .shape = dense_shape,
          .parameters = dense_parameters,
          .multiply_adds = dense_multiply_adds};
}

OpRule make_rule(const BatchNorm&) {
  return {.saved = {.src = true, .statistics = true},
          .in_place = true,
          .shape = batch_norm_shape,
          .parameters = batch_norm_parameters};
}

#define PACELINE_RULE(Op, name)                                                         \
  OpRule make_rule(const Op&) {                                                         \
    return {.saved = kept_by_elementwise(Op{}), .in_place = true, .shape = same_shape}; \
  }
PACELINE_ELEMENTWISE_OPS(PACELINE_RULE)
#undef PACELINE_RULE

OpRule make_rule(const GlobalAveragePool&) {
  return {.shape = [](const OpSite& site) { return Shape{site.src[0].channels, 1, 1}; }};
}

OpRule make_rule(const Add&) { return {.inputs = 2, .in_place = true, .shape = add_shape}; }

OpRule make_rule(const Mul&) { return {.inputs = 2, .saved = {.src = true}, .shape = mul_shape}; }

OpRule make_rule(const Concat&) { return {.inputs = kSeveral, .shape = concat_shape}; }

OpRule make_rule(const Slice&) { return {.shape = slice_shape}; }

OpRule make_rule(const ChannelShuffle&) { return {.shape = channel_shuffle_shape}; }

OpRule make_rule(const Pad&) { return {.shape = pad_shape}; }

// Nothing is saved of these: what is dropped is a pure function of seed and position and is computed again in
// the backward pass.

OpRule make_rule(const StochasticDepth&) { return {.in_place = true, .shape = drop_shape<StochasticDepth>}; }

OpRule make_rule(const Dropout&) { return {.in_place = true, .shape = drop_shape<Dropout>}; }

OpRule make_rule(const SoftmaxCrossEntropy&) {
  return {.saved = {.dst = true}, .shape = softmax_cross_entropy_shape};
}

const OpRule& rule_of(const Attributes& op) {
#define PACELINE_NAMED(Op, name) named(make_rule(Op{}), #name),
  static const OpRule rules[] = {PACELINE_OPS(PACELINE_NAMED)};
#undef PACELINE_NAMED
  return rules[op.index()];
}

std::int64_t multiply_adds(const Graph& graph, int index) {
  const Node& node = graph.nodes[static_cast<std::size_t>(index)];
  const OpRule& rule = rule_of(node.op);
  if (rule.multiply_adds == nullptr) return 0;
  const auto src = input_shapes(graph, node);
  return rule.multiply_adds({node.name, node.op, src}, node.shape);
}

bool learns(const Graph& graph, int node) {
  const auto& parameters = graph.nodes[static_cast<std::size_t>(node)].parameters;
  return std::any_of(parameters.begin(), parameters.end(), [&](int index) {
    const Parameter& parameter = graph.parameters[static_cast<std::size_t>(index)];
    return is_trainable(parameter.role) && !parameter.is_frozen();
  });
}

std::vector<bool> needs_gradient(const Graph& graph) {
  std::vector<bool> needs(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto* norm = graph.nodes[i].as<BatchNorm>();
    needs[i] = learns(graph, static_cast<int>(i)) || (norm != nullptr && !norm->is_frozen);
    for (const int input : graph.nodes[i].inputs)
      needs[i] = needs[i] || needs[static_cast<std::size_t>(input)];
  }
  return needs;
}

void check_rates(const OpSite& site, const Rates& rates) {
  for (const double rate : {rates.weight, rates.bias})
    if (!(rate >= 0) || !std::isfinite(rate))
      base::fail(
          base::ErrorKind::usage,
          "{} '{}': weight_rate and bias_rate are factors of the learning rate, 0 or more, but one is {}; "
          "0 freezes, 1 is usual",
          rule_of(site.op).kind, site.name, rate);
}

std::string text(const Shape& shape) {
  return fmt::format("[{},{},{}]", shape.channels, shape.height, shape.width);
}

std::string text(const Pair& pair) {
  return pair.is_square() ? fmt::format("{}", pair.height) : fmt::format("{}x{}", pair.height, pair.width);
}

}  // namespace paceline::graph
