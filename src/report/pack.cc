#include "report/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

// Four steps: runs and texts; lists that are a selection of another; objects by their shapes; what stands
// there more than once is written once.

namespace paceline::report {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

bool is_plain(const Json& value) { return !value.is_structured(); }

/// A list as its runs, where that is shorter.
Json runs_of(const Json& list) {
  Json runs = Json::array({"~*"});
  for (std::size_t i = 0, end = 0; i < list.size(); i = end) {
    end = i + 1;
    while (end < list.size() && list[end] == list[i] && list[end].type() == list[i].type()) ++end;
    runs.push_back(list[i]);
    runs.push_back(end - i);
  }
  return text_of(runs).size() < text_of(list).size() ? runs : list;
}

Json without_runs(const Json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return text.starts_with('~') ? Json("~" + text) : value;
  }
  if (!value.is_structured()) return value;
  Json out = value.is_object() ? Json::object() : Json::array();
  if (value.is_object())
    for (const auto& [name, field] : value.items()) out[name] = without_runs(field);
  else
    for (const auto& item : value) out.push_back(without_runs(item));
  const bool is_list = out.is_array() && out.size() > 2 && std::all_of(out.begin(), out.end(), is_plain);
  return is_list ? runs_of(out) : out;
}

/// Finds lists of numbers all of which stand in a longer one: rows of the table of all cells, say.
class Selections {
 public:
  explicit Selections(const Json& root) {
    look(root);
    std::stable_sort(lists_.begin(), lists_.end(),
                     [](const auto& a, const auto& b) { return a->size() > b->size(); });
    for (std::size_t i = 0; i < lists_.size(); ++i) choose(i);
  }

  [[nodiscard]] Json code(const Json& value) const {
    if (!value.is_structured()) return value;
    if (is_numbers(value))
      if (const auto found = coded_.find(text_of(value)); found != coded_.end()) return found->second;
    Json out = value.is_object() ? Json::object() : Json::array();
    if (value.is_object())
      for (const auto& [name, field] : value.items()) out[name] = code(field);
    else
      for (const auto& item : value) out.push_back(code(item));
    return out;
  }

 private:
  static constexpr std::size_t kFewest = 4;  // shorter lists gain nothing
  static constexpr std::size_t kMost = 200;  // sources looked at for a list: bounds the cost of large reports
  static constexpr std::size_t kReference = 8;  // bytes, about

  static bool is_numbers(const Json& value) {
    return value.is_array() && value.size() >= kFewest &&
           std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_number(); });
  }

  void look(const Json& value) {
    if (is_numbers(value)) {
      if (seen_.insert(text_of(value)).second) lists_.push_back(&value);
    } else if (value.is_structured()) {
      for (const auto& item : value) look(item);
    }
  }

  void choose(std::size_t which) {
    const Json& list = *lists_[which];
    auto& own = places_.emplace_back();
    for (std::size_t i = 0; i < list.size(); ++i) own.try_emplace(list[i].get<double>(), i);
    for (std::size_t i = 0, tried = 0; i < which && tried < kMost; ++i, ++tried) {
      if (coded_.contains(text_of(*lists_[i]))) continue;  // a selection is no source: no chains
      Json indices = Json::array();
      for (const auto& item : list) {
        const auto found = places_[i].find(item.get<double>());
        if (found == places_[i].end()) break;
        indices.push_back(found->second);
      }
      if (indices.size() < list.size()) continue;
      const auto index = text_of(indices);
      const auto size = 2 * kReference + (indices_.contains(index) ? kReference : index.size());
      if (size >= text_of(list).size()) continue;
      indices_.insert(index);
      coded_[text_of(list)] = Json::array({"~[", *lists_[i], std::move(indices)});
      return;
    }
  }

  std::vector<const Json*> lists_{};  // each once, longest first
  std::vector<std::unordered_map<double, std::size_t>> places_{};
  std::set<std::string> seen_{}, indices_{};
  std::map<std::string, Json> coded_{};
};

/// Objects become lists behind the number of their shape.
class Shapes {
 public:
  explicit Shapes(const Json& root) {
    look(root);
    for (const auto& [names, objects] : objects_) choose(names, objects);
  }

  Json code(const Json& value) {
    if (!value.is_structured()) return value;
    Json out = Json::array();
    if (value.is_array()) {
      for (const auto& item : value) out.push_back(code(item));
      return out;
    }
    const auto& fixed = fixed_.at(names_of(value));
    Json shape = Json::array();
    out.push_back("");
    for (const auto& [name, field] : value.items()) {
      if (fixed.contains(name)) {
        shape.push_back(Json::array({name, field}));
      } else {
        shape.push_back(name);
        out.push_back(code(field));
      }
    }
    const auto [found, is_new] = numbers_.try_emplace(text_of(shape), numbers_.size());
    if (is_new) shapes_.push_back(std::move(shape));
    out[0] = fmt::format("~:{}", found->second);
    return out;
  }

  [[nodiscard]] const Json& list() const { return shapes_; }

 private:
  /// A field with so few values that a shape for each costs less than the field in every object.
  static constexpr std::size_t kObjectsForOneValue = 5;

  static std::vector<std::string> names_of(const Json& object) {
    std::vector<std::string> names;
    for (const auto& [name, field] : object.items()) names.push_back(name);
    return names;
  }

  void look(const Json& value) {
    if (value.is_object()) objects_[names_of(value)].push_back(&value);
    if (value.is_structured())
      for (const auto& item : value) look(item);
  }

  void choose(const std::vector<std::string>& names, const std::vector<const Json*>& objects) {
    auto& fixed = fixed_[names];
    for (const auto& name : names) {
      std::set<std::string> values;
      const bool is_short = std::all_of(objects.begin(), objects.end(), [&](const Json* object) {
        const Json& field = (*object)[name];
        values.insert(text_of(field));
        return !field.is_structured() && !field.is_number();
      });
      if (is_short && values.size() * kObjectsForOneValue <= objects.size()) fixed.insert(name);
    }
  }

  std::map<std::vector<std::string>, std::vector<const Json*>> objects_{};
  std::map<std::vector<std::string>, std::set<std::string>> fixed_{};
  std::map<std::string, std::size_t> numbers_{};
  Json shapes_ = Json::array();
};

/// Gives each text and list that is worth it a number, and writes it once.
class Shared {
 public:
  explicit Shared(const Json& root) {
    count(root);
    std::vector<std::pair<std::size_t, std::string>> worth;
    for (const auto& [text, times] : times_)
      if (times > 1 && times * text.size() > text.size() + 1 + times * kReference)
        worth.emplace_back(times, text);
    // The most used have the shortest numbers.
    std::sort(worth.begin(), worth.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    for (const auto& [times, text] : worth) numbers_.emplace(text, numbers_.size());
    values_.resize(numbers_.size());
    written_.resize(numbers_.size());
  }

  Json code(const Json& value) {
    if (!is_shareable(value)) return value;
    const auto found = numbers_.find(text_of(value));
    if (found == numbers_.end()) return inside(value);
    const auto number = found->second;
    if (!written_[number]) {
      written_[number] = true;
      values_[number] = inside(value);
    }
    return fmt::format("~{}", number);
  }

  [[nodiscard]] Json values() const { return values_; }

 private:
  static constexpr std::size_t kReference = 6;  // bytes of "~12" and a comma

  /// Not the marks of the steps before.
  static bool is_shareable(const Json& value) {
    if (!value.is_string()) return value.is_array();
    const auto& text = value.get_ref<const std::string&>();
    return !text.starts_with('~') || text.starts_with("~~");
  }

  void count(const Json& value) {
    if (!is_shareable(value)) return;
    const auto times = ++times_[text_of(value)];
    if (times == 1 && value.is_array())
      for (const auto& item : value) count(item);
  }

  Json inside(const Json& value) {
    if (!value.is_array()) return value;
    Json out = Json::array();
    for (const auto& item : value) out.push_back(code(item));
    return out;
  }

  std::unordered_map<std::string, std::size_t> times_{}, numbers_{};
  std::vector<Json> values_{};
  std::vector<bool> written_{};
};

}  // namespace

std::string packed(const std::string& json) {
  const Json plain = without_runs(Json::parse(json));
  const Json selected = Selections(plain).code(plain);
  Shapes shapes(selected);
  const Json body = shapes.code(selected);
  const Json all = Json::array({body, shapes.list()});
  Shared shared(all);
  // Separately: a reference to both at once would be of no use.
  const Json report = shared.code(all[0]), kinds = shared.code(all[1]);
  const Json root = {
      {"schema", "paceline-packed-1"}, {"shapes", kinds}, {"values", shared.values()}, {"report", report}};
  return text_of(root) + "\n";
}

}  // namespace paceline::report
