#include "graph/layer_kinds.h"

#include <fmt/core.h>

#include <map>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "graph/ops.h"

namespace paceline::graph {

std::string written(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return fmt::format("the text \"{}\"", *text);
  if (const auto truth = node.value_exact<bool>()) return *truth ? "true" : "false";
  if (const auto number = node.value_exact<std::int64_t>()) return fmt::format("{}", *number);
  if (const auto number = node.value_exact<double>()) return fmt::format("{:#}", *number);  // 3.0 is not 3
  return node.is_array() ? "a list" : node.is_table() ? "a table" : "a date or a time";
}

void LayerTable::operator()(std::string_view key, Init& value, const KeyUse& /*use*/) const {
  static const std::map<std::string, Init> kInits = {{"usual", Init::usual},
                                                     {"zero", Init::zero},
                                                     {"dirac", Init::dirac},
                                                     {"whiten", Init::whiten},
                                                     {"normal", Init::normal}};
  const auto name = text(key);
  if (!name) return;
  if (const auto found = kInits.find(*name); found != kInits.end()) {
    value = found->second;
    return;
  }
  const auto known = base::texts_of(kInits, [](const auto& row) { return row.first; });
  fail_at(source_, *table_.get(key), "init '{}' is not known{}", *name, base::suggestion(*name, known));
}

namespace {

/// Collects the keys.
struct KeyNames {
  static constexpr bool kReads = false;
  std::vector<std::string> names;
  template <typename T>
  void operator()(std::string_view key, const T& /*value*/, const KeyUse& /*use*/ = {}) {
    names.emplace_back(key);
  }
};

/// Writes the keys that are said, as a model file has them.
struct KeyTexts {
  static constexpr bool kReads = false;
  std::string text;
  template <typename T>
  void operator()(std::string_view key, const T& value, const KeyUse& use = {}) {
    if (use.is_said) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, value);
  }
  void operator()(std::string_view key, const Pair& pair, const KeyUse& use = {}) {
    if (pair.is_square())
      (*this)(key, pair.height, use);
    else
      (*this)(key, fmt::format("[{},{}]", pair.height, pair.width), use);
  }
  void operator()(std::string_view /*key*/, const Init& /*value*/, const KeyUse& /*use*/ = {}) {}
};

// keys_of(): the keys of each op that has some, in the order of attributes_text().

constexpr KeyUse kOfTraining{.is_said = false};

/// Neither the input nor the loss is a layer; the others have no attributes.
template <typename Op>
requires std::is_empty_v<Op> || std::is_same_v<Op, Input> || std::is_same_v<Op, SoftmaxCrossEntropy>
void keys_of(auto&, Op&) {}

void keys_of(auto& key, Rates& rates) {
  key("weight_rate", rates.weight, kOfTraining);
  key("bias_rate", rates.bias, kOfTraining);
}

void keys_of(auto& key, Conv2d& conv) {
  key("channels", conv.channels, {.is_required = true});
  key("kernel", conv.kernel);
  key("stride", conv.stride);
  key("padding", conv.padding);
  key("bias", conv.bias);
  key("groups", conv.groups, {.is_said = conv.groups != 1});
  key("dilation", conv.dilation, {.is_said = conv.dilation != 1});
  key("init", conv.init);
  keys_of(key, conv.rates);
}

void keys_of(auto& key, Dense& dense) {
  key("features", dense.features, {.is_required = true});
  key("bias", dense.bias);
  key("flatten", dense.flatten, {.is_said = !dense.flatten});
  key("init", dense.init);
  keys_of(key, dense.rates);
}

void keys_of(auto& key, BatchNorm& norm) {
  key("epsilon", norm.epsilon);
  key("momentum", norm.momentum);
  key("init", norm.init);
  keys_of(key, norm.rates);
}

void keys_of(auto& key, LayerNorm& norm) {
  key("epsilon", norm.epsilon);
  keys_of(key, norm.rates);
}

void keys_of(auto& key, GroupNorm& norm) {
  key("groups", norm.groups);
  key("epsilon", norm.epsilon);
  keys_of(key, norm.rates);
}

void keys_of(auto& key, Scale& scale) {
  key("initial", scale.initial, kOfTraining);
  key("dimensions", scale.dimensions);
  key("weight_rate", scale.weight_rate, kOfTraining);
}

template <typename Keys, typename Pool>
requires std::is_same_v<Pool, MaxPool> || std::is_same_v<Pool, AveragePool>
void keys_of(Keys& key, Pool& pool) {
  key("kernel", pool.kernel);
  if constexpr (Keys::kReads) pool.stride = pool.kernel;  // unless the layer gives another one
  key("stride", pool.stride);
  key("padding", pool.padding);
  key("ceil", pool.ceil, {.is_said = pool.ceil});
  if constexpr (std::is_same_v<Pool, AveragePool>)
    key("count_padding", pool.count_padding, {.is_said = !pool.count_padding});
}

void keys_of(auto& key, AdaptiveAveragePool& pool) { key("size", pool.size); }

void keys_of(auto& key, Slice& slice) {
  key("begin", slice.begin);
  key("channels", slice.channels, {.is_required = true});
}

void keys_of(auto& key, ChannelShuffle& shuffle) { key("groups", shuffle.groups); }

void keys_of(auto& key, Pad& pad) {
  key("top", pad.top, {.is_signed = true});
  key("bottom", pad.bottom, {.is_signed = true});
  key("left", pad.left, {.is_signed = true});
  key("right", pad.right, {.is_signed = true});
  key("front", pad.front, {.is_signed = true});
  key("back", pad.back, {.is_signed = true});
}

void keys_of(auto& key, StochasticDepth& drop) { key("probability", drop.probability); }

void keys_of(auto& key, Dropout& drop) { key("probability", drop.probability); }

void keys_of(auto& key, Position& position) { key("weight_rate", position.rates.weight, kOfTraining); }

void keys_of(auto& key, ClassToken& token) { key("weight_rate", token.rates.weight, kOfTraining); }

void keys_of(auto& key, Attention& attention) { key("heads", attention.heads); }

template <typename Op>
LayerKind kind_of_layer(const char* op) {
  KeyNames keys;
  Op usual;
  keys_of(keys, usual);
  return {op, std::move(keys.names), [](const LayerTable& layer) -> Attributes {
            Op own;
            keys_of(layer, own);
            return own;
          }};
}

}  // namespace

std::vector<LayerKind> layer_kinds() {
  std::vector<LayerKind> kinds;
#define PACELINE_KIND(Op, name) kinds.push_back(kind_of_layer<Op>(#name));
  PACELINE_OPS(PACELINE_KIND)
#undef PACELINE_KIND
  std::erase_if(kinds, [](const LayerKind& kind) {
    return std::string_view(kind.op) == "input" || std::string_view(kind.op) == "softmax_cross_entropy";
  });
  return kinds;
}

std::string attributes_text(const Attributes& op) {
  KeyTexts keys;
  std::visit([&](auto own) { keys_of(keys, own); }, op);
  return std::move(keys.text);
}

}  // namespace paceline::graph
