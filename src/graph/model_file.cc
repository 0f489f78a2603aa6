#include "graph/zoo.h"

#include <fmt/core.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "graph/ops.h"

namespace paceline::graph {
namespace {

using base::Error;
using base::ErrorKind;
using base::suggestion;

/// Fails with "<file>:<line>: " in front of the sentence.
[[noreturn]] void fail_at(const std::string& source, const toml::node& node, const std::string& sentence) {
  throw Error(ErrorKind::usage, fmt::format("{}:{}: {}", source, node.source().begin.line, sentence));
}

/// The value as written in the file, for a sentence that ends "but is ...".
std::string written(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return fmt::format("the text \"{}\"", *text);
  if (const auto truth = node.value_exact<bool>()) return *truth ? "true" : "false";
  if (const auto number = node.value_exact<std::int64_t>()) return fmt::format("{}", *number);
  if (const auto number = node.value_exact<double>()) return fmt::format("{:#}", *number);  // 3.0 is not 3
  return node.is_array() ? "a list" : node.is_table() ? "a table" : "a date or a time";
}

/// One [[layer]] table: typed access to its keys, with errors that give file and line.
class LayerTable {
 public:
  LayerTable(const toml::table& table, const std::string& source, int classes)
      : table_(table), source_(source), classes_(classes) {}

  [[nodiscard]] std::optional<std::string> text(std::string_view key) const {
    return get<std::string>(key, "a text in quotes");
  }
  [[nodiscard]] int integer(std::string_view key, int otherwise) const {
    return static_cast<int>(checked(key, get<std::int64_t>(key, "a whole number").value_or(otherwise)));
  }
  /// A whole number, 0 if left out, that may be negative.
  [[nodiscard]] int signed_integer(std::string_view key) const {
    const auto value = get<std::int64_t>(key, "a whole number").value_or(0);
    return static_cast<int>(value < 0 ? -checked(key, value == INT64_MIN ? value : -value)
                                      : checked(key, value));
  }
  /// A whole number for both axes, or [height, width].
  [[nodiscard]] Pair pair(std::string_view key, Pair otherwise) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    const toml::array* list = node->as_array();
    if (list != nullptr && (list->size() != 2 || !list->is_homogeneous(toml::node_type::integer)))
      fail_at(
          source_, *node,
          fmt::format("'{}' must be a whole number, or a list of two, [height, width], but is another list; "
                      "correct it",
                      key));
    if (list == nullptr) return integer(key, 0);
    const auto at = [&](std::size_t i) {
      return static_cast<int>(checked(key, list->get(i)->value_or(std::int64_t{0})));
    };
    return {at(0), at(1)};
  }
  /// A required count; the text "classes" means the data set's number of classes.
  [[nodiscard]] int count(std::string_view key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr)
      fail_at(source_, table_,
              fmt::format("the layer needs '{}', but does not give it; add {} = 64", key, key));
    if (const auto word = node->value_exact<std::string>(); word && *word == "classes") return classes_;
    return integer(key, 0);
  }
  [[nodiscard]] double number(std::string_view key, double otherwise) const {
    if (const toml::node* node = table_.get(key); node != nullptr && node->is_integer())
      return static_cast<double>(node->value_or(std::int64_t{0}));
    return get<double>(key, "a number").value_or(otherwise);
  }
  [[nodiscard]] bool flag(std::string_view key, bool otherwise) const {
    return get<bool>(key, "true or false").value_or(otherwise);
  }
  /// The key "bias": true, false, or the text that names it (names_of).
  [[nodiscard]] bool has_bias(bool otherwise) const {
    const toml::node* node = table_.get("bias");
    return (node != nullptr && node->is_string()) || flag("bias", otherwise);
  }
  [[nodiscard]] const toml::table& table() const { return table_; }
  /// "<file>:<line of the key>: <sentence>".
  [[noreturn]] void fail(std::string_view key, const std::string& sentence) const {
    fail_at(source_, *table_.get(key), sentence);
  }

 private:
  template <typename T>
  [[nodiscard]] std::optional<T> get(std::string_view key, std::string_view wanted) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return std::nullopt;
    if (auto value = node->value_exact<T>()) return value;
    fail_at(source_, *node,
            fmt::format("'{}' must be {}, but is {}; correct it", key, wanted, written(*node)));
  }
  [[nodiscard]] std::int64_t checked(std::string_view key, std::int64_t value) const {
    constexpr std::int64_t kMost = 1 << 20;
    if (value < 0 || value > kMost)
      fail_at(source_, *table_.get(key),
              fmt::format("'{}' must be from 0 to {}, but is {}; correct it", key, kMost, value));
    return value;
  }
  const toml::table& table_;
  const std::string& source_;
  int classes_;
};

/// A kind of layer in model files: its keys, and the attributes made from them.
struct LayerKind {
  const char* op;
  std::vector<std::string> keys;
  std::function<Attributes(const LayerTable&)> attributes;
};

Init init_of_layer(const LayerTable& layer) {
  static const std::map<std::string, Init> kInits = {
      {"usual", Init::usual}, {"zero", Init::zero}, {"dirac", Init::dirac}, {"whiten", Init::whiten}};
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

template <typename Drop>
Attributes drop(const LayerTable& layer) {
  return Drop{.probability = layer.number("probability", Drop{}.probability)};
}

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
       {"features", "bias", "init", "weight_rate", "bias_rate"},
       [](const LayerTable& layer) -> Attributes {
         return Dense{.features = layer.count("features"),
                      .bias = layer.has_bias(Dense{}.bias),
                      .init = init_of_layer(layer),
                      .rates = rates_of(layer)};
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
      {"position",
       {"weight_rate"},
       [](const LayerTable& layer) -> Attributes { return Position{.rates = rates_of(layer)}; }},
      {"class_token",
       {"weight_rate"},
       [](const LayerTable& layer) -> Attributes { return ClassToken{.rates = rates_of(layer)}; }},
      {"first_place", {}, [](const LayerTable&) -> Attributes { return FirstPlace{}; }},
      {"attention",
       {"heads"},
       [](const LayerTable& layer) -> Attributes {
         return Attention{.heads = layer.integer("heads", Attention{}.heads)};
       }},
  };
}

void check_keys(const toml::table& table, const std::vector<std::string>& known, const std::string& what,
                const std::string& source) {
  for (const auto& [key, value] : table)
    if (std::find(known.begin(), known.end(), key.str()) == known.end())
      fail_at(source, value,
              fmt::format("{} has no key '{}'{}", what, key.str(), suggestion(key.str(), known)));
}

/// Builds the layers one after the other, and keeps the names given so far.
class ModelReader {
 public:
  ModelReader(Builder& model, const std::string& source, Shape input, int classes)
      : model_(model), source_(source), classes_(classes), kinds_(layer_kinds()) {
    last_ = nodes_["input"] = model.input(input);
  }

  void add(const toml::table& table) {
    const LayerTable layer(table, source_, classes_);
    const LayerKind& kind = kind_of(layer);
    std::vector<std::string> keys = kind.keys;
    keys.insert(keys.end(), {"op", "name", "input", "inputs", "weight", "bias"});
    check_keys(table, keys, fmt::format("a {} layer", kind.op), source_);

    const std::string name = layer.text("name").value_or("");
    if (table.contains("name") && (name.empty() || name == "input" || name == "loss"))
      fail_at(source_, *table.get("name"),
              fmt::format("a layer's name must not be empty, 'input' or 'loss', but is '{}'; choose another",
                          name));
    Attributes attributes = kind.attributes(layer);
    std::vector<int> inputs = inputs_of(layer, rule_of(attributes).inputs, kind.op);
    try {
      last_ = model_.append(std::move(attributes), std::move(inputs), name, names_of(layer, kind));
    } catch (const Error& error) {
      fail_at(source_, table, error.what());
    }
    if (!name.empty()) nodes_[name] = last_;
  }

  [[nodiscard]] int last() const { return last_; }

 private:
  [[nodiscard]] const LayerKind& kind_of(const LayerTable& layer) const {
    std::vector<std::string> names;
    for (const LayerKind& kind : kinds_) names.emplace_back(kind.op);
    const auto op = layer.text("op");
    if (!op)
      fail_at(source_, layer.table(),
              fmt::format("a layer must say its op, but has none{}", suggestion("", names)));
    for (const LayerKind& kind : kinds_)
      if (*op == kind.op) return kind;
    fail_at(source_, *layer.table().get("op"),
            fmt::format("op '{}' is not known{}", *op, suggestion(*op, names)));
  }

  /// weight = "NAME" and bias = "NAME"; of some kinds the bias may also be true or false.
  static ParameterNames names_of(const LayerTable& layer, const LayerKind& kind) {
    const auto name_of = [&](const char* key) {
      const toml::node* given = layer.table().get(key);
      const bool is_flag =
          given != nullptr && given->is_boolean() && std::ranges::find(kind.keys, key) != kind.keys.end();
      return is_flag ? std::string() : layer.text(key).value_or("");
    };
    return {.weight = name_of("weight"), .bias = name_of("bias")};
  }

  [[nodiscard]] std::vector<int> inputs_of(const LayerTable& layer, int wanted, const std::string& op) const {
    const toml::table& table = layer.table();
    std::vector<int> inputs;
    if (table.contains("input") && table.contains("inputs"))
      fail_at(source_, table,
              fmt::format("a {} layer takes 'input' or 'inputs', but has both; remove one", op));
    if (const toml::node* one = table.get("input")) {
      inputs.push_back(node_named(*one));
    } else if (const toml::node* several = table.get("inputs")) {
      const toml::array* array = several->as_array();
      if (array == nullptr)
        fail_at(source_, *several,
                fmt::format("'inputs' must be a list of layer names, but is {}; write [\"a\", \"b\"]",
                            written(*several)));
      for (const toml::node& element : *array) inputs.push_back(node_named(element));
    } else {
      inputs.push_back(last_);
    }
    if (wanted == kSeveral ? inputs.size() < 2 : static_cast<int>(inputs.size()) != wanted)
      fail_at(
          source_, table,
          fmt::format("op {} takes {}, but has {}; {}", op,
                      wanted == kSeveral ? "two or more inputs" : base::counted(wanted, "input"),
                      inputs.size(), wanted == 1 ? "write input = \"a\"" : "write inputs = [\"a\", \"b\"]"));
    return inputs;
  }

  [[nodiscard]] int node_named(const toml::node& node) const {
    const auto name = node.value_exact<std::string>();
    if (!name)
      fail_at(source_, node,
              fmt::format("an input must be a layer's name in quotes, but is {}; correct it", written(node)));
    if (const auto found = nodes_.find(*name); found != nodes_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [key, value] : nodes_) known.push_back(key);
    fail_at(source_, node, fmt::format("no layer above is named '{}'{}", *name, suggestion(*name, known)));
  }

  Builder& model_;
  const std::string& source_;
  int classes_;
  std::vector<LayerKind> kinds_;
  std::map<std::string, int> nodes_;
  int last_ = 0;
};

toml::table parse_toml(std::string_view text, const std::string& source) {
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    base::fail(ErrorKind::usage, "{}:{}: this is not valid TOML: {}; correct the line", source,
               error.source().begin.line, error.description());
  }
}

constexpr std::int64_t kMostImageSide = 65'536;

std::optional<Shape> image_of(const toml::table& file, const std::string& source) {
  const toml::node* given = file.get("image");
  if (given == nullptr) return std::nullopt;
  const toml::array* sides = given->as_array();
  std::array<std::int64_t, 3> shape{};
  bool is_shape = sides != nullptr && sides->size() == shape.size();
  for (std::size_t i = 0; is_shape && i < shape.size(); ++i) {
    shape[i] = sides->get(i)->value_exact<std::int64_t>().value_or(0);
    is_shape = shape[i] >= 1 && shape[i] <= kMostImageSide;
  }
  if (!is_shape)
    fail_at(
        source, *given,
        fmt::format("'image' must be [channels, height, width], such as [3, 224, 224], but is {}; correct it",
                    written(*given)));
  return Shape{static_cast<int>(shape[0]), static_cast<int>(shape[1]), static_cast<int>(shape[2])};
}

}  // namespace

std::optional<Shape> recorded_input(std::string_view text, const std::string& source) {
  return image_of(parse_toml(text, source), source);
}

Graph parse_model(std::string_view text, const std::string& source, Shape input, int classes,
                  double label_smoothing) {
  const toml::table file = parse_toml(text, source);
  check_keys(file, {"name", "image", "layer"}, "a model file", source);
  static_cast<void>(image_of(file, source));  // refused where it is none
  if (const toml::node* name = file.get("name"); name != nullptr && !name->is_string())
    fail_at(source, *name,
            fmt::format("'name' must be a text in quotes, but is {}; correct it", written(*name)));
  const toml::node* given = file.get("layer");
  const toml::array* layers = given == nullptr ? nullptr : given->as_array();
  if (given != nullptr && (layers == nullptr || !layers->is_homogeneous(toml::node_type::table)))
    fail_at(
        source, *given,
        fmt::format("'layer' must be [[layer]] tables, but is {}; write each layer as one", written(*given)));
  if (layers == nullptr)
    base::fail(ErrorKind::usage,
               "{}: a model file must have layers, but has none; write each as a [[layer]] table", source);
  Builder model(file["name"].value_or(std::filesystem::path(source).stem().string()));
  ModelReader reader(model, source, input, classes);
  for (const toml::node& layer : *layers) reader.add(*layer.as_table());
  const toml::node& end = *layers->get(layers->size() - 1);
  try {
    if (const Shape& logits = model.shape_of(reader.last()); logits != Shape{classes, 1, 1})
      base::fail(ErrorKind::usage,
                 "the last layer must give one number for each of the {} classes, but gives {}; end the "
                 "model with a dense layer of features = \"classes\"",
                 classes, paceline::graph::text(logits));
    model.loss(reader.last(), label_smoothing);
    return model.finish();
  } catch (const Error& error) {
    fail_at(source, end, error.what());
  }
}

Graph read_model_file(const std::filesystem::path& path, Shape input, int classes, double label_smoothing) {
  return parse_model(base::read_file(path), path.string(), input, classes, label_smoothing);
}

}  // namespace paceline::graph
