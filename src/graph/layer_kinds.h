#pragma once

/// The kinds of layers of model files, and typed access to the keys of one layer. For model_file.cc.

#include <toml++/toml.h>

#include <fmt/core.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace paceline::graph {

/// Fails with "<file>:<line>: " in front of the sentence.
[[noreturn]] void fail_at(const std::string& source, const toml::node& node, const std::string& sentence);

/// The value as written in the file, for a sentence that ends "but is ...".
[[nodiscard]] std::string written(const toml::node& node);

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

/// All of them.
[[nodiscard]] std::vector<LayerKind> layer_kinds();

}  // namespace paceline::graph
