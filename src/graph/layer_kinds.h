#pragma once

/// The kinds of layers of model files, and access to the keys of one layer. For model_file.cc.

#include <toml++/toml.h>

#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"

namespace paceline::graph {

/// Fails with "<file>:<line>: " in front of the fmt-formatted sentence.
template <typename... Args>
[[noreturn]] void fail_at(const std::string& source, const toml::node& node,
                          fmt::format_string<Args...> format, Args&&... args) {
  base::fail(base::ErrorKind::usage, "{}:{}: {}", source, node.source().begin.line,
             fmt::format(format, std::forward<Args>(args)...));
}

/// The value as written in the file, for a sentence that ends "but is ...".
[[nodiscard]] std::string written(const toml::node& node);

/// How a key of a layer is used.
struct KeyUse {
  bool is_said = true;       ///< in attributes_text(); false where it changes the training only
  bool is_required = false;  ///< of a count, for which "classes" means the data set's number of classes
  bool is_signed = false;    ///< of a whole number that may be negative
};

/// One [[layer]] table. Called with a key and an attribute, it sets the attribute if the layer has the key;
/// errors give file and line.
class LayerTable {
 public:
  static constexpr bool kReads = true;
  LayerTable(const toml::table& table, const std::string& source, int classes)
      : table_(table), source_(source), classes_(classes) {}

  [[nodiscard]] const toml::table& table() const { return table_; }
  [[nodiscard]] std::optional<std::string> text(std::string_view key) const {
    return get<std::string>(key, "a text in quotes");
  }

  void operator()(std::string_view key, int& value, const KeyUse& use = {}) const {
    const toml::node* node = table_.get(key);
    if (use.is_required && node == nullptr)
      fail_at(source_, table_, "the layer needs '{}', but does not give it; add {} = 64", key, key);
    if (use.is_required && node->value_exact<std::string>() == "classes") {
      value = classes_;
      return;
    }
    const auto given = get<std::int64_t>(key, "a whole number").value_or(value);
    const bool is_negative = use.is_signed && given < 0 && given != INT64_MIN;
    value = is_negative ? -checked(key, -given) : checked(key, given);
  }
  /// A whole number for both axes, or [height, width].
  void operator()(std::string_view key, Pair& value, const KeyUse& /*use*/ = {}) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list != nullptr && (list->size() != 2 || !list->is_homogeneous(toml::node_type::integer)))
      fail_at(source_, *node,
              "'{}' must be a whole number, or a list of two, [height, width], but is another list; "
              "correct it",
              key);
    const auto at = [&](std::size_t i) { return checked(key, list->get(i)->value_or(std::int64_t{0})); };
    value =
        list != nullptr ? Pair(at(0), at(1)) : Pair(checked(key, *get<std::int64_t>(key, "a whole number")));
  }
  void operator()(std::string_view key, double& value, const KeyUse& /*use*/ = {}) const {
    if (const toml::node* node = table_.get(key); node != nullptr && node->is_integer())
      value = static_cast<double>(node->value_or(std::int64_t{0}));
    else
      value = get<double>(key, "a number").value_or(value);
  }
  /// The key "bias" may also be the text that names it (names_of).
  void operator()(std::string_view key, bool& value, const KeyUse& /*use*/ = {}) const {
    const toml::node* node = table_.get(key);
    const bool is_name = key == "bias" && node != nullptr && node->is_string();
    value = is_name || get<bool>(key, "true or false").value_or(value);
  }
  void operator()(std::string_view key, Init& value, const KeyUse& use = {}) const;

 private:
  template <typename T>
  [[nodiscard]] std::optional<T> get(std::string_view key, std::string_view wanted) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return std::nullopt;
    if (auto value = node->value_exact<T>()) return value;
    fail_at(source_, *node, "'{}' must be {}, but is {}; correct it", key, wanted, written(*node));
  }
  [[nodiscard]] int checked(std::string_view key, std::int64_t value) const {
    constexpr std::int64_t kMost = 1 << 20;
    if (value < 0 || value > kMost)
      fail_at(source_, *table_.get(key), "'{}' must be from 0 to {}, but is {}; correct it", key, kMost,
              value);
    return static_cast<int>(value);
  }
  const toml::table& table_;
  const std::string& source_;
  int classes_;
};

/// A kind of layer in model files: its keys, and the attributes made from them.
struct LayerKind {
  const char* op;
  std::vector<std::string> keys;
  Attributes (*attributes)(const LayerTable& layer);
};

/// All of them.
[[nodiscard]] std::vector<LayerKind> layer_kinds();

}  // namespace paceline::graph
