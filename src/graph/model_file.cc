#include "graph/zoo.h"

#include <fmt/core.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "graph/layer_kinds.h"
#include "graph/ops.h"

namespace paceline::graph {
namespace {

using base::Error;
using base::ErrorKind;
using base::suggestion;

void check_keys(const toml::table& table, const std::vector<std::string>& known, const std::string& what,
                const std::string& source) {
  for (const auto& [key, value] : table)
    if (std::find(known.begin(), known.end(), key.str()) == known.end())
      fail_at(source, value, "{} has no key '{}'{}", what, key.str(), suggestion(key.str(), known));
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
              "a layer's name must not be empty, 'input' or 'loss', but is '{}'; choose another", name);
    Attributes attributes = kind.attributes(layer);
    std::vector<int> inputs = inputs_of(layer, rule_of(attributes).inputs, kind.op);
    try {
      last_ = model_.append(std::move(attributes), std::move(inputs), name, names_of(layer, kind));
    } catch (const Error& error) {
      fail_at(source_, table, "{}", error.what());
    }
    if (!name.empty()) nodes_[name] = last_;
  }

  [[nodiscard]] int last() const { return last_; }

 private:
  [[nodiscard]] const LayerKind& kind_of(const LayerTable& layer) const {
    const auto names = base::texts_of(kinds_, &LayerKind::op);
    const auto op = layer.text("op");
    if (!op)
      fail_at(source_, layer.table(), "a layer must say its op, but has none{}", suggestion("", names));
    for (const LayerKind& kind : kinds_)
      if (*op == kind.op) return kind;
    fail_at(source_, *layer.table().get("op"), "op '{}' is not known{}", *op, suggestion(*op, names));
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
      fail_at(source_, table, "a {} layer takes 'input' or 'inputs', but has both; remove one", op);
    if (const toml::node* one = table.get("input")) {
      inputs.push_back(node_named(*one));
    } else if (const toml::node* several = table.get("inputs")) {
      const toml::array* array = several->as_array();
      if (array == nullptr)
        fail_at(source_, *several, "'inputs' must be a list of layer names, but is {}; write [\"a\", \"b\"]",
                written(*several));
      for (const toml::node& element : *array) inputs.push_back(node_named(element));
    } else {
      inputs.push_back(last_);
    }
    if (wanted == kSeveral ? inputs.size() < 2 : static_cast<int>(inputs.size()) != wanted)
      fail_at(source_, table, "op {} takes {}, but has {}; {}", op,
              wanted == kSeveral ? "two or more inputs" : base::counted(wanted, "input"), inputs.size(),
              wanted == 1 ? "write input = \"a\"" : "write inputs = [\"a\", \"b\"]");
    return inputs;
  }

  [[nodiscard]] int node_named(const toml::node& node) const {
    const auto name = node.value_exact<std::string>();
    if (!name)
      fail_at(source_, node, "an input must be a layer's name in quotes, but is {}; correct it",
              written(node));
    if (const auto found = nodes_.find(*name); found != nodes_.end()) return found->second;
    const auto known = base::texts_of(nodes_, [](const auto& named) { return named.first; });
    fail_at(source_, node, "no layer above is named '{}'{}", *name, suggestion(*name, known));
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
    fail_at(source, *given,
            "'image' must be [channels, height, width], such as [3, 224, 224], but is {}; correct it",
            written(*given));
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
    fail_at(source, *name, "'name' must be a text in quotes, but is {}; correct it", written(*name));
  const toml::node* given = file.get("layer");
  const toml::array* layers = given == nullptr ? nullptr : given->as_array();
  if (given != nullptr && (layers == nullptr || !layers->is_homogeneous(toml::node_type::table)))
    fail_at(source, *given, "'layer' must be [[layer]] tables, but is {}; write each layer as one",
            written(*given));
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
    fail_at(source, end, "{}", error.what());
  }
}

}  // namespace paceline::graph
