#include "measure/record_json.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "measure/gpu_record_fields.h"
#include "measure/gpu_watch.h"
#include "measure/record_fields.h"
#include "measure/record_file.h"

namespace paceline::measure {
namespace {

class VisibleTexts {
 public:
  static constexpr bool kWrites = false;
  template <typename T>
  void operator()(const char* /*key*/, T& value) {
    take(value);
  }

 private:
  void take(std::string& value) { value = base::visible(value); }
  void take(PhaseSeconds& /*value*/) {}
  template <typename T>
  requires std::is_arithmetic_v<T>
  void take(T& /*value*/) {}
  template <typename T>
  void take(std::optional<T>& value) {
    if (value) take(*value);
  }
  template <typename T>
  void take(std::vector<T>& values) {
    for (auto& value : values) take(value);
  }
  template <typename T>
  void take(std::map<std::string, T>& values) {
    std::map<std::string, T> shown;
    for (auto& [key, value] : values) {
      take(value);
      shown.emplace(base::visible(key), std::move(value));
    }
    values = std::move(shown);
  }
  template <typename T>
  requires std::is_class_v<T>
  void take(T& value) { fields(*this, value); }
};

using Json = nlohmann::ordered_json;

class JsonWriter {
 public:
  static constexpr bool kWrites = true;
  template <typename T>
  void operator()(const char* key, const T& value) {
    object_[key] = json(value);
  }
  [[nodiscard]] Json take() { return std::move(object_); }

 private:
  static Json json(const std::string& value) { return value; }
  static Json json(bool value) { return value; }
  static Json json(int value) { return value; }
  static Json json(std::int64_t value) { return value; }
  static Json json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
  template <typename T>
  static Json json(const std::optional<T>& value) {
    return value ? json(*value) : Json(nullptr);
  }
  template <typename T>
  static Json json(const std::vector<T>& values) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(json(value));
    return array;
  }
  template <typename T>
  static Json json(const std::map<std::string, T>& values) {
    Json object = Json::object();
    for (const auto& [key, value] : values) object[key] = json(value);
    return object;
  }
  static Json json(const PhaseSeconds& phases) {
    Json object = Json::object();
    for (std::size_t i = 0; i < kPhases; ++i)
      object[std::string(name(static_cast<Phase>(i)))] = json(phases[i]);
    return object;
  }
  template <typename T>
  requires std::is_class_v<T>
  static Json json(const T& value) {
    JsonWriter writer;
    fields(writer, value);
    return writer.take();
  }

  Json object_ = Json::object();
};

/// What is read. Unlike objects that keep their order, those of this type find a key without comparing all,
/// so that a file with a million keys costs no hour.
using Parsed = nlohmann::json;

std::string shortened(const Parsed& value) {
  auto text = value.dump(-1, ' ', false, Parsed::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

/// Why a text is not JSON, whose first mistake is at a byte: the end of a sentence.
std::string why_no_json(std::size_t byte, const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return "is empty";
  return byte > text.size() ? fmt::format("ends within its JSON, at byte {}: the file is cut", text.size())
                            : fmt::format("is not JSON: at byte {} of {}", byte, text.size());
}

class JsonReader {
 public:
  static constexpr bool kWrites = false;
  /// `path`: the keys that lead to `object`, for errors: "ranks[1]."
  JsonReader(const Parsed& object, const std::string& where, std::string path)
      : object_(object), where_(where), path_(std::move(path)) {}

  template <typename T>
  void operator()(const char* key, T& value) const {
    const auto found = object_.find(key);
    if (found == object_.end()) {
      if constexpr (requires { value.has_value(); }) {
        value.reset();
        return;
      } else {
        base::fail(base::ErrorKind::data,
                   "{}: the record has no key '{}{}'; it was edited or written by another version", where_,
                   path_, key);
      }
    }
    read(*found, path_ + key, value);
  }

 private:
  [[noreturn]] void fail(const std::string& key, const char* expected, const Parsed& found) const {
    base::fail(base::ErrorKind::data, "{}: '{}' should be {} but is {}", where_, key, expected,
               shortened(found));
  }

  void read(const Parsed& json, const std::string& key, std::string& value) const {
    if (!json.is_string()) fail(key, "a text", json);
    value = json.get<std::string>();
  }
  void read(const Parsed& json, const std::string& key, bool& value) const {
    if (!json.is_boolean()) fail(key, "true or false", json);
    value = json.get<bool>();
  }
  void read(const Parsed& json, const std::string& key, std::int64_t& value) const {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!json.is_number_integer() || (json.is_number_unsigned() && json.get<std::uint64_t>() > kMost))
      fail(key, "a whole number", json);
    value = json.get<std::int64_t>();
  }
  void read(const Parsed& json, const std::string& key, int& value) const {
    std::int64_t wide = 0;
    read(json, key, wide);
    value = static_cast<int>(wide);
    if (value != wide) fail(key, "a whole number of 32 bits", json);
  }
  void read(const Parsed& json, const std::string& key, double& value) const {
    if (json.is_null()) {  // a missing figure
      value = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    if (!json.is_number()) fail(key, "a number or null", json);
    value = json.get<double>();
  }
  template <typename T>
  void read(const Parsed& json, const std::string& key, std::optional<T>& value) const {
    if (json.is_null())
      value.reset();
    else
      read(json, key, *(value = T{}));  // clang 16 cannot emplace() a struct inside a struct
  }
  template <typename T>
  void read(const Parsed& json, const std::string& key, std::vector<T>& values) const {
    if (!json.is_array()) fail(key, "a list", json);
    values.resize(json.size());
    for (std::size_t i = 0; i < values.size(); ++i) read(json[i], fmt::format("{}[{}]", key, i), values[i]);
  }
  template <typename T>
  void read(const Parsed& json, const std::string& key, std::map<std::string, T>& values) const {
    if (!json.is_object()) fail(key, "an object", json);
    values.clear();
    for (const auto& [name, value] : json.items()) read(value, key + "." + name, values[name]);
  }
  void read(const Parsed& json, const std::string& key, PhaseSeconds& phases) const {
    if (!json.is_object()) fail(key, "an object", json);
    const JsonReader reader(json, where_, key + ".");
    for (std::size_t i = 0; i < kPhases; ++i)
      reader(std::string(name(static_cast<Phase>(i))).c_str(), phases[i]);
    if (json.size() != kPhases) fail(key, "an object of the ledger's ten phases", json);
  }
  template <typename T>
  requires std::is_class_v<T>
  void read(const Parsed& json, const std::string& key, T& value) const {
    if (!json.is_object()) fail(key, "an object", json);
    const JsonReader reader(json, where_, key + ".");
    fields(reader, value);
  }

  const Parsed& object_;
  const std::string& where_;
  std::string path_;
};

/// File names may contain any bytes, but JSON only UTF-8: invalid bytes become U+FFFD.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Prints objects and lists of objects over several lines, and lists of plain values on one, so that a record
/// with thousands of step times is readable.
void print(const Json& json, int depth, std::string& text) {
  const bool open = json.is_object() || (json.is_array() && !json.empty() && json[0].is_structured());
  if (!open || json.empty()) {
    text += dump(json);
    return;
  }
  const auto line = [&](int level) { text += '\n' + std::string(static_cast<std::size_t>(2 * level), ' '); };
  text += json.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& item : json.items()) {
    if (!first) text += ',';
    first = false;
    line(depth + 1);
    if (json.is_object()) text += dump(Json(item.key())) + ": ";
    print(item.value(), depth + 1, text);
  }
  line(depth);
  text += json.is_object() ? '}' : ']';
}

/// Refuses times of steps that no clock can give. Such a file was damaged or edited, and all figures of a
/// report come from these times: a step of -1 s would silently lower a median.
void require_times_of_steps(const Record& record, const std::string& where) {
  for (std::size_t rank = 0; rank < record.ranks.size(); ++rank) {
    const auto& steps = record.ranks[rank].step_s;
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (!std::isfinite(steps[i]) || steps[i] <= 0)
        base::fail(base::ErrorKind::data,
                   "{}: 'ranks[{}].step_s[{}]' should be a time above 0 s but is {}; the file was damaged or "
                   "edited: leave it out, or measure again",
                   where, rank, i, std::isnan(steps[i]) ? "null" : fmt::format("{}", steps[i]));
  }
}

/// Refuses last steps with lists of unequal length or an unknown phase, since they are drawn without further
/// checks.
void require_last_steps(const Record& record, const std::string& where) {
  if (!record.last_steps) return;
  for (std::size_t i = 0; i < record.last_steps->ranks.size(); ++i) {
    const auto& rank = record.last_steps->ranks[i];
    const auto are_times = [](const std::vector<double>& times, std::size_t count) {
      return times.size() == count &&
             std::all_of(times.begin(), times.end(), [](double time) { return std::isfinite(time); });
    };
    const bool is_sound =
        are_times(rank.begin_us, rank.phase.size()) && are_times(rank.length_us, rank.phase.size()) &&
        are_times(rank.posted_us, rank.bucket.size()) && are_times(rank.under_way_us, rank.bucket.size()) &&
        std::all_of(rank.phase.begin(), rank.phase.end(),
                    [](int phase) { return phase >= 0 && phase < static_cast<int>(kPhases); });
    if (!is_sound)
      base::fail(
          base::ErrorKind::data,
          "{}: 'last_steps.ranks[{}]' should have lists of one length, a time for each of {} spans and {} "
          "collectives, and phases from 0 to {}; the file was damaged or edited: leave it out, or measure again",
          where, i, rank.phase.size(), rank.bucket.size(), kPhases - 1);
  }
}

}  // namespace

void make_visible(Record& record) {
  VisibleTexts texts;
  fields(texts, record);
}

// Writes and reads the fields that record_fields.h lists.

std::string to_json(const Record& record) {
  JsonWriter writer;
  writer("schema", std::string(Record::kSchema));
  fields(writer, record);
  std::string text;
  print(writer.take(), 0, text);
  text += '\n';
  return text;
}

std::string why_no_record(const std::string& text) {
  // Only the schema is kept of a file that may be of any program.
  const auto keeps = [](int depth, Parsed::parse_event_t event, Parsed& value) {
    return event != Parsed::parse_event_t::key || depth != 1 || value == "schema";
  };
  try {
    const auto json = Parsed::parse(text, keeps);
    if (!json.is_object()) return "is whole JSON, but no object as records are";
    const auto found = json.find("schema");
    return found == json.end()
               ? "is whole JSON without the key 'schema', by which records are known"
               : fmt::format("is whole JSON, but its 'schema' is {}, not one of records", shortened(*found));
  } catch (const Parsed::parse_error& error) {
    return why_no_json(error.byte, text);
  } catch (const Parsed::exception& error) {
    return fmt::format("is no record: {}", error.what());
  }
}

Record record_from_json(const std::string& text, const std::string& where) {
  require_checksum(text, where);
  Parsed json;
  try {
    json = Parsed::parse(text);
  } catch (const Parsed::parse_error& error) {
    base::fail(base::ErrorKind::data, "{}: {}", where, why_no_json(error.byte, text));
  } catch (const Parsed::out_of_range& error) {  // 1e999
    base::fail(base::ErrorKind::data, "{}: has a number that no record can hold: {}", where, error.what());
  }
  if (!json.is_object() || !json.contains("schema") || !json["schema"].is_string())
    base::fail(base::ErrorKind::data, "{}: is not a record of Paceline: it has no \"schema\"", where);
  if (const auto schema = json["schema"].get<std::string>(); schema != Record::kSchema)
    base::fail(base::ErrorKind::data, "{}: has schema '{}' but this version reads '{}'", where, schema,
               Record::kSchema);
  Record record;
  record.has_checksum = says_it_has_checksum(text);
  const JsonReader reader(json, where, "");
  fields(reader, record);
  require_times_of_steps(record, where);
  require_last_steps(record, where);
  return record;
}

}  // namespace paceline::measure
