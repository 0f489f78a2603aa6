#include "graph/layer_kinds.h"

#include <fmt/core.h>

#include <map>
#include <type_traits>

#include "base/error.h"
#include "base/text.h"

namespace paceline::graph {

void fail_at(const std::string& source, const toml::node& node, const std::string& sentence) {
  throw base::Error(base::ErrorKind::usage,
                    fmt::format("{}:{}: {}", source, node.source().begin.line, sentence));
}

std::string written(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return fmt::format("the text \"{}\"", *text);
  if (const auto truth = node.value_exact<bool>()) return *truth ? "true" : "false";
  if (const auto number = node.value_exact<std::int64_t>()) return fmt::format("{}", *number);
  if (const auto number = node.value_exact<double>()) return fmt::format("{:#}", *number);  // 3.0 is not 3
  return node.is_array() ? "a list" : node.is_table() ? "a table" : "a date or a time";
}

namespace {

using base::suggestion;

Init init_of_layer(const LayerTable& layer) {
  static const std::map<std::string, Init> kInits = {{"usual", Init::usual},
                                                     {"zero", Init::zero},
                                                     {"dirac", Init::dirac},
                                                     {"whiten", Init::whiten},
                                                     {"normal", Init::normal}};
  const auto name = layer.text("init");
  if (!name) return Init::usual;
  if (const auto found = kInits.find(*name); found != kInits.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [key, value] : kInits) known.push_back(key);
  layer.fail("init", fmt::format("init '{}' is not known{}", *name, suggestion(*name, known)));
}

Rates rates_of(const LayerTable& layer) {
  return {.weight = layer.number("weight_rate", Rates{}.weight),
          .bias = layer.number("bias_rate", Rates{}.bias)};
}

template <typename Pool>
Attributes pool(const LayerTable& layer) {
  const Pair kernel = layer.pair("kernel", Pool{}.kernel);
  Pool pool{.kernel = kernel,
            .stride = layer.pair("stride", kernel),
            .padding = layer.pair("padding", Pool{}.padding),
            .ceil = layer.flag("ceil", Pool{}.ceil)};
  if constexpr (std::is_same_v<Pool, AveragePool>)
    pool.count_padding = layer.flag("count_padding", pool.count_padding);
  return pool;
}

/// Of position and class_token.
template <typename Token>
Attributes token(const LayerTable& layer) {
  return Token{.rates = rates_of(layer)};
}

template <typename Drop>
Attributes drop(const LayerTable& layer) {
  return Drop{.probability = layer.number("probability", Drop{}.probability)};
}

}  // namespace

std::vector<LayerKind> layer_kinds() {
  return {
      {"conv2d",
       {"channels", "kernel", "stride", "padding", "dilation", "groups", "bias", "init", "weight_rate",
        "bias_rate"},
       [](const LayerTable& layer) -> Attributes {
         return Conv2d{.channels = layer.count("channels"),
                       .kernel = layer.pair("kernel", Conv2d{}.kernel),
                       .stride = layer.pair("stride", Conv2d{}.stride),
                       .padding = layer.pair("padding", Conv2d{}.padding),
                       .dilation = layer.pair("dilation", Conv2d{}.dilation),
                       .groups = layer.integer("groups", Conv2d{}.groups),
                       .bias = layer.has_bias(Conv2d{}.bias),
                       .init = init_of_layer(layer),
                       .rates = rates_of(layer)};
       }},
      {"dense",
       {"features", "bias", "flatten", "init", "weight_rate", "bias_rate"},
       [](const LayerTable& layer) -> Attributes {
         return Dense{.features = layer.count("features"),
                      .bias = layer.has_bias(Dense{}.bias),
                      .init = init_of_layer(layer),
                      .rates = rates_of(layer),
                      .flatten = layer.flag("flatten", Dense{}.flatten)};
       }},
      {"batch_norm",
       {"epsilon", "momentum", "init", "weight_rate", "bias_rate"},
       [](const LayerTable& layer) -> Attributes {
         return BatchNorm{.epsilon = layer.number("epsilon", BatchNorm{}.epsilon),
                          .momentum = layer.number("momentum", BatchNorm{}.momentum),
                          .init = init_of_layer(layer),
                          .rates = rates_of(layer)};
       }},
#define PACELINE_KIND(Op, name) {#name, {}, [](const LayerTable&) -> Attributes { return Op{}; }},
      PACELINE_ELEMENTWISE_OPS(PACELINE_KIND)
#undef PACELINE_KIND
          {"max_pool", {"kernel", "stride", "padding", "ceil"}, pool<MaxPool>},
      {"average_pool", {"kernel", "stride", "padding", "ceil", "count_padding"}, pool<AveragePool>},
      {"adaptive_average_pool",
       {"size"},
       [](const LayerTable& layer) -> Attributes {
         return AdaptiveAveragePool{.size = layer.pair("size", AdaptiveAveragePool{}.size)};
       }},
      {"global_average_pool", {}, [](const LayerTable&) -> Attributes { return GlobalAveragePool{}; }},
      {"add", {}, [](const LayerTable&) -> Attributes { return Add{}; }},
      {"mul", {}, [](const LayerTable&) -> Attributes { return Mul{}; }},
      {"concat", {}, [](const LayerTable&) -> Attributes { return Concat{}; }},
      {"slice",
       {"begin", "channels"},
       [](const LayerTable& layer) -> Attributes {
         return Slice{.begin = layer.integer("begin", Slice{}.begin), .channels = layer.count("channels")};
       }},
      {"channel_shuffle",
       {"groups"},
       [](const LayerTable& layer) -> Attributes {
         return ChannelShuffle{.groups = layer.integer("groups", ChannelShuffle{}.groups)};
       }},
      {"pad",
       {"top", "bottom", "left", "right", "front", "back"},
       [](const LayerTable& layer) -> Attributes {
         return Pad{.top = layer.signed_integer("top"),
                    .bottom = layer.signed_integer("bottom"),
                    .left = layer.signed_integer("left"),
                    .right = layer.signed_integer("right"),
                    .front = layer.signed_integer("front"),
                    .back = layer.signed_integer("back")};
       }},
      {"stochastic_depth", {"probability"}, drop<StochasticDepth>},
      {"dropout", {"probability"}, drop<Dropout>},
      {"position", {"weight_rate"}, token<Position>},
      {"class_token", {"weight_rate"}, token<ClassToken>},
      {"first_place", {}, [](const LayerTable&) -> Attributes { return FirstPlace{}; }},
      {"attention",
       {"heads"},
       [](const LayerTable& layer) -> Attributes {
         return Attention{.heads = layer.integer("heads", Attention{}.heads)};
       }},
      {"layer_norm",
       {"epsilon", "weight_rate", "bias_rate"},
       [](const LayerTable& layer) -> Attributes {
         return LayerNorm{.epsilon = layer.number("epsilon", LayerNorm{}.epsilon), .rates = rates_of(layer)};
       }},
      {"group_norm",
       {"groups", "epsilon", "weight_rate", "bias_rate"},
       [](const LayerTable& layer) -> Attributes {
         return GroupNorm{.groups = layer.integer("groups", GroupNorm{}.groups),
                          .epsilon = layer.number("epsilon", GroupNorm{}.epsilon),
                          .rates = rates_of(layer)};
       }},
      {"scale",
       {"initial", "dimensions", "weight_rate"},
       [](const LayerTable& layer) -> Attributes {
         return Scale{.initial = layer.number("initial", Scale{}.initial),
                      .dimensions = layer.integer("dimensions", Scale{}.dimensions),
                      .weight_rate = layer.number("weight_rate", Scale{}.weight_rate)};
       }},
  };
}

}  // namespace paceline::graph
