#pragma once

/// The fields of a record one by one, as measure/record_fields.h lists them: a test of all of them needs no
/// list of its own, and sees a field that is added.

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "measure/gpu_record_fields.h"
#include "measure/record_fields.h"

namespace paceline::golden {

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <typename T>
inline constexpr bool kIsMap = false;
template <typename T>
inline constexpr bool kIsMap<std::map<std::string, T>> = true;

/// Walks over a record like a reader of JSON. Collects the paths of all fields ("ranks[].host", of lists of
/// structs the first element's), and changes the one that is asked for. Optional structs and empty lists on
/// the way are made; with nothing asked for, all of them are.
class FieldWalk {
 public:
  static constexpr bool kWrites = false;
  explicit FieldWalk(std::string wanted = {}) : wanted_(std::move(wanted)) {}

  template <typename T>
  void operator()(const char* key, T& value) {
    const auto outer = path_;
    path_ += key;
    visit(value);
    path_ = outer;
  }
  [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }

 private:
  /// Whether the field that is asked for lies at or below this path.
  [[nodiscard]] bool leads_there() const {
    return wanted_.empty() ||
           (wanted_.starts_with(path_) &&
            (wanted_.size() == path_.size() || wanted_[path_.size()] == '.' || wanted_[path_.size()] == '['));
  }

  template <typename T>
  static constexpr bool has_fields() {
    return std::is_class_v<T> && !std::is_same_v<T, std::string> && !kIsList<T> && !kIsMap<T> &&
           !std::is_same_v<T, measure::PhaseSeconds>;
  }

  template <typename T>
  void visit(T& value) {
    if constexpr (kIsOptional<T>) {
      using Value = typename T::value_type;
      if constexpr (has_fields<Value>() || kIsList<Value>) {
        if (!leads_there()) return;
        if (!value) value.emplace();
        visit(*value);
      } else {
        Value there = value.value_or(Value());
        if (visit_leaf(there)) value = there;
      }
    } else if constexpr (kIsList<T>) {
      if constexpr (has_fields<typename T::value_type>()) {
        if (!leads_there()) return;
        if (value.empty()) value.emplace_back();
        path_ += "[]";
        visit(value.front());
      } else {
        visit_leaf(value);
      }
    } else if constexpr (has_fields<T>()) {
      path_ += '.';
      fields(*this, value);
    } else {
      visit_leaf(value);
    }
  }

  template <typename T>
  bool visit_leaf(T& value) {
    paths_.push_back(path_);
    if (path_ != wanted_) return false;
    change(value);
    return true;
  }

  static void change(bool& value) { value = !value; }
  static void change(int& value) { value = 2 * value + 1; }
  static void change(std::int64_t& value) { value = 2 * value + 1; }
  static void change(double& value) { value = 2 * value + 1; }
  static void change(std::string& value) { value += "x"; }
  template <typename T>
  static void change(std::vector<T>& values) {
    values.emplace_back();
    change(values.back());
  }
  template <typename T>
  static void change(std::map<std::string, T>& values) {
    change(values["something-of-the-future"]);
  }
  static void change(measure::PhaseSeconds& phases) { change(phases.front()); }

  std::string wanted_, path_;
  std::vector<std::string> paths_;
};

/// All paths. Whatever the record lacks is made on the way.
inline std::vector<std::string> all_fields(measure::Record& record) {
  FieldWalk walk;
  fields(walk, record);
  return walk.paths();
}

inline void change_field(measure::Record& record, const std::string& path) {
  FieldWalk walk(path);
  fields(walk, record);
}

}  // namespace paceline::golden
